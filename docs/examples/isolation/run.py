"""Call all of them at once: every call gets its observation, and the program continues."""

import asyncio

import concertino as ct
from members import blocks, crashes, spins, waits


async def main() -> None:
    pool = ct.Pool.of(waits, blocks, spins, crashes)
    calls = [
        ct.Call("waits", {"seconds": 0.01}),
        ct.Call("waits", {"seconds": 60}),
        ct.Call("blocks", {"seconds": 1}),
        ct.Call("spins"),
        ct.Call("crashes"),
    ]
    async with ct.Executor() as executor:
        for seen in await executor.run(calls, pool):
            print(f"{seen.name:<8} {seen.status:<9} {seen.error.message if seen.error else seen.content}")


asyncio.run(main())
