"""Advantages: how much better a row is than the others of its group.

A = (r - baseline) / (std + epsilon). The published systems differ in all of it: ParaManager Eq. 19 adds epsilon to the
std of the group, ToolOrchestra has none and divides 0 by 0 where all are equal, AT-GRPO Eq. 1 takes the sample std, and
libraries give a group of one the advantage of its raw reward. Here everything is a setting, and three things are not:
a group of one, and one whose rewards are all equal, has advantages of 0 and counts in no denominator.

The invariant: the advantages of a group add up to 0 (unless they are clipped), and the order of rows does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from concertino_train.settings import Above, Amount, Section

from .keys import TOLERANCE, Bools, Floats, Groups, as_rewards, equal_within, per_group, spread


class AdvantageSettings(Section):
    """How rewards become advantages.

    Attributes:
        std: what the difference is divided by: nothing (Dr. GRPO), the std of the group (GRPO), or that of all rows of
            the batch that count (in a training of one process only).
        ddof: 1 for the sample std (n - 1), 0 for the std of the population (n).
        epsilon: added to the std.
        baseline: the mean of the group, or of the others of the group (RLOO), which makes differences n / (n - 1)
            times as large.
        clip: greatest absolute advantage; None for no bound. ToolOrchestra's code clips at 3.
    """

    std: Literal["none", "group", "batch"] = "group"
    ddof: Literal[0, 1] = 1
    epsilon: Amount = 1e-6
    baseline: Literal["mean", "leave_one_out"] = "mean"
    clip: Above | None = None


class Advantages(NamedTuple):
    """The result.

    Attributes:
        values: shape (n,): the advantage of each row; 0 where it does not count.
        counted: shape (n,): rows that belong into denominators: their group has two rows or more, and their rewards
            differ.
        means: shape (g,): mean reward of each group.
        stds: shape (g,): std of each group's rewards, with `ddof`; 0 for a group of one.
    """

    values: Floats
    counted: Bools
    means: Floats
    stds: Floats


def compute_advantages(
    rewards: Sequence[float] | Floats, groups: Groups, settings: AdvantageSettings | None = None
) -> Advantages:
    """Advantages of rows within their groups.

    Args:
        rewards: shape (n,).
        groups: of the n rows.
        settings: how.

    Raises:
        UsageError: shapes differ, or a reward is not finite.
    """
    settings = settings or AdvantageSettings()
    values = as_rewards(rewards, groups)
    counts = groups.sizes.astype(np.float64)
    means = per_group(values, groups) / np.maximum(1.0, counts)
    difference = values - means[groups.index]
    # The mean is taken off twice, which removes its rounding.
    difference -= (per_group(difference, groups) / np.maximum(1.0, counts))[groups.index]
    stds = np.sqrt(per_group(difference**2, groups) / np.maximum(1.0, counts - settings.ddof))
    useful = (counts > 1) & ~equal_within(*spread(values, groups), TOLERANCE)
    counted = useful[groups.index]
    # Rounding leaves a tiny std where all rewards are equal, and the division would blow it up.
    stds[~useful] = 0.0
    if settings.baseline == "leave_one_out":
        # RLOO: r minus the mean of the others is (r - mean) · n / (n - 1).
        difference = difference * (counts / np.maximum(1.0, counts - 1.0))[groups.index]
    # ParaManager Eq. 19; AT-GRPO Eq. 1, whose F_norm is `std`.
    result = np.where(counted, difference / _divisor(values, stds, counted, groups, settings), 0.0)
    if settings.clip is not None:
        result = np.clip(result, -settings.clip, settings.clip)
    return Advantages(result, counted, means, stds)


def _divisor(values: Floats, stds: Floats, counted: Bools, groups: Groups, settings: AdvantageSettings) -> Floats:
    """Shape (n,), above 0."""
    if settings.std == "none":
        return np.ones(len(values))
    if settings.std == "group":
        divisor = stds[groups.index] + settings.epsilon
    else:
        batch = float(np.std(values[counted], ddof=settings.ddof)) if counted.any() else 0.0
        divisor = np.full(len(values), batch + settings.epsilon)
    # Rows that do not count are divided by 1, so that 0 / 0 warns nowhere; their result is 0 anyway.
    return np.where(counted, divisor, 1.0)
