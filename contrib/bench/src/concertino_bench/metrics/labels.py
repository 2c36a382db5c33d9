"""How well tasks with labels are told apart: F1 of each label, averaged over labels (macro) or over tasks (micro).

The invariant: a right item said its task's label, a wrong one said what the grader read; an item without an answer said
nothing, so it is a miss of its label and of no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from concertino.text import answer_key

from concertino_bench.tasks.item import Item
from concertino_bench.tasks.task import Task

from .metric import Metric, TermColumns

if TYPE_CHECKING:
    import numpy as np

Average = Literal["macro", "micro"]


@dataclass(frozen=True)
class LabelF1(Metric):
    """F1 over labels; not a ratio, so it adds up three columns per label: hits, wrong claims, misses."""

    average: str = field(default="macro", kw_only=True)
    labels: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def columns(self, groups: Sequence[Sequence[Item]]) -> TermColumns:
        """Per task the hits, wrong claims and misses of each label."""
        used = [[item for item in group if item.key.task in self.labels] for group in groups]
        said = [[(self.labels[item.key.task], _said(item, self.labels)) for item in group] for group in used]
        names = sorted({name for pairs in said for pair in pairs for name in pair if name})
        place = {name: 3 * number for number, name in enumerate(names)}
        rows = [[0.0] * (3 * len(names)) for _ in groups]
        for row, pairs in zip(rows, said, strict=True):
            for gold, found in pairs:
                if gold == found:
                    row[place[gold]] += 1
                else:
                    row[place[gold] + 2] += 1
                    if found:
                        row[place[found] + 1] += 1
        missing = sum(map(len, groups)) - sum(map(len, used))
        return TermColumns(rows, sum(map(bool, used)), missing)

    def one(self, sums: Sequence[float]) -> float | None:
        """The F1; None without an item."""
        import numpy as np

        value = self.many(np.asarray([sums], dtype=float)) if sums else None
        return None if value is None or np.isnan(value[0]) else float(value[0])

    def many(self, sums: np.ndarray) -> np.ndarray:
        """The F1 of many draws."""
        import numpy as np

        hits, claims, misses = (sums[:, start::3] for start in range(3))
        if self.average == "micro":
            hits, claims, misses = (each.sum(axis=1, keepdims=True) for each in (hits, claims, misses))
        with np.errstate(divide="ignore", invalid="ignore"):
            each = 2 * hits / (2 * hits + claims + misses)
            # A label that a draw does not have is no label of that draw.
            there = ~np.isnan(each)
            values: np.ndarray = np.where(there, each, 0.0).sum(axis=1) / there.sum(axis=1)
        return values


LABEL_F1 = Metric(
    "label_f1",
    "F1 over labels",
    "share",
    "higher",
    "0 to 1",
    "macro: mean over labels of 2 TP / (2 TP + FP + FN); micro: the same of the sums over all labels",
    "Manning, Raghavan and Schütze 2008, Introduction to Information Retrieval, §13.6 and §8.3",
    "How well labels, such as letters of choices or names of classes, are told apart. In macro every label counts the "
    "same, in micro every task. An answer that cannot be read is a miss and no wrong claim.",
    'label_f1("macro", tasks)(items)',
)


def label_f1(average: Average, tasks: Iterable[Task]) -> Metric:
    """F1 over the labels that are the answers of tasks; items of other tasks are missing.

    Raises:
        ValueError: the average is another one, or a task has no answer or several.
    """
    if average not in ("macro", "micro"):
        raise ValueError(f"label_f1({average!r}): expected 'macro' or 'micro'")
    labels = {task.id: answer_key(task.answer) for task in tasks}
    name = f"{average}_f1"
    return LabelF1(
        name,
        name.replace("_", " "),
        LABEL_F1.unit,
        LABEL_F1.better,
        LABEL_F1.within,
        LABEL_F1.formula,
        LABEL_F1.source,
        LABEL_F1.summary,
        LABEL_F1.use,
        average=average,
        labels=labels,
    )


def _said(item: Item, labels: Mapping[str, str]) -> str:
    """The label that an item gives; empty where it gives none."""
    if item.right:
        return labels[item.key.task]
    return answer_key(item.found[-1]) if item.found else ""
