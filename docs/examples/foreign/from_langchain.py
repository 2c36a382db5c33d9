"""A tool of LangChain leads a member's life: validated, timed, budgeted, recorded."""

import asyncio

import concertino as ct
from langchain_core.tools import tool


@tool
def times(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


async def main() -> None:
    async with ct.Executor() as executor:
        for seen in await executor.run([ct.Call("times", {"a": 6, "b": 7})], ct.Pool.of(times)):
            print(seen.status, seen.content)


asyncio.run(main())
