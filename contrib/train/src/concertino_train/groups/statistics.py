"""How much there is to learn from a batch: how many groups, of what size, with how many different rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .filters import homogeneous
from .keys import TOLERANCE, Bools, Floats, Groups, Ints, as_rewards, equal_within, spread


@dataclass(frozen=True)
class GroupStatistics:
    """Of one batch.

    Attributes:
        groups: how many.
        rows: how many.
        singletons: groups of one row, which have no advantage.
        zero_variance: groups of two rows or more whose rewards are all equal.
        homogeneous: groups of two rows or more whose rewards have a std below the threshold, zero variance included.
        distinct_mean: mean over groups of the number of different rewards, K at most.
        distinct_least: the least of them.
        least, most: range of the rewards.
    """

    groups: int
    rows: int
    singletons: int
    zero_variance: int
    homogeneous: int
    distinct_mean: float
    distinct_least: int
    least: float
    most: float

    @property
    def zero_variance_share(self) -> float:
        """Share of groups of two rows or more, 0 to 1; 0 if there is none."""
        compared = self.groups - self.singletons
        return self.zero_variance / compared if compared else 0.0

    @property
    def homogeneous_share(self) -> float:
        """Share of homogeneous groups among those of two rows or more, 0 to 1; 0 if there is none."""
        compared = self.groups - self.singletons
        return self.homogeneous / compared if compared else 0.0


def distinct_rewards(rewards: Sequence[float] | Floats, groups: Groups, tolerance: float = TOLERANCE) -> Ints:
    """Shape (g,): how many different rewards each group has.

    Args:
        rewards: shape (n,).
        groups: of the n rows.
        tolerance: neighbours that differ by less are one, relative to the largest of the group above 1.
    """
    values = as_rewards(rewards, groups)
    counts = np.zeros(len(groups), dtype=np.int64)
    for number in range(len(groups)):
        # Sorted neighbours are compared, as a set would count two roundings of one reward twice.
        own = np.sort(values[groups.index == number])
        least_step = tolerance * max(1.0, float(np.abs(own).max(initial=0.0)))
        counts[number] = 1 + int((np.diff(own) > least_step).sum()) if len(own) else 0
    return counts


def group_statistics(rewards: Sequence[float] | Floats, groups: Groups, *, threshold: float = 0.1) -> GroupStatistics:
    """The figures of a batch.

    Args:
        rewards: shape (n,).
        groups: of the n rows.
        threshold: std below which a group counts as homogeneous.
    """
    values = as_rewards(rewards, groups)
    several: Bools = groups.sizes > 1
    equal = equal_within(*spread(values, groups), TOLERANCE)
    distinct = distinct_rewards(values, groups)
    return GroupStatistics(
        len(groups),
        len(values),
        int((~several).sum()),
        int((equal & several).sum()),
        int((homogeneous(values, groups, threshold) & several).sum()),
        float(distinct.mean()) if len(groups) else 0.0,
        int(distinct.min()) if len(groups) else 0,
        float(values.min()) if len(values) else 0.0,
        float(values.max()) if len(values) else 0.0,
    )
