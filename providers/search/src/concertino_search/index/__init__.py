"""Indexes of a corpus: BM25, vectors, or both.

from concertino_search.index import open_index

index = await open_index("corpus.jsonl")
[hits] = await index.search(["what a kiwi smells"], k=5)
"""

from concertino_search.options import TextEmbedder

from .cache import build_index, default_cache, open_index
from .embedding import EncodingEmbedder, HashingEmbedder, ServedEmbedder
from .index import Hit, Index
from .passages import Passage

__all__ = [
    "EncodingEmbedder",
    "HashingEmbedder",
    "Hit",
    "Index",
    "Passage",
    "ServedEmbedder",
    "TextEmbedder",
    "build_index",
    "default_cache",
    "open_index",
]
