"""Whether the answers of tasks are those that the text gives, worked out by the second opinion of `oracle`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from concertino_bench.tasks.task import Task

from . import oracle
from .reading import QuestionReadingError


class Disagreement(NamedTuple):
    """A task that does not agree.

    Its kind is `differs` (another answer), `ambiguous` (the text does not tell how deep a category lies; a layer deeper
    the answers agree), `unread` (outside the grammar) or `no answer`.
    """

    id: str
    kind: Literal["differs", "ambiguous", "unread", "no answer"]
    detail: str


@dataclass
class CheckReport:
    """The result of a check.

    Attributes:
        groups: (axis, level) → (tasks, those that agree).
        differences: every task that does not agree.
    """

    groups: dict[tuple[str, int | None], tuple[int, int]] = field(default_factory=dict)
    differences: list[Disagreement] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many tasks were checked."""
        return sum(rows for rows, _ in self.groups.values())

    @property
    def agreed(self) -> int:
        """How many agree."""
        return sum(agreed for _, agreed in self.groups.values())

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        groups = [
            {"axis": axis, "level": level, "rows": rows, "agreed": agreed}
            for (axis, level), (rows, agreed) in self.groups.items()
        ]
        differences = [difference._asdict() for difference in self.differences]
        return {"rows": self.rows, "agreed": self.agreed, "groups": groups, "differences": differences}


def check(tasks: Iterable[Task]) -> CheckReport:
    """Check tasks one by one."""
    report = CheckReport()
    for task in tasks:
        difference = compare(task)
        rows, agreed = report.groups.get((task.axis, task.level), (0, 0))
        report.groups[task.axis, task.level] = rows + 1, agreed + (difference is None)
        if difference is not None:
            report.differences.append(difference)
    return report


def compare(task: Task) -> Disagreement | None:
    """How a task's answers differ from those of its text; None if they agree."""
    try:
        found = tuple(map(str, oracle.answers(task.question)))
        if found == task.answers:
            return None
        others = {tuple(map(str, other)) for other in oracle.other_answers(task.question)}
    except QuestionReadingError as error:
        return Disagreement(task.id, "unread", str(error))
    except oracle.NoAnswer as error:
        return Disagreement(task.id, "no answer", str(error))
    kind: Literal["differs", "ambiguous"] = "ambiguous" if task.answers in others else "differs"
    return Disagreement(task.id, kind, f"the text gives {', '.join(found)}; the row says {', '.join(task.answers)}")
