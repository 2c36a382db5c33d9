"""How often answers are right: single answers here; several samples of a task in `samples`.

The invariant: an answer that could not be read, and a system that could not begin, are not right; they are never left
out of an accuracy, and count 0 in every other measure of the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from concertino_bench.tasks.grade import Verdict
from concertino_bench.tasks.item import Item

from .metric import Metric, TermColumns, Terms, define


@define(
    unit="share",
    better="higher",
    within="0 to 1",
    formula="mean over tasks of (right samples / samples)",
    source="mean@k over all samples; ParaManager Table 1 (mean@8), Eq. 11",
)
def accuracy(items: Sequence[Item]) -> Terms:
    """How often an answer is right. Every task weighs the same, however many samples it has."""
    return Terms(sum(item.right for item in items) / len(items), 1.0)


@dataclass(frozen=True)
class GraderValue(Metric):
    """The mean of a value of the grader. An item without it is 0 if its kind of task is measured so, else missing.

    Attributes:
        kinds: kinds of tasks that are known to be measured so, in addition to those of the given items.
    """

    kinds: frozenset[str] = field(default=frozenset(), kw_only=True)

    def among(self, items: Iterable[Item]) -> GraderValue:
        """The definition that knows which kinds of these items have the value."""
        kinds = self.kinds | {item.kind for item in items if self.name in item.values}
        return replace(self, kinds=kinds, terms=_value_terms(self.name, kinds))

    def columns(self, groups: Sequence[Sequence[Item]]) -> TermColumns:
        """What each group of items, those of one task, adds."""
        if self.terms is None:
            return super().columns(groups)
        known = self.among(item for group in groups for item in group)
        return super(GraderValue, known).columns(groups)


def value_mean(name: str, among: Iterable[Item] = ()) -> GraderValue:
    """The mean of what the grader calls `name`, such as "f1".

    An answer that was not there, or could not be read, has no such value: it counts 0, as it is not right. So it is
    where another item of its kind of task has the value; items of other kinds are missing.

    Args:
        among: all items of the results, for a system none of whose items may have the value.
    """
    return replace(GRADER_VALUE, name=name, title=name, terms=_value_terms(name, frozenset())).among(among)


def reward_mean(name: str) -> Metric:
    """The mean of what a reward gave, such as "reward gap". An item that it could not score is missing, and not 0."""

    def terms(items: Sequence[Item]) -> Terms | None:
        found = [item.values[name] for item in items if name in item.values]
        return Terms(sum(found) / len(found), 1.0, len(items) - len(found)) if found else None

    formula = "mean over tasks of the mean of `Item.values[name]`"
    return Metric(name, name, "reward", "higher", "", formula, "the reward", "What a reward gave.", terms=terms)


@define(
    unit="share",
    better="higher",
    within="0 to 1",
    formula="mean over tasks of the mean of `Item.share`",
    source="here; MASBENCH (MAS-Orchestra §4) asks for several answers at once",
)
def partial_credit(items: Sequence[Item]) -> Terms:
    """How much of an answer is right, where a task asks for several answers; else the same as accuracy."""
    return Terms(sum(item.share for item in items) / len(items), 1.0)


@define(
    unit="share",
    better="lower",
    within="0 to 1",
    formula="mean over tasks of (unparsable samples / samples)",
    source="here; a wrong answer and one that cannot be read are two faults",
)
def unparsable(items: Sequence[Item]) -> Terms:
    """How often no answer could be read, runs that could not begin included."""
    return Terms(sum(item.verdict is Verdict.UNPARSABLE for item in items) / len(items), 1.0)


GRADER_VALUE = GraderValue(
    "grader_value",
    "value of the grader",
    "share",
    "higher",
    "0 to 1",
    "mean over tasks of the mean of `Item.values[name]`; 0 without it, where another item of the kind has it",
    "the grader that gives it: em, f1 and containment of `exact-match` (SQuAD, Rajpurkar et al. 2016)",
    "A further measure of the same answers, such as token F1. What was not answered counts 0; tasks of a kind that is "
    "not measured so are missing.",
    'value_mean("f1", all_items)(items)',
)


def _value_terms(name: str, kinds: frozenset[str]) -> Callable[[Sequence[Item]], Terms | None]:
    def terms(items: Sequence[Item]) -> Terms | None:
        # Without the 0 a system would raise its mean by giving no answer where it is unsure.
        found = [item.values.get(name, 0.0) for item in items if name in item.values or item.kind in kinds]
        return Terms(sum(found) / len(found), 1.0, len(items) - len(found)) if found else None

    return terms
