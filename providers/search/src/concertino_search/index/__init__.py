"""Indexes of a corpus: BM25, vectors, or both.

from concertino_search.index import open_index

index = await open_index("corpus.jsonl")
[hits] = await index.search(["what a kiwi smells"], k=5)
"""

from .cache import build_index, open_index
from .embedding import EncodingEmbedder, HashingEmbedder, ServedEmbedder

__all__ = [
    "EncodingEmbedder",
    "HashingEmbedder",
    "ServedEmbedder",
    "build_index",
    "open_index",
]
