"""Several queries in one call; then a whole passage."""

import asyncio
from pathlib import Path

import concertino as ct
from concertino_search import corpus_tools


async def main() -> None:
    pool = ct.Pool(corpus_tools("birds.jsonl", about="facts about birds", cache=Path("indexes")))
    async with ct.Executor() as executor:
        asked = ct.Call("search", {"queries": ["who hunts at night", "smelling worms", "dragons"], "top_k": 1})
        (seen,) = await executor.run([asked], pool)
        for result in seen.content["results"]:
            print(result["query"], "->", [passage["id"] for passage in result["passages"]])
        (seen,) = await executor.run([ct.Call("read", {"ids": ["kiwi"]})], pool)
        print(seen.content["passages"][0]["text"])


asyncio.run(main())
