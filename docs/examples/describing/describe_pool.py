"""Describe a pool, then add a model: only the new one is asked."""

import asyncio

import concertino as ct
from concertino.describing import describe


async def main() -> None:
    pool = ct.Pool.installed("sim/swift", "sim/steady")
    first = await describe(pool, "tasks.jsonl")
    print("asked:", first.asked)

    larger = await describe(first.pool.adding(ct.Pool.installed("sim/sage")["sim/sage"]), "tasks.jsonl")
    print("asked:", larger.asked)

    for description in larger.descriptions:
        rate = description.profile.by_kind["false note"]
        print(
            f"{description.model:<10} {rate.accuracy:.0%} of false notes seen through, {rate.low:.0%} to {rate.high:.0%}"
        )
    print(larger.pool["sim/sage"].description == larger.descriptions[-1].text)


asyncio.run(main())
