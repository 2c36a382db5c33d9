"""What a group is: rows that answer the same prompt, so that their rewards can be compared.

For whole trajectories that is the question. Where roles speak in turns it is the environment, the role and the turn
(AT-GRPO, section 4.1): the prompt of a later turn holds what was said before, so that rows of other turns, other roles
or other questions are not comparable.

The invariant: all rows of a group have one identical prompt, token by token; `Groups.of` refuses anything else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from concertino import UsageError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
TOLERANCE = 1e-9
"""Rewards that differ by less are the same, relative to the largest above 1."""


class MixedGroupError(UsageError):
    """Rows of one group have different prompts, so their rewards say nothing about each other."""


class GroupKey(NamedTuple):
    """Which group.

    Attributes:
        question: the question, or the one instance of an environment.
        agent: the role that speaks; empty for whole trajectories.
        turn: counted from 1; 0 for whole trajectories.
    """

    question: str
    agent: str = ""
    turn: int = 0

    @property
    def of_turn(self) -> bool:
        """Whether it is a group of one role in one turn."""
        return bool(self.agent or self.turn)

    def __str__(self) -> str:
        return f"{self.question}, {self.agent} in turn {self.turn}" if self.of_turn else self.question


def prompt_digest(ids: Sequence[int]) -> str:
    """SHA-256 of token ids, as 64 hex digits: equal exactly for equal ids, in any process."""
    # Width and byte order are fixed, since ranks on different machines compare digests.
    return hashlib.sha256(np.asarray(ids, dtype="<i8").tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a batch.

    Attributes:
        keys: of the g groups, in the order in which they first occur.
        index: shape (n,): for each row, the number of its group.
    """

    keys: tuple[GroupKey, ...]
    index: Ints

    @classmethod
    def of(cls, keys: Sequence[GroupKey], prompts: Sequence[str] | None = None, *, size: int | None = None) -> Groups:
        """Group rows by their keys.

        Args:
            keys: of the n rows.
            prompts: digests of the n prompts (`prompt_digest`); without them, prompts are not compared.
            size: how many rows every group has to have.

        Raises:
            MixedGroupError: two rows of a group have different prompts; names the group and the rows.
            UsageError: the numbers of keys and prompts differ, or a group has another size.
        """
        if prompts is not None and len(prompts) != len(keys):
            raise UsageError(f"{len(keys)} keys and {len(prompts)} prompts; expected one prompt digest for each row")
        numbers: dict[GroupKey, int] = {}
        index = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        groups = cls(tuple(numbers), index)
        if prompts is not None:
            groups._refuse_mixed(prompts)
        if size is not None:
            groups._refuse_other_sizes(size)
        return groups

    def _refuse_mixed(self, prompts: Sequence[str]) -> None:
        first: dict[int, int] = {}
        for row, number in enumerate(self.index.tolist()):
            other = first.setdefault(number, row)
            if prompts[other] != prompts[row]:
                raise MixedGroupError(
                    f"group {self.keys[number]}: rows {other} and {row} have different prompts "
                    f"({prompts[other][:12]}, {prompts[row][:12]}); give rows one key only if their prompts are the "
                    "same, or put role and turn into the key"
                )

    def _refuse_other_sizes(self, size: int) -> None:
        for key, count in zip(self.keys, self.sizes.tolist(), strict=True):
            if count != size:
                raise UsageError(f"group {key} has {count} rows; expected {size} in every group")

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def sizes(self) -> Ints:
        """Shape (g,): rows of each group."""
        return np.bincount(self.index, minlength=len(self.keys)).astype(np.int64)


def as_rewards(rewards: Sequence[float] | Floats, groups: Groups) -> Floats:
    """Rewards as an array.

    Raises:
        UsageError: there are not as many as rows, or one is not finite.
    """
    values = np.asarray(rewards, dtype=np.float64)
    if values.shape != groups.index.shape:
        raise UsageError(f"rewards of shape {values.shape} for {len(groups.index)} rows; expected one number for each")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise UsageError(f"the reward of row {row} (group {groups.keys[groups.index[row]]}) is {values[row]}")
    return values


def per_group(values: Floats, groups: Groups) -> Floats:
    """Shape (g,): sums of a value over the rows of each group."""
    return np.bincount(groups.index, weights=values, minlength=len(groups)).astype(np.float64)


def spread(values: Floats, groups: Groups) -> tuple[Floats, Floats]:
    """Shape (g,) twice: least and greatest value of the rows of each group."""
    least, most = np.full(len(groups), np.inf), np.full(len(groups), -np.inf)
    np.minimum.at(least, groups.index, values)
    np.maximum.at(most, groups.index, values)
    return least, most


def equal_within(least: Floats, most: Floats, tolerance: float) -> Bools:
    """Shape (g,): groups whose rewards are all the same, but for rounding."""
    # Relative to the largest reward, but never below 1: rewards near 0 would make every rounding a difference.
    return (most - least) <= tolerance * np.maximum(1.0, np.maximum(np.abs(least), np.abs(most)))
