"""A thousand runs at once in one process; of each, only its summary is kept."""

import asyncio

import concertino as ct
from concertino.testing import ScriptedModel

CALLS = [("square", {"number": 3}), ("square", {"number": 4})]


@ct.tool
async def square(number: int) -> int:
    """The square of a number."""
    return number * number


POOL = ct.Pool.of(square)


async def answer(question: str) -> ct.RunSummary:
    leader = ct.Orchestrator(ScriptedModel(CALLS, "<answer>25</answer>"))
    run = await leader.run(question, pool=POOL)
    return run.summary()  # texts, calls and events are gone with the run


async def main() -> None:
    summaries = await asyncio.gather(*(answer(f"Question {number}?") for number in range(1000)))
    print(len(summaries), {summary.answer for summary in summaries}, summaries[0].statuses)
    print(sum(summary.usage.calls for summary in summaries), summaries[7].question, summaries[7].stop)


asyncio.run(main())
