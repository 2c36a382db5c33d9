"""Indexes of a corpus: BM25, vectors, or both.

from concertino_search.index import open_index

index = await open_index("corpus.jsonl")
[hits] = await index.search(["what a kiwi smells"], k=5)
"""

from concertino_search.options import Embedder

from .cache import build_index, default_cache, open_index
from .embedding import EncodingEmbedder, HashingEmbedder, ServedEmbedder
from .index import Hit, Index
from .passages import Passage

__all__ = [
    "Embedder",
    "EncodingEmbedder",
    "HashingEmbedder",
    "Hit",
    "Index",
    "Passage",
    "ServedEmbedder",
    "build_index",
    "default_cache",
    "open_index",
]
