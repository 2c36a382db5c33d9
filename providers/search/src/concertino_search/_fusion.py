"""Fusion: one ranking of several, by reciprocal rank (Cormack, Clarke and Büttcher, 2009).

A passage scores `sum(weight / (60 + rank))` over the rankings that hold it. Ranks alone count, so scores of different
kinds need no common scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ._ranking import Ranked

RANK_CONSTANT = 60
"""How much less the first ranks stand out; 60 is the value of the paper."""


def fuse(rankings: Sequence[Ranked], weights: Sequence[float], k: int) -> Ranked:
    """The best `k` of several rankings; equal scores in order of position.

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
