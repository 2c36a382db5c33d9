"""concertino-bench: tasks with known answers, graders that give reasons, and runs of many systems over many tasks.

The names that the parts share are here: what a task is, what a grader says, what a system is, what is kept of a run.
The parts are subpackages:

    tasks          the modules of these names: a task, a grade, a system, an item
    masbench       generated questions with controlled dependency graphs
    loaders        the files of known benchmarks, and your own
    environments   worlds to act in: grids, puzzles, programs, problems
    toolkits       domains with a database and tools; toolscale makes tasks for them
    graders        what compares answers
    baselines      what an orchestrator has to beat, and a study that is ready to run
    runner         running systems over tasks
    metrics        figures of the results; reports show them
    rescoring      old results with other graders and rewards, from their traces
    papers         tables of papers as recipes, and ours beside the published numbers
    model_cards    descriptions of a pool's models, from how they do on tasks

Importing this package imports `tasks` alone; the hooks below import the other parts when they are called.
"""

from __future__ import annotations

from typing import Any

from concertino import hookimpl

from .examples import concertino_examples as concertino_examples
from .tasks.grade import Grade, Grader, GraderServices, Submission, Verdict, text_grader
from .tasks.installed import installed_graders, installed_task_sets
from .tasks.item import Item, Key, MemberUse
from .tasks.system import System
from .tasks.task import DataError, Task, TaskSet, TaskWorld

__all__ = [
    "DataError",
    "Grade",
    "Grader",
    "GraderServices",
    "Item",
    "Key",
    "MemberUse",
    "Submission",
    "System",
    "Task",
    "TaskSet",
    "TaskWorld",
    "Verdict",
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
    """`concertino bench`, and `concertino pool describe`."""
    from .cli import bench
    from .cli.describe import describe_command

    return [bench, describe_command]
