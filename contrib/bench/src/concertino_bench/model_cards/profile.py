"""A profile: the figures of one model, worked out from its graded answers.

Accuracy comes with a 95 % interval (Wilson's score interval). Several answers to one task are no independent evidence,
so the interval counts *tasks*, whatever the number of repeats: it is rather too wide than too narrow. An answer that
did not come, because the model was too slow or its server refused the task, is not correct.

Invariant: the profile of the same answers, grades and prices is the same; `evidence` stands for the answers and grades
alone, so a price changes nothing but `usd_per_task`.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from concertino import Prices

from concertino_bench.graders.judge_agreement import wilson
from concertino_bench.tasks.grade import Grader

from .answers import CardQuestion, ModelAnswer, digest
from .tasks import GRADERS, grader_of


class GradedAnswer(NamedTuple):
    """An answer to an item, and whether it is correct."""

    item: CardQuestion
    answer: ModelAnswer
    correct: bool


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of correct answers.

    Attributes:
        accuracy: the share, 0 to 1: the mean over tasks.
        low, high: ends of the 95 % interval.
        tasks: how many tasks it rests on.
        answers: how many answers; more than `tasks` where tasks were repeated.
    """

    accuracy: float
    low: float
    high: float
    tasks: int
    answers: int

    @classmethod
    def of(cls, graded: Iterable[GradedAnswer]) -> Rate:
        """The share among some answers, at least one."""
        by_task: dict[str, list[bool]] = {}
        for item, _, correct in graded:
            # Repeats of a task are not independent, so each task counts once, with its mean.
            by_task.setdefault(item.task.question, []).append(correct)
        shares = [sum(grades) / len(grades) for grades in by_task.values()]
        accuracy = sum(shares) / len(shares)
        low, high = wilson(sum(shares), len(shares))
        return cls(accuracy, low, high, len(shares), sum(map(len, by_task.values())))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "accuracy": round(self.accuracy, 4),
            "low": round(self.low, 4),
            "high": round(self.high, 4),
            "tasks": self.tasks,
            "answers": self.answers,
        }


@dataclass(frozen=True, slots=True)
class Profile:
    """What was measured of a model.

    Attributes:
        model: its name.
        overall: accuracy over all tasks.
        by_kind: accuracy by kind of task.
        input_tokens, output_tokens: mean per answer; None where the server tells none.
        estimated: the tokens are estimates, at least in part.
        seconds_median, seconds_p90: until an answer came.
        usd_per_task: mean $ per answer at the present prices; None if unknown.
        failures: answers that did not come, by status.
        evidence: 64 hex digits that stand for answers and grades.
        at: when the last answer came, in seconds since 1970.
    """

    model: str
    overall: Rate
    by_kind: dict[str, Rate]
    input_tokens: float | None
    output_tokens: float | None
    estimated: bool
    seconds_median: float
    seconds_p90: float
    usd_per_task: float | None
    failures: dict[str, int]
    evidence: str
    at: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; figures are rounded."""
        return {
            "overall": self.overall.to_json(),
            "by_kind": {kind: rate.to_json() for kind, rate in self.by_kind.items()},
            "input_tokens": _rounded(self.input_tokens, 1),
            "output_tokens": _rounded(self.output_tokens, 1),
            "estimated": self.estimated,
            "seconds_median": round(self.seconds_median, 4),
            "seconds_p90": round(self.seconds_p90, 4),
            "usd_per_task": _rounded(self.usd_per_task, 10),
            "failures": self.failures,
        }


def grade(
    pairs: Iterable[tuple[CardQuestion, ModelAnswer]], graders: Sequence[Grader] = tuple(GRADERS.values())
) -> list[GradedAnswer]:
    """Grade answers; one that did not come is not correct."""
    return [
        GradedAnswer(
            item, answer, answer.ok and grader_of(item.task, graders).judge(item.task, answer.text).verdict == "right"
        )
        for item, answer in pairs
    ]


def measure(model: str, graded: Sequence[GradedAnswer], prices: Mapping[str, Prices | None]) -> Profile:
    """The profile of a model's graded answers, of which at least one is an answer indeed.

    Args:
        prices: by model; of a router, those of its models.
    """
    kinds = sorted({item.task.kind for item, _, _ in graded})
    told = [answer for _, answer, _ in graded if answer.usage.tokens]
    # A refusal comes at once and a time-out at its limit; neither says how fast the model is.
    seconds = sorted(answer.seconds for _, answer, _ in graded if answer.ok)
    money = [answer.usd(prices) for _, answer, _ in graded if answer.ok or answer.usage.tokens or answer.usage.usd]
    known = [usd for usd in money if usd is not None]
    return Profile(
        model=model,
        overall=Rate.of(graded),
        by_kind={kind: Rate.of(g for g in graded if g.item.task.kind == kind) for kind in kinds},
        input_tokens=statistics.fmean(a.usage.input_tokens for a in told) if told else None,
        output_tokens=statistics.fmean(a.usage.output_tokens for a in told) if told else None,
        estimated=any(answer.usage.estimated for answer in told),
        seconds_median=statistics.median(seconds),
        seconds_p90=seconds[math.ceil(0.9 * len(seconds)) - 1],
        # One unknown price makes the mean unknown, not smaller.
        usd_per_task=statistics.fmean(known) if known and len(known) == len(money) else None,
        failures=dict(Counter(answer.status for _, answer, _ in graded if not answer.ok)),
        evidence=digest(
            sorted([i.key, i.task.kind, correct, digest(answer.to_json())] for i, answer, correct in graded)
        ),
        at=max(answer.at for _, answer, _ in graded),
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
