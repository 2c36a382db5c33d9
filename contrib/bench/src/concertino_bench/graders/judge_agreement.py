"""How far a grader agrees with given verdicts: accuracy and Cohen's kappa, with intervals of 95 %.

Accuracy is the share of equal verdicts, with Wilson's interval. Kappa is what of it is beyond chance: 1 is perfect, 0
is what guessing with the same shares of right would reach. Its interval is that of Fleiss, Cohen and Everitt (1969),
for large samples. The invariant: what a grader could not read is counted apart, and is in neither figure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from concertino_bench.tasks.grade import Verdict

# The quantile of the normal distribution that leaves 2.5 % on either side.
_Z = 1.959963984540054
Interval = tuple[float, float]


@dataclass(frozen=True)
class Agreement:
    """Two series of verdicts against each other.

    Attributes:
        items: compared, that is without `unparsable`.
        unparsable: items that the grader could not read.
        both_right, too_lenient, too_strict, both_wrong: how often; lenient is right where the given verdict is wrong.
        accuracy: share of equal verdicts; None without items.
        accuracy_interval: 95 %, by Wilson.
        kappa: Cohen's; None where chance alone would agree always.
        kappa_interval: 95 %, within -1 to 1.
    """

    items: int
    unparsable: int
    both_right: int
    too_lenient: int
    too_strict: int
    both_wrong: int
    accuracy: float | None
    accuracy_interval: Interval | None
    kappa: float | None
    kappa_interval: Interval | None


def agreement(verdicts: Sequence[Verdict], given: Sequence[bool]) -> Agreement:
    """Compare a grader's verdicts with given ones, such as a person's.

    Args:
        verdicts: of the grader.
        given: whether each answer is right.

    Raises:
        ValueError: the two have different lengths.
    """
    if len(verdicts) != len(given):
        raise ValueError(f"{len(verdicts)} verdicts against {len(given)} given ones; expected as many")
    counts = {(ours, theirs): 0 for ours in (True, False) for theirs in (True, False)}
    for verdict, right in zip(verdicts, given, strict=True):
        if verdict is not Verdict.UNPARSABLE:
            counts[verdict is Verdict.RIGHT, bool(right)] += 1
    items = sum(counts.values())
    same = counts[True, True] + counts[False, False]
    kappa, interval = _kappa(counts, items)
    return Agreement(
        items,
        len(verdicts) - items,
        counts[True, True],
        counts[True, False],
        counts[False, True],
        counts[False, False],
        same / items if items else None,
        wilson(same, items) if items else None,
        kappa,
        interval,
    )


def wilson(hits: float, items: int) -> Interval:
    """Wilson's interval of 95 % of a share: of `hits`, which may be a sum of shares, in `items` trials."""
    share, weight = hits / items, _Z * _Z / items
    middle = (share + weight / 2) / (1 + weight)
    half = _Z / (1 + weight) * math.sqrt(share * (1 - share) / items + weight / (4 * items))
    return max(0.0, middle - half), min(1.0, middle + half)


def _kappa(counts: dict[tuple[bool, bool], int], items: int) -> tuple[float | None, Interval | None]:
    if not items:
        return None, None
    share = {cell: count / items for cell, count in counts.items()}
    ours = {side: share[side, True] + share[side, False] for side in (True, False)}
    theirs = {side: share[True, side] + share[False, side] for side in (True, False)}
    seen = share[True, True] + share[False, False]
    chance = sum(ours[side] * theirs[side] for side in (True, False))
    # Both sides gave one and the same verdict always: nothing is left beyond chance to measure.
    if chance >= 1:
        return None, None
    kappa = (seen - chance) / (1 - chance)
    agreed = sum(share[side, side] * (1 - (ours[side] + theirs[side]) * (1 - kappa)) ** 2 for side in (True, False))
    apart = sum(share[side, not side] * (theirs[side] + ours[not side]) ** 2 for side in (True, False))
    variance = agreed + (1 - kappa) ** 2 * apart - (kappa - chance * (1 - kappa)) ** 2
    # Rounding can leave the variance of perfect agreement a little below 0.
    half = _Z * math.sqrt(max(0.0, variance) / items) / (1 - chance)
    return kappa, (max(-1.0, kappa - half), min(1.0, kappa + half))
