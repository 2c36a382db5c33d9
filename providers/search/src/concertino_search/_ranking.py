"""Rankings: the best of many scores, for one query or for a batch.

Invariant: equal scores keep the order of the corpus, a score of 0 is no result, and a batch gives what its rows give
one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ranked = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Positions of passages, best first, and their scores."""
Scores = npt.NDArray[np.floating]
GROUP = 32
"""Passages whose greatest score stands for all of them in the first look at a row; they lie evenly spread in it."""


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
    reaches it is looked at again. Where it is 0 or less, a row is sorted by itself.

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
    places, values = places[order], values[order].astype(np.float64)
    found = [(places[start : start + k], values[start : start + k]) for start in starts]
    for row in np.flatnonzero(sorted_alone).tolist():
        found[row] = best(scores[row], k)
    return found
