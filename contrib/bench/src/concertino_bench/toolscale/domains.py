"""The domains: the shipped one, and those that were synthesised into a folder. From a task to its toolkit.

The invariant: a task names its domain in plain data, so its toolkit can be made from the task alone, in any process.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from concertino_bench.tasks.task import DataError, Task, TaskSet
from concertino_bench.toolkits.replaying import replay
from concertino_bench.toolkits.toolkit import Database, Toolkit
from concertino_bench.toolkits.world import worlds

from .rows import TaskRow, make_task


@lru_cache(maxsize=1)
def ferry_company() -> Toolkit:
    """The toolkit of the shipped domain, made once."""
    from .ferry import Ferry, database

    return Ferry(Database(database()))


def ferry_tasks(*, kind: str = "") -> Iterator[Task]:
    """The tasks of the shipped domain.

    Args:
        kind: only "look", "act", "refuse" or "recover".

    Raises:
        DataError: there is no such kind.
    """
    from .ferry import TASKS

    kinds = list(dict.fromkeys(task.kind for task in TASKS))
    if kind and kind not in kinds:
        raise DataError(f"kind={kind!r}: expected one of {', '.join(kinds)}")
    toolkit = ferry_company()
    for task in TASKS:
        if kind in ("", task.kind):
            row = TaskRow(task.id, task.request, task.golden, task.required, task.level, task.kind)
            yield make_task("ferry", row, replay(toolkit, row.golden), toolkit.instructions, {})


def toolkit_of(task: Task) -> Toolkit:
    """The toolkit of a task; take `fresh()` of it to act in.

    Raises:
        DataError: its domain is unknown, or its folder cannot be read.
    """
    if folder := task.metadata.get("folder"):
        from .folder import open_domain

        return open_domain(folder)
    if task.metadata.get("domain") == "ferry":
        return ferry_company()
    raise DataError(f"{task.id}: there is no domain {task.metadata.get('domain')!r}; expected 'ferry', or a folder")


def synthesised_tasks(*, path: str) -> Iterator[Task]:
    """The tasks of a folder that `synthesise` has filled.

    Raises:
        DataError: the folder is no such folder, or not finished.
    """
    from .folder import folder_tasks

    return folder_tasks(path)


def task_sets() -> list[TaskSet]:
    """`toolscale/ferry`, and `toolscale/folder` for what was synthesised."""
    world = worlds(toolkit_of)
    return [
        TaskSet("toolscale/ferry", "55 tasks of a ferry company, twenty tools", ferry_tasks, world),
        TaskSet("toolscale/folder", "tasks that were synthesised into a folder", synthesised_tasks, world),
    ]
