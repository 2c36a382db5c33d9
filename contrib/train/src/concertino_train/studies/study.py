"""A study: the same training several times, with one thing changed, and what that changed.

The invariant: arms of a study differ in nothing but the settings that they name; every arm has the same seeds, and arms
that share their teaching begin with the very same weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concertino import UsageError

SEEDS = (0, 1, 2)
"""Seeds that every arm is trained with, unless others are asked for."""


@dataclass(frozen=True)
class Expected:
    """What is expected of one measure of an arm: its difference to the first arm, in the mean over seeds.

    Attributes:
        arm, measure: of which.
        least, most: bounds of the difference; None for no bound.
    """

    arm: str
    measure: str
    least: float | None = None
    most: float | None = None

    def held(self, difference: float) -> bool:
        """Whether a difference is as expected."""
        above = self.least is None or difference >= self.least
        return above and (self.most is None or difference <= self.most)

    def text(self) -> str:
        """`>= 0.05`, `<= -0.1`, `-0.02 to 0.02`."""
        if self.least is not None and self.most is not None:
            return f"{self.least:g} to {self.most:g}"
        return f">= {self.least:g}" if self.least is not None else f"<= {self.most:g}"


@dataclass(frozen=True)
class Arm:
    """One way to train.

    Attributes:
        name: what tables call it.
        teach: `key=value` for collecting and supervised learning, and all that follows.
        learn: `key=value` for reinforcement learning; None for none: what was taught is measured as it is.
        measure: `key=value` for the evaluation alone.
    """

    name: str
    teach: tuple[str, ...] = ()
    learn: tuple[str, ...] | None = ()
    measure: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """Arms, and what is compared of them.

    Attributes:
        name: "diversity".
        question: what it is to answer, in a sentence.
        recipe: whose settings the arms change.
        arms: the first is what the others are compared with.
        measures: names in the evaluation: of metrics, of figures, `reward`; or of the training: `sampled_tokens`,
            `learning_cpu_seconds`.
        settings: `key=value` for all arms.
        expects: what should come of it.
        measure: `key=value` for all evaluations.
    """

    name: str
    question: str
    recipe: str
    arms: tuple[Arm, ...]
    measures: tuple[str, ...]
    settings: tuple[str, ...] = ()
    expects: tuple[Expected, ...] = ()
    measure: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        if len(names) < 2 or len(set(names)) < len(names):
            raise UsageError(f"study {self.name}: arms {names}; expected two or more, each with a name of its own")
        for each in self.expects:
            if each.arm not in names[1:] or each.measure not in self.measures:
                raise UsageError(
                    f"study {self.name}: expects {each.arm}, {each.measure}; the study has no such arm or measure"
                )
            if each.least is None and each.most is None:
                raise UsageError(f"study {self.name}: expects nothing of {each.arm}, {each.measure}; give a bound")


def check_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """Seeds, each once.

    Raises:
        UsageError: there are none, or one is there twice.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds={list(seeds)}: expected one or more different numbers")
    return tuple(seeds)
