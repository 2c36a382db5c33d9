"""What a study found: means over seeds, and paired differences to the first arm, with intervals.

A seed is a pair: both arms began with the same draw of weights, data and questions. The interval of a difference is
Student's t over seeds, 95 %. With three seeds it is wide, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .runs import TrainedArm
from .study import Expected, Study

_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Student's t at 97.5 % by degrees of freedom, up to where its expansion is exact to three digits."""


def students_t(freedom: int) -> float:
    """Student's t at 97.5 %, by degrees of freedom from 1 (Abramowitz and Stegun 26.7.5 beyond 9)."""
    if freedom in _T:
        return _T[freedom]
    z = 1.959964
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


@dataclass(frozen=True)
class IntervalEstimate:
    """A mean over seeds with its interval.

    Attributes:
        mean: over seeds.
        low, high: ends of the 95 % interval; None with one seed.
        error: standard error of the mean; None with one seed.
        values: by seed.
    """

    mean: float
    low: float | None
    high: float | None
    error: float | None
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> IntervalEstimate:
        """An estimate from one value per seed."""
        count = len(values)
        mean = math.fsum(values) / count
        if count < 2:
            return cls(mean, None, None, None, tuple(values))
        error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
        reach = students_t(count - 1) * error
        # Few seeds: with three, the normal distribution would make intervals half as wide as they are.
        return cls(mean, mean - reach, mean + reach, error, tuple(values))

    def text(self) -> str:
        """`0.512 [0.431, 0.593]`."""
        ends = "" if self.low is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.mean:.3f}{ends}"


@dataclass(frozen=True)
class StudyFinding:
    """One measure of one arm.

    Attributes:
        arm, measure: which.
        value: over seeds.
        difference: to the first arm, seed by seed; None for the first arm itself.
        expected: of the difference; None for nothing.
    """

    arm: str
    measure: str
    value: IntervalEstimate
    difference: IntervalEstimate | None = None
    expected: Expected | None = None

    @property
    def held(self) -> bool | None:
        """Whether the expectation held in the mean; None where there was none."""
        if self.expected is None or self.difference is None:
            return None
        return self.expected.held(self.difference.mean)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "expected": self.expected.text() if self.expected else None, "held": self.held}


def findings(study: Study, trained: Sequence[TrainedArm]) -> list[StudyFinding]:
    """All measures of all arms, as far as every seed has them."""
    expected = {(each.arm, each.measure): each for each in study.expects}
    found = []
    for measure in study.measures:
        columns = {arm.name: _column(arm.name, measure, trained) for arm in study.arms}
        first = columns[study.arms[0].name]
        for arm, column in columns.items():
            if not column:
                continue
            shared = sorted(set(column) & set(first))
            # Seed by seed, which takes out what a seed does to both arms.
            pairs = [column[seed] - first[seed] for seed in shared]
            paired = IntervalEstimate.of(pairs) if pairs and arm != study.arms[0].name else None
            value = IntervalEstimate.of([column[seed] for seed in sorted(column)])
            found.append(StudyFinding(arm, measure, value, paired, expected.get((arm, measure))))
    return found


def _column(arm: str, measure: str, trained: Sequence[TrainedArm]) -> dict[int, float]:
    values = {each.seed: each.value(measure) for each in trained if each.arm == arm}
    return {seed: value for seed, value in values.items() if value is not None}


def table(study: Study, found: Sequence[StudyFinding], seeds: int, seconds: float = 0.0) -> str:
    """For people, as Markdown; `seconds` of processor time were spent."""
    spent = f" {seconds:,.0f} CPU-seconds in all." if seconds else ""
    lines = [
        f"## {study.name}",
        "",
        study.question,
        "",
        f"Recipe `{study.recipe}`, {seeds} seeds; intervals are Student's t over seeds, 95 %.{spent}",
        "",
        "| arm | measure | value | difference | expected | held |",
        "|---|---|---|---|---|---|",
    ]
    for each in found:
        difference = each.difference.text() if each.difference else ""
        bar = "" if each.expected is None else each.expected.text()
        held = {None: "", True: "yes", False: "no"}[each.held]
        lines.append(f"| {each.arm} | {each.measure} | {each.value.text()} | {difference} | {bar} | {held} |")
    return "\n".join(lines) + "\n"
