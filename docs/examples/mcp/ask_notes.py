"""Tools of an MCP server in a pool, called like any other."""

import asyncio

import concertino as ct

pool = ct.Pool.installed("mcp/notes.*")


async def main() -> None:
    calls = [
        ct.Call("notes.write_note", {"title": "fish", "text": "Salmon leap."}),
        ct.Call("notes.read_note", {"title": "birds"}),
        ct.Call("notes.read_note", {"titel": "birds"}),
    ]
    async with ct.Executor() as executor:
        for seen in await executor.run(calls, pool):
            print(seen.status, seen.content or seen.error.message)


asyncio.run(main())
