"""A pool of two described models gets a third one: only that one is asked."""

import asyncio

import concertino as ct
from concertino_bench.model_cards import describe


async def main() -> None:
    pool = ct.Pool.load("described.toml")
    larger = pool.adding(*ct.Pool.installed("toy/sage").models)
    found = await describe(larger, "tasks.jsonl")
    print("asked now:", found.asked)
    for description in found.descriptions:
        rate = description.profile.by_kind["false note"]
        print(f"{description.model:<10} {rate.accuracy:.0%} right about false notes, {rate.low:.0%} to {rate.high:.0%}")
    print("in the pool:", found.pool["toy/sage"].description[:20])


asyncio.run(main())
