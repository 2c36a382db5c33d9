"""BM25: which passages hold the rare words of a query.

`bm25s` makes and maps the matrix of scores: a term's score in a passage is known before any query. Adding them up is
done here, for many queries at once: the columns of all their terms are laid end to end and added in one go, so that
a batch pays numpy's cost of a call once and not once per term.

Invariant: a query of a batch is ranked as it is alone; a passage without any term of a query is never its result.

Variants: `lucene` (idf never below 0) and `okapi` (rank_bm25's: idf as Robertson's, where it is negative a quarter of
the mean idf). A repeated term of a query counts as often as it stands there, in both.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import bm25s
import numpy as np
import numpy.typing as npt

from concertino_search.errors import CorpusError
from concertino_search.options import VARIANTS, Variant

from .ranking import Ranked, Scores, best_of_rows, padded

# It logs each build on the level DEBUG, which it sets itself.
logging.getLogger("bm25s").setLevel(logging.WARNING)

_OKAPI_FLOOR = 0.25
"""Part of the mean idf that a term in more than half of the passages has."""

_CELLS = 1 << 18
"""Scores that are added up together (1 MB), unless one query has more; as many as stay in a processor's cache."""


class Bm25:
    """A BM25 index in memory, or mapped from a folder."""

    def __init__(self, matrix: bm25s.BM25) -> None:
        self._matrix = matrix
        self._terms: dict[str, int] = matrix.vocab_dict

    @classmethod
    def build(
        cls,
        passages: Sequence[Sequence[str]],
        *,
        k1: float,
        b: float,
        variant: Variant,
        length: float | None = None,
        weight: Callable[[str], float] | None = None,
    ) -> Bm25:
        """Index the terms of passages, in order.

        Args:
            length: terms of a passage that is neither long nor short; by default the mean of these passages.
            weight: of a term, in place of its idf among these passages.

        Raises:
            CorpusError: k1, b or the variant is invalid.
        """
        if not (0 <= k1 < math.inf and 0 <= b <= 1):
            raise CorpusError(f"k1={k1!r}, b={b!r}; expected k1 >= 0 and b between 0 and 1")
        if variant not in VARIANTS:
            raise CorpusError(f"variant {variant!r}; expected one of {', '.join(VARIANTS)}")
        terms: dict[str, int] = {}
        columns = [[terms.setdefault(term, len(terms)) for term in passage] for passage in passages]
        if length is not None and any(columns):
            # The same denominator, k1 * (1 - b + b * own length / length), with the mean in the place of `length`.
            sloped = k1 * b * sum(map(len, columns)) / len(columns) / length
            k1, b = k1 * (1 - b) + sloped, sloped / max(k1 * (1 - b) + sloped, 1e-9)
        # ATIRE weighs a term's frequency as Okapi does; Lucene's idf is never 0, so `_reweigh` can divide by it.
        tf = "atire" if variant == "okapi" else "lucene"
        dtype = "float64" if variant == "okapi" else "float32"
        matrix = bm25s.BM25(k1=k1, b=b, method=tf, idf_method="lucene", dtype=dtype)
        if not terms:
            raise CorpusError("no passage holds a single term; choose another analyser")
        matrix.index((columns, terms), show_progress=False, create_empty_token=False)
        if weight is not None:
            _reweigh(matrix, columns, np.array([weight(term) for term in terms]))
        elif variant == "okapi":
            _reweigh(matrix, columns, None)
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

    def search(self, queries: Sequence[Sequence[str]], k: int) -> list[Ranked]:
        """The best `k` passages of each query that hold a term of it.

        Args:
            queries: the terms of each; a repeated term counts as often as it stands there.
            k: passages per query, at least 1.
        """
        length = padded(int(self._matrix.scores["num_docs"]))
        step = max(1, _CELLS // length)
        parts = [queries[start : start + step] for start in range(0, len(queries), step)]
        return [ranked for part in parts for ranked in best_of_rows(self._scores(part, length), k)]

    def scores(self, queries: Sequence[Sequence[str]]) -> Scores:
        """A row of scores for each query, a column per passage; rows are filled up with 0."""
        return self._scores(queries, padded(int(self._matrix.scores["num_docs"])))

    def _scores(self, queries: Sequence[Sequence[str]], length: int) -> Scores:
        """A row of scores for each query, filled up with 0."""
        known = [[term for name in query if (term := self._terms.get(name)) is not None] for query in queries]
        matrix = self._matrix.scores
        scores = np.zeros(len(queries) * length, matrix["data"].dtype)
        if any(known):
            terms = np.fromiter(chain.from_iterable(known), dtype=np.int64)
            rows = np.repeat(np.arange(len(known)), [len(columns) for columns in known])
            starts, ends = matrix["indptr"][terms], matrix["indptr"][terms + 1]
            spans = list(map(slice, starts.tolist(), ends.tolist()))
            cells = np.concatenate([matrix["indices"][span] for span in spans], dtype=np.int64)
            cells += np.repeat(rows * length, ends - starts)
            # `scores[cells] +=` would count a repeated cell once.
            np.add.at(scores, cells, np.concatenate([matrix["data"][span] for span in spans]))
        return scores.reshape(len(queries), length)


def _reweigh(matrix: bm25s.BM25, columns: list[list[int]], weights: npt.NDArray[np.float64] | None) -> None:
    """Put weights of terms, or Okapi's idf, in the place of Lucene's."""
    lengths = np.diff(matrix.scores["indptr"])
    count = len(columns)
    lists = np.fromiter(chain.from_iterable(map(set, columns)), dtype=np.int64)
    held = np.bincount(lists, minlength=len(lengths)).astype(np.float64)
    lucene = np.log(1 + (count - held + 0.5) / (held + 0.5))
    if weights is None:
        okapi = np.log(count - held + 0.5) - np.log(held + 0.5)
        weights = np.where(okapi < 0, _OKAPI_FLOOR * okapi.mean(), okapi)
    data = matrix.scores["data"]
    matrix.scores["data"] = (data * np.repeat(weights / lucene, lengths)).astype(data.dtype)
