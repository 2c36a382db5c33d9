"""concertino-bench: tasks with known answers, graders that give reasons, and runs of many systems over many tasks.

The words that the parts share are here: what a task is, what a grader says, what a system is, what is kept of a run.
The parts are subpackages:

    masbench       generated questions with controlled dependency graphs
    loaders        the files of known benchmarks, and your own
    environments   worlds to act in: grids, puzzles, programs, problems
    toolkits       domains with a database and tools; toolscale makes tasks for them
    graders        what compares answers
    baselines      what an orchestrator has to beat
    runner         running systems over tasks; studies are ready to run
    metrics        figures of what came of it; reports show them

Importing this module imports none of them; the names and the hooks below do.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from .grading import Bench, Grade, Grader, Submission, TextGrader, Verdict, text_grader
    from .installed import installed_graders, installed_task_sets
    from .items import Item, Key, MemberUse
    from .systems import System
    from .tasks import DataError, Task, TaskSet, World

_HOMES = {
    "grading": ["Bench", "Grade", "Grader", "Submission", "TextGrader", "Verdict", "text_grader"],
    "installed": ["installed_graders", "installed_task_sets"],
    "items": ["Item", "Key", "MemberUse"],
    "systems": ["System"],
    "tasks": ["DataError", "Task", "TaskSet", "World"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Bench",
    "DataError",
    "Grade",
    "Grader",
    "Item",
    "Key",
    "MemberUse",
    "Submission",
    "System",
    "Task",
    "TaskSet",
    "TextGrader",
    "Verdict",
    "World",
    "concertino_cli",
    "concertino_graders",
    "concertino_strategies",
    "concertino_tasks",
    "installed_graders",
    "installed_task_sets",
    "text_grader",
]


@hookimpl
def concertino_tasks() -> list[TaskSet]:
    """The sets of every part: `masbench/depth`, `environment/sudoku`, `gsm8k` and so on."""
    from . import environments, loaders, masbench, toolkits, toolscale

    parts = (masbench, loaders, environments, toolkits, toolscale)
    return [each for part in parts for each in part.task_sets()]


@hookimpl
def concertino_graders() -> list[Any]:
    """The graders of every part; each kind of task has one that grades it unless another is asked for."""
    from .graders import all_graders
    from .masbench import grade
    from .toolscale import ToolscaleGrader

    return [grade.grader, *all_graders(), ToolscaleGrader()]


@hookimpl
def concertino_strategies() -> list[Any]:
    """The baselines, from a single model to a prompted orchestrator."""
    from .baselines import strategies

    return list(strategies())


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino bench`."""
    from .cli import bench

    return [bench]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
