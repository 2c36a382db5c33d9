"""Rankings: the best of many scores, for one query or for a batch, and one ranking made of several.

Invariant: equal scores keep the order of the corpus, a score of 0 is no result, and a batch gives what its rows give
one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ranked = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Positions of passages, best first, and their scores."""
Scores = npt.NDArray[np.floating]
GROUP = 32
"""Passages represented by their greatest score in the first pass over a row; they lie evenly spread in it."""


RANK_CONSTANT = 60
"""How much less the first ranks stand out; 60 is the value of the paper."""


def padded(count: int) -> int:
    """The least length of a row of `count` scores that `best_of_rows` takes: whole groups."""
    return -(-count // GROUP) * GROUP


def best(scores: Scores, k: int) -> Ranked:
    """The `k` greatest scores that are not 0, equal ones in order of position."""
    where = np.flatnonzero(scores != 0)  # of truth values it is several times quicker than of numbers
    values = scores[where]
    if len(values) > k:
        least = np.partition(values, len(values) - k)[len(values) - k]
        kept = np.flatnonzero(values >= least)
        where, values = where[kept], values[kept]
    order = np.lexsort((where, -values))[:k]
    return where[order], values[order].astype(np.float64)


def best_of_rows(scores: Scores, k: int) -> list[Ranked]:
    """`best` of every row.

    The k-th greatest of the groups' greatest scores is no more than the k-th greatest score of a row, so only what
    reaches it is looked at again. Where it is 0 or less, a row is sorted alone.

    Args:
        scores: rows of one length, a multiple of `GROUP`; what fills a row up is 0.
        k: scores per row, at least 1.
    """
    count, length = scores.shape
    groups = length // GROUP
    if groups < k:
        return [best(row, k) for row in scores]
    greatest = scores.reshape(count, GROUP, groups).max(axis=1)
    bound = np.partition(greatest, groups - k, axis=1)[:, groups - k]
    sorted_alone = bound <= 0
    reached = np.flatnonzero(scores >= np.where(sorted_alone, np.inf, bound)[:, None])
    rows, places = np.divmod(reached, length)
    values = scores.reshape(-1)[reached]
    order = np.lexsort((places, -values, rows))
    starts = np.searchsorted(rows, np.arange(count)).tolist()  # sorting keeps each row's stretch
    places, best_values = places[order], values[order].astype(np.float64)
    found: list[Ranked] = [(places[start : start + k], best_values[start : start + k]) for start in starts]
    for row in np.flatnonzero(sorted_alone).tolist():
        found[row] = best(scores[row], k)
    return found


def fuse(rankings: Sequence[Ranked], weights: Sequence[float], k: int) -> Ranked:
    """The best `k` of several rankings by reciprocal rank fusion; equal scores in order of position.

    A passage scores `sum(weight / (60 + rank))` over the rankings that hold it (Cormack, Clarke and Büttcher, 2009).
    Only ranks count, so scores of different kinds need no common scale.

    Args:
        rankings: positions, best first; their scores are not read.
        weights: one per ranking, at least 0.
    """
    scores: dict[int, float] = {}
    for (positions, _), weight in zip(rankings, weights, strict=True):
        for rank, position in enumerate(positions.tolist(), start=1):
            scores[position] = scores.get(position, 0.0) + weight / (RANK_CONSTANT + rank)
    kept = sorted((item for item in scores.items() if item[1] > 0), key=lambda item: (-item[1], item[0]))[:k]
    return np.array([item[0] for item in kept], dtype=np.int64), np.array([item[1] for item in kept])
