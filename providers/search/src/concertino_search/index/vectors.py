"""Vectors: the passages nearest in meaning, by cosine.

Up to a size, all vectors are compared: exact, one matrix product for a whole batch, mapped from a plain array. Above
it, an HNSW graph of `usearch` (the extra `ann`) is searched, which is mapped too and may miss a neighbour.

Invariant: the same index and query give the same result, and equal scores keep the order of the corpus.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from concertino_search.errors import CorpusError
from concertino_search.options import EXACT_UP_TO

from .embedding import Vectors
from .ranking import Ranked, best

_ARRAY, _GRAPH = "vectors.npy", "vectors.usearch"
_EXPANSION = 128
"""Candidates that the graph keeps while it is built and searched; more of them miss less and take longer."""
_AT_ONCE = 64
"""Queries whose scores are held in memory together."""


class VectorIndex:
    """An index of unit vectors in a folder."""

    def __init__(self, folder: Path) -> None:
        self._graph: Any = None
        self._array: Vectors = np.asarray(np.load(folder / _ARRAY, mmap_mode="r"))
        if (folder / _GRAPH).is_file():
            self._graph = _usearch().Index.restore(str(folder / _GRAPH), view=True)
            self._graph.expansion_search = _EXPANSION

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return int(self._array.shape[1])

    def search(self, queries: Vectors, k: int) -> list[Ranked]:
        """The best `k` passages of each query, by cosine; those with a cosine of 0 or less are left out.

        Raises:
            CorpusError: the queries have another length than the passages.
        """
        if queries.shape[1] != self.dimensions:
            raise CorpusError(
                f"the embedder gives {queries.shape[1]} numbers, the index holds {self.dimensions}; name the embedder "
                "otherwise where its vectors changed, and the index is built again"
            )
        found: list[Ranked] = []
        for start in range(0, len(queries), _AT_ONCE):
            part = queries[start : start + _AT_ONCE]
            if self._graph is not None:
                # The graph may miss a neighbour: of four times as many candidates, the exact cosine chooses.
                near = self._graph.search(part, min(4 * k, len(self._array)), threads=1).keys
                # Sorted by position, which is how `best` orders equal scores.
                found += [self._among(query, np.sort(row), k) for query, row in zip(part, near, strict=True)]
            else:
                found += [_positive(best(scores, k)) for scores in part @ self._array.T]
        return found

    def _among(self, query: Vectors, candidates: Any, k: int) -> Ranked:
        """The exact order of candidates."""
        positions = candidates.astype(np.int64)
        places, scores = best(self._array[positions] @ query, k)
        return _positive((positions[places], scores))

    @staticmethod
    def write(folder: Path, vectors: Vectors, *, exact_up_to: int = EXACT_UP_TO) -> None:
        """Write unit vectors, in the order of the passages.

        Raises:
            CorpusError: there are more than are compared one by one, and usearch is not installed.
        """
        np.save(folder / _ARRAY, vectors)
        if len(vectors) > exact_up_to:
            graph = _usearch().Index(
                ndim=vectors.shape[1], metric="ip", dtype="f32", connectivity=16, expansion_add=_EXPANSION
            )
            # Several threads would give another graph each time.
            graph.add(np.arange(len(vectors)), vectors, threads=1)
            graph.save(str(folder / _GRAPH))


def _positive(ranked: Ranked) -> Ranked:
    places, scores = ranked
    return places[scores > 0], scores[scores > 0]


def _usearch() -> Any:
    try:
        return importlib.import_module("usearch.index")
    except ImportError:
        raise CorpusError(
            f"more than {EXACT_UP_TO:,} vectors need usearch: pip install 'concertino-search[ann]', or raise "
            "exact_up_to to compare them all"
        ) from None
