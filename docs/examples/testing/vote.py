"""An agent that asks a model several times, and looks a fact up when the model is not sure."""

from collections import Counter

import concertino as ct


@ct.agent(timeout=30, models=("worker",))
async def vote(question: str, *, ctx: ct.Context) -> str:
    """Answer a question by a vote of three.

    Args:
        question: a question with a short answer.
    """
    worker = ctx.model("worker")
    replies = await ctx.gather(worker.chat(question) for _ in range(3))
    answer, count = Counter(reply.text for reply in replies).most_common(1)[0]
    if count > 1:
        return answer
    seen = await ctx.call("look_up", {"question": question})
    return str(seen.content) if seen.ok else answer
