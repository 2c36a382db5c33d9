"""Whether the answers of tasks are those that their texts give: concertino-toy reads and solves the text alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from concertino_toy.problems import GrammarError, read, solve

from concertino_bench.tasks.task import Task


class Disagreement(NamedTuple):
    """A task whose answers are not those of its text.

    Its kind is `differs` (another answer), `unread` (outside the grammar) or `no answer` (quantities that define each
    other in a circle, or a number that the text does not have).
    """

    id: str
    kind: Literal["differs", "unread", "no answer"]
    detail: str


@dataclass
class AnswerCheck:
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


def check(tasks: Iterable[Task]) -> AnswerCheck:
    """Check tasks one by one."""
    report = AnswerCheck()
    for task in tasks:
        difference = _difference(task)
        rows, agreed = report.groups.get((task.axis, task.level), (0, 0))
        report.groups[task.axis, task.level] = rows + 1, agreed + (difference is None)
        if difference is not None:
            report.differences.append(difference)
    return report


def _difference(task: Task) -> Disagreement | None:
    try:
        question = read(task.question)
    except GrammarError as error:
        return Disagreement(task.id, "unread", str(error))
    try:
        # Two steps, because a text that is outside the grammar and one without a solution are different faults.
        found = tuple(map(str, solve(question).answers))
    except GrammarError as error:
        return Disagreement(task.id, "no answer", str(error))
    if found == task.answers:
        return None
    detail = f"the text gives {', '.join(found)}; the row says {', '.join(task.answers)}"
    return Disagreement(task.id, "differs", detail)
