"""Parallel calls never exceed a budget, and a deadline stops running calls."""

import asyncio

import concertino as ct


@ct.tool(cost=ct.Cost(usd=0.02))
async def search(query: str) -> str:
    """Search the web; each query is billed."""
    await asyncio.sleep(0.05)
    return f"a page about {query}"


@ct.tool(timeout=30)
async def survey(topic: str) -> str:
    """Ask people; it takes long."""
    await asyncio.sleep(20)
    return f"opinions about {topic}"


async def main() -> None:
    pool = ct.Pool.of(search, survey)
    async with ct.Executor() as executor:
        calls = [ct.Call("search", {"query": word}) for word in ("fjords", "trolls", "ferries")]
        for seen in await executor.run(calls, pool, budget=ct.Budget(usd=0.05)):
            print(seen.name, seen.status, seen.error.code if seen.error else f"${seen.usage.usd:g}")

        calls = [ct.Call("search", {"query": "rain"}), ct.Call("survey", {"topic": "rain"})]
        for seen in await executor.run(calls, pool, budget=ct.Budget(seconds=0.3)):
            print(seen.name, seen.status, seen.error.message if seen.error else seen.content)


asyncio.run(main())
