"""Dynamic sampling (DAPO, arXiv 2503.14476, section 3.2): draw more questions until enough groups have a signal.

A group of which all rollouts are right, or all wrong, has no advantages. Instead of a smaller batch, further questions
are sampled; what is left over is kept for the next step, unless it has become too old.

    sampler.begin(step)
    while wanted := sampler.wanted():
        sampler.offer(sample(wanted))
    groups = sampler.take()

The invariant: a step gets at most `groups` groups, from at most `most_rounds` rounds; and the sampler can be written
down at any point and taken up again, so that a resumed training sees the same batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from concertino import UsageError
from pydantic import Field

from concertino_train.settings import Count, Number, Section


@dataclass(frozen=True)
class Sampled:
    """A group of rollouts.

    Attributes:
        key: of the group.
        rewards: of its G rollouts.
        correct: their grades, each 0 to 1.
        payload: whatever is to be trained on, as plain JSON data.
        step: in which step it was sampled: how old the policy is that wrote it.
    """

    key: str
    rewards: tuple[float, ...]
    correct: tuple[float, ...] = ()
    payload: Any = None
    step: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "rewards": list(self.rewards), "correct": list(self.correct)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Sampled:
        """The inverse of `to_json`."""
        return cls(**{**data, "rewards": tuple(data["rewards"]), "correct": tuple(data.get("correct", ()))})


class SamplerSettings(Section):
    """Dynamic sampling (DAPO).

    Attributes:
        enabled: without, every group is taken, and one round is enough.
        by: what has to differ within a group: `correct` as in DAPO, or `reward`.
        oversample: how many groups are asked for, for each that is missing.
        most_rounds: rounds of sampling in one step.
        most_groups: groups that are sampled in one step at most; None for no bound but the rounds.
        max_age: steps that a group may wait; 0 keeps none for the next step, which is on-policy.
    """

    enabled: bool = False
    by: Literal["correct", "reward"] = "correct"
    oversample: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    most_rounds: Count = 10
    most_groups: Count | None = None
    max_age: Number = 0


@dataclass
class _Counts:
    """Counts of one step."""

    rounds: int = 0
    sampled: int = 0
    all_right: int = 0
    all_wrong: int = 0
    all_equal: int = 0
    stale: int = 0


class DynamicSampler:
    """Keeps groups until there are enough.

    Attributes:
        settings: how long it is sampled.
        groups: groups that a step needs.
        buffer: groups that are kept, oldest first.
        step: the current one.
    """

    def __init__(self, settings: SamplerSettings, groups: int) -> None:
        self.settings, self.groups = settings, groups
        self.buffer: list[Sampled] = []
        self.step = 0
        self._counts = _Counts()

    def begin(self, step: int) -> None:
        """Begin a step; what is too old is dropped."""
        self.step, self._counts = step, _Counts()
        # An old group was written by old weights, and its log-probabilities would make ratios far from 1.
        fresh = [each for each in self.buffer if step - each.step <= self.settings.max_age]
        self._counts.stale = len(self.buffer) - len(fresh)
        self.buffer = fresh

    def wanted(self) -> int:
        """How many groups to sample now; 0 when there are enough, or the limits are reached."""
        settings, counts = self.settings, self._counts
        # Groups kept from earlier steps count, so a step asks for less when the last one sampled too many.
        missing = self.groups - len(self.buffer)
        if missing <= 0 or counts.rounds >= (settings.most_rounds if settings.enabled else 1):
            return 0
        asked = math.ceil(missing * settings.oversample) if settings.enabled else missing
        return asked if settings.most_groups is None else max(0, min(asked, settings.most_groups - counts.sampled))

    def offer(self, groups: Iterable[Sampled]) -> int:
        """Take a round of groups; how many of them are kept.

        Raises:
            UsageError: a group was sampled in another step, or lacks the grades that are compared.
        """
        self._counts.rounds += 1
        kept = 0
        for group in groups:
            if group.step != self.step:
                raise UsageError(f"group {group.key} was sampled in step {group.step}, and this is step {self.step}")
            self._counts.sampled += 1
            if self._says_something(group):
                self.buffer.append(group)
                kept += 1
        return kept

    def _says_something(self, group: Sampled) -> bool:
        if not self.settings.enabled:
            return True
        values = group.rewards if self.settings.by == "reward" else group.correct
        if len(values) != len(group.rewards):
            raise UsageError(f"group {group.key} has {len(group.rewards)} rewards and {len(values)} grades")
        if values and max(values) > min(values):
            return True
        self._counts.all_equal += 1
        # DAPO section 3.2 tells both apart: all right says that questions are too easy, all wrong too hard.
        if group.correct:
            self._counts.all_right += min(group.correct) == max(group.correct) == 1
            self._counts.all_wrong += min(group.correct) == max(group.correct) == 0
        return False

    def take(self) -> list[Sampled]:
        """The groups of this step, oldest first: at most as many as it needs; the rest waits."""
        taken, self.buffer = self.buffer[: self.groups], self.buffer[self.groups :]
        return taken

    def figures(self) -> dict[str, int]:
        """Of this step: rounds, groups sampled, groups without a difference and why, groups dropped for their age."""
        return {**asdict(self._counts), "buffered": len(self.buffer)}

    def dump(self) -> dict[str, Any]:
        """Everything but the settings, as plain JSON data."""
        return {"step": self.step, "counts": asdict(self._counts), "buffer": [each.to_json() for each in self.buffer]}

    def restore(self, dumped: Mapping[str, Any]) -> None:
        """Continue where `dump` was made."""
        self.step = dumped["step"]
        self._counts = _Counts(**dumped["counts"])
        self.buffer = [Sampled.from_json(each) for each in dumped["buffer"]]
