"""BM25: which passages hold the rare words of a query.

`bm25s` makes and maps the matrix of scores (a term's score in a passage is known before any query); choosing the best
is done here, so that ties are broken by the order of the corpus and a passage without any term of the query is never
a result.

Variants: `lucene` (idf never below 0) and `okapi` (rank_bm25's: idf as Robertson's, where it is negative a quarter of
the mean idf). A repeated term of a query counts as often as it stands there, in both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import bm25s  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from ._errors import CorpusError
from ._options import VARIANTS, Variant

_OKAPI_FLOOR = 0.25
"""Part of the mean idf that a term has which stands in more than half of the passages."""

Ranked = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Positions of passages, best first, and their scores."""


class Bm25:
    """A BM25 index in memory, or mapped from a folder.

    Args:
        matrix: the scores, as `bm25s` holds them.
    """

    def __init__(self, matrix: bm25s.BM25) -> None:
        self._matrix = matrix
        self._terms: dict[str, int] = matrix.vocab_dict

    @classmethod
    def build(cls, passages: Sequence[Sequence[str]], *, k1: float, b: float, variant: Variant) -> Bm25:
        """Index the terms of passages, in order.

        Raises:
            CorpusError: k1, b or the variant cannot be.
        """
        if not (0 <= k1 < math.inf and 0 <= b <= 1):
            raise CorpusError(f"k1={k1!r}, b={b!r}; expected k1 >= 0 and b between 0 and 1")
        if variant not in VARIANTS:
            raise CorpusError(f"variant {variant!r}; expected one of {', '.join(VARIANTS)}")
        terms: dict[str, int] = {}
        columns = [[terms.setdefault(term, len(terms)) for term in passage] for passage in passages]
        tf = "atire" if variant == "okapi" else "lucene"
        dtype = "float64" if variant == "okapi" else "float32"
        matrix = bm25s.BM25(k1=k1, b=b, method=tf, idf_method="lucene", dtype=dtype)
        if not terms:
            raise CorpusError("no passage holds a single term; choose another analyser")
        matrix.index((columns, terms), show_progress=False, create_empty_token=False)
        if variant == "okapi":
            _reweigh(matrix, columns, len(terms))
        return cls(matrix)

    @classmethod
    def open(cls, folder: Path) -> Bm25:
        """Map an index that `save` wrote."""
        matrix = bm25s.BM25.load(str(folder), mmap=True)
        for name in ("data", "indices", "indptr"):  # the same pages, without the cost of np.memmap for every slice
            matrix.scores[name] = np.asarray(matrix.scores[name])
        return cls(matrix)

    def save(self, folder: Path) -> None:
        """Write the index into an existing folder."""
        self._matrix.save(str(folder), show_progress=False)

    def search(self, query: Sequence[str], k: int) -> Ranked:
        """The best `k` passages that hold a term of the query."""
        columns = [column for term in query if (column := self._terms.get(term)) is not None]
        if not columns:
            return np.empty(0, dtype=np.int64), np.empty(0)
        return best(self._matrix.get_scores_from_ids(columns), k)


def best(scores: npt.NDArray[np.floating], k: int) -> Ranked:
    """The `k` greatest scores that are not 0, equal ones in order of position."""
    where = np.flatnonzero(scores != 0)  # of truth values it is several times quicker than of numbers
    values = scores[where]
    if len(values) > k:
        least = np.partition(values, len(values) - k)[len(values) - k]
        kept = np.flatnonzero(values >= least)
        where, values = where[kept], values[kept]
    order = np.lexsort((where, -values))[:k]
    return where[order], values[order].astype(np.float64)


def _reweigh(matrix: bm25s.BM25, columns: list[list[int]], terms: int) -> None:
    """Put Okapi's idf in the place of Lucene's."""
    count = len(columns)
    lists = np.fromiter(chain.from_iterable(map(set, columns)), dtype=np.int64)
    held = np.bincount(lists, minlength=terms).astype(np.float64)
    lucene = np.log(1 + (count - held + 0.5) / (held + 0.5))
    okapi = np.log(count - held + 0.5) - np.log(held + 0.5)
    okapi = np.where(okapi < 0, _OKAPI_FLOOR * okapi.mean(), okapi)
    lengths = np.diff(matrix.scores["indptr"])
    matrix.scores["data"] = matrix.scores["data"] * np.repeat(okapi / lucene, lengths)
