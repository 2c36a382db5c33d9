"""An agent asks models and calls members through its context."""

import asyncio
from collections import Counter

import concertino as ct
from concertino.testing import ScriptedModel, make_pool, run_call


@ct.agent(cost=ct.Cost(units=1), timeout=60, models=("worker",))
async def vote(question: str, samples: int = 3, *, ctx: ct.Context) -> str:
    """Ask the worker model several times and return the most common answer.

    Args:
        question: a question with a short answer.
        samples: how often to ask.
    """
    worker = ctx.model("worker")
    replies = await ctx.gather(worker.chat(question) for _ in range(samples))
    return Counter(reply.text for reply in replies).most_common(1)[0][0]


async def main() -> None:
    worker = ScriptedModel("Oslo", "Bergen", "Oslo")
    seen = await run_call(vote, {"question": "Capital of Norway?"}, pool=make_pool(worker=worker))
    print(seen.status, seen.content)
    print(seen.usage.calls, "call,", seen.usage.units, "unit,", seen.usage.tokens, "tokens")


asyncio.run(main())
