"""concertino-bench: tasks with known answers, and graders that give reasons.

Here is the generator of MASBENCH-like questions on five axes (depth, horizon, breadth, parallel, robustness), an
evaluator that checks their answers from the text alone, the columns of the published rows, and a grader. Importing this
module imports none of them; the names and the hooks below do.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from .checking import Difference, Report, check
    from .grading import Grade, Verdict, grade
    from .masbench import AXES, LEVELS, SPLITS, generate, make_task
    from .oracle import Measures, NoAnswer, answers, measure, other_answers
    from .reading import ReadingError
    from .rows import RowError, from_row, read_jsonl, to_row, write_jsonl
    from .tasks import Task, TaskSet
    from .wording import RULES

_HOMES = {
    "AXES": "masbench",
    "LEVELS": "masbench",
    "RULES": "wording",
    "SPLITS": "masbench",
    "Difference": "checking",
    "Grade": "grading",
    "Measures": "oracle",
    "NoAnswer": "oracle",
    "ReadingError": "reading",
    "Report": "checking",
    "RowError": "rows",
    "Task": "tasks",
    "TaskSet": "tasks",
    "Verdict": "grading",
    "answers": "oracle",
    "check": "checking",
    "from_row": "rows",
    "generate": "masbench",
    "grade": "grading",
    "make_task": "masbench",
    "measure": "oracle",
    "other_answers": "oracle",
    "read_jsonl": "rows",
    "to_row": "rows",
    "write_jsonl": "rows",
}

__all__ = [
    "AXES",
    "LEVELS",
    "RULES",
    "SPLITS",
    "Difference",
    "Grade",
    "Measures",
    "NoAnswer",
    "ReadingError",
    "Report",
    "RowError",
    "Task",
    "TaskSet",
    "Verdict",
    "answers",
    "check",
    "concertino_cli",
    "concertino_graders",
    "concertino_tasks",
    "from_row",
    "generate",
    "grade",
    "make_task",
    "measure",
    "other_answers",
    "read_jsonl",
    "to_row",
    "write_jsonl",
]


@hookimpl
def concertino_tasks() -> list[TaskSet]:
    """One task set per axis: `masbench/depth` and so on."""
    from .masbench import task_sets

    return task_sets()


@hookimpl
def concertino_graders() -> list[Any]:
    """The grader of tasks of the kind `masbench`."""
    from .grading import grade

    return [grade]


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino bench generate` and `concertino bench verify`."""
    from ._cli import bench

    return [bench]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
