"""Ask a simulated model generated questions with more and more false notes, and count the verdicts."""

import asyncio
from collections import Counter

import concertino as ct
from concertino_bench.masbench import generate, grade

pool = ct.Pool.installed("toy/steady")


async def main() -> None:
    model = pool.model("toy/steady").factory()
    for level in (2, 4, 6):
        verdicts = Counter()
        for task in generate("robustness", level, 40, seed=1):
            reply = await model.chat(ct.ChatRequest([ct.Message("user", task.question)]))
            verdicts[grade(task, reply.text).verdict] += 1
        print(level, {verdict.value: count for verdict, count in sorted(verdicts.items())})


asyncio.run(main())
