"""How often answers are right: single answers here; several samples of a task in `passes` and `votes`.

The invariant: an answer that could not be read, and a system that could not begin, are not right; they are never left
out of an accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence

from concertino_bench.grading import Verdict
from concertino_bench.items import Item

from ._metric import Metric, Terms, define


@define(
    "accuracy", "accuracy", unit="share", better="higher", within="0 to 1",
    formula="mean over tasks of (right samples / samples)",
    source="mean@k over all samples; ParaManager Table 1 (mean@8), Eq. 11",
)  # fmt: skip
def accuracy(items: Sequence[Item]) -> Terms:
    """How often an answer is right. Every task weighs the same, however many samples it has."""
    return Terms(sum(item.right for item in items) / len(items), 1.0)


def mean_at(k: int) -> Metric:
    """`accuracy` over the samples numbered 0 to k-1 only; tasks with fewer than k samples are left out."""
    _check(k)

    def terms(items: Sequence[Item]) -> Terms | None:
        first = first_samples(items, k)
        return None if first is None else Terms(sum(item.right for item in first) / k, 1.0)

    return MEAN_AT_K.named(f"mean@{k}", terms)


def value_mean(name: str) -> Metric:
    """The mean of what the grader calls `name`, such as "f1"; items that lack it are missing."""

    def terms(items: Sequence[Item]) -> Terms | None:
        found = [item.values[name] for item in items if name in item.values]
        return Terms(sum(found) / len(found), 1.0, len(items) - len(found)) if found else None

    return GRADER_VALUE.named(name, terms)


@define(
    "partial_credit", "partial credit", unit="share", better="higher", within="0 to 1",
    formula="mean over tasks of the mean of `Item.share`",
    source="here; MASBENCH (MAS-Orchestra §4) asks for several answers at once",
)  # fmt: skip
def partial_credit(items: Sequence[Item]) -> Terms:
    """How much of an answer is right, where a task asks for several answers; else the same as accuracy."""
    return Terms(sum(item.share for item in items) / len(items), 1.0)


@define(
    "unparsable", "unparsable", unit="share", better="lower", within="0 to 1",
    formula="mean over tasks of (unparsable samples / samples)",
    source="here; a wrong answer and one that cannot be read are two faults",
)  # fmt: skip
def unparsable(items: Sequence[Item]) -> Terms:
    """How often no answer could be read, runs that could not begin included."""
    return Terms(sum(item.verdict is Verdict.UNPARSABLE for item in items) / len(items), 1.0)


MEAN_AT_K = Metric(
    "mean@k", "mean@k", "share", "higher", "0 to 1",
    "mean over tasks of (right among the samples 0 to k-1) / k",
    "avg@k of lighteval; ParaManager Table 1 (k = 8)",
    "Accuracy over the first k samples, by their numbers. Tasks with fewer samples are left out and counted.",
    "mean_at(k)(items)",
)  # fmt: skip
GRADER_VALUE = Metric(
    "grader_value", "value of the grader", "share", "higher", "0 to 1",
    "mean over tasks of the mean of `Item.values[name]`",
    "the grader that gives it: em, f1 and containment of `exact-match` (SQuAD, Rajpurkar et al. 2016)",
    "A further measure of the same answers, such as token F1.",
    'value_mean("f1")(items)',
)  # fmt: skip


def first_samples(items: Sequence[Item], k: int) -> list[Item] | None:
    """The items with the sample numbers 0 to k-1; None if one is not there."""
    first = {item.key.sample: item for item in items if item.key.sample < k}
    return [first[sample] for sample in range(k)] if len(first) == k else None


def _check(k: int) -> None:
    if k < 1:
        raise ValueError(f"k={k}: expected a number of samples, at least 1")
