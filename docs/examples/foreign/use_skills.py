"""A folder of Agent Skills as members."""

import asyncio
from pathlib import Path

import concertino as ct

CALLS = [
    ct.Call("averages"),
    ct.Call("averages", {"read": "references/RULES.md"}),
    ct.Call("averages", {"run": "scripts/mean.py", "arguments": ["1", "2", "30", "3"]}),
]


async def main() -> None:
    pool = ct.Pool.of(Path("skills"))
    print([member.name for member in pool])
    async with ct.Executor() as executor:
        for seen in await executor.run(CALLS, pool):
            print(seen.status, seen.content)


asyncio.run(main())
