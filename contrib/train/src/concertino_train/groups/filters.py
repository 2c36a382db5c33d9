"""Filters: rows that are left out of an update, each with the reason.

ToolOrchestra (section 3.2) leaves out groups whose rewards hardly differ, texts without the form of a call, and
rollouts without a valid answer. Rewards that differ a little would otherwise be blown up to unit variance by the
division through their std.

The invariant: a filter only marks. Statistics of groups are taken before it, so what it keeps stays bit by bit as it
was; and a row has one reason, the first that applies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from concertino import UsageError

from concertino_train.settings import Above, Section

from .keys import Bools, Floats, Groups, as_rewards, per_group

REASONS = ("homogeneous", "format", "invalid", "overlong")
"""Why a row is left out, in the order in which filters are asked."""


class Filtered(NamedTuple):
    """What is kept.

    Attributes:
        keep: shape (n,).
        reasons: for each row why it is left out; empty for what is kept.
    """

    keep: Bools
    reasons: tuple[str, ...]

    def counts(self) -> dict[str, int]:
        """How many rows each reason took, `kept` included."""
        return dict(Counter(reason or "kept" for reason in self.reasons))


class Filters(Section):
    """What is left out of an update.

    Attributes:
        homogeneity: leave out groups whose rewards have a std (n - 1) below this, such as ToolOrchestra's 0.1; None for
            no such filter.
        format: leave out rows with a text that lacks the exact form.
        invalid: leave out rows without an answer; not for the texts that a tree tries.
        overlong: `drop` rows of which a text was cut off, or `keep` them.
    """

    homogeneity: Above | None = None
    format: bool = False
    invalid: bool = False
    overlong: Literal["keep", "drop"] = "keep"

    @property
    def any(self) -> bool:
        """Whether it can leave out anything."""
        return self.homogeneity is not None or self.format or self.invalid or self.overlong == "drop"

    def apply(
        self,
        rewards: Sequence[float] | Floats,
        groups: Groups,
        *,
        exact: Sequence[bool] | None = None,
        answered: Sequence[bool] | None = None,
        truncated: Sequence[bool] | None = None,
    ) -> Filtered:
        """Mark rows.

        Args:
            rewards: shape (n,), before any clipping.
            groups: of the n rows.
            exact: shape (n,): all texts of the row have the exact form; needed by `format`.
            answered: shape (n,): there is an answer; needed by `invalid`.
            truncated: shape (n,): a text was cut off; needed by `overlong='drop'`.

        Raises:
            UsageError: what a filter needs is not given, or has another shape.
        """
        rows = len(groups.index)
        marks: dict[str, Bools] = {}
        if self.homogeneity is not None:
            marks["homogeneous"] = homogeneous(rewards, groups, self.homogeneity)[groups.index]
        if self.format:
            marks["format"] = ~_given("format", "exact", exact, rows)
        if self.invalid:
            marks["invalid"] = ~_given("invalid", "answered", answered, rows)
        if self.overlong == "drop":
            marks["overlong"] = _given("overlong", "truncated", truncated, rows)
        # In the order of REASONS and not of the settings, so that counts of reasons are comparable between trainings.
        reasons = tuple(next((why for why in REASONS if why in marks and marks[why][row]), "") for row in range(rows))
        return Filtered(np.array([not reason for reason in reasons], dtype=np.bool_), reasons)


def homogeneous(rewards: Sequence[float] | Floats, groups: Groups, threshold: float = 0.1) -> Bools:
    """Shape (g,): groups whose rewards have a std below a threshold; a group of one always.

    Args:
        rewards: shape (n,).
        groups: of the n rows.
        threshold: in the unit of the reward.
    """
    values = as_rewards(rewards, groups)
    sizes = groups.sizes.astype(np.float64)
    means = per_group(values, groups) / np.maximum(1.0, sizes)
    squares = per_group((values - means[groups.index]) ** 2, groups)
    std = np.sqrt(squares / np.maximum(1.0, sizes - 1.0))
    # A group of one has nothing that differs, and its std is 0 by the division above.
    return np.asarray((std < threshold) | (sizes < 2))


def _given(filter_: str, name: str, marks: Sequence[bool] | None, rows: int) -> Bools:
    if marks is None or len(marks) != rows:
        got = "nothing" if marks is None else f"{len(marks)} marks"
        raise UsageError(f"the filter {filter_!r} needs {name}, one mark for each of {rows} rows; got {got}")
    return np.asarray(marks, dtype=np.bool_)
