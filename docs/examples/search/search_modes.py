"""BM25, dense and hybrid search over one index that stays on disk."""

import asyncio
from pathlib import Path

from concertino_search import IndexOptions
from concertino_search.index import HashingEmbedder, open_index


async def search(cache: Path) -> None:
    options = IndexOptions(embedder=HashingEmbedder())  # a stand-in that knows no meaning
    index = await open_index("birds.jsonl", options, cache=cache)
    for mode in ("bm25", "dense", "hybrid"):
        (hits,) = await index.search(["a bird that hunts fish under water"], 2, mode=mode)
        print(mode, [hit.passage.id for hit in hits])


asyncio.run(search(Path("indexes")))
