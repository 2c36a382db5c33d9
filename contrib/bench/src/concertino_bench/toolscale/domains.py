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

from .ferry.company import Ferry
from .ferry.data import database, task_rows
from .folder import folder_tasks, open_domain
from .rows import make_task


# The database is the same for all tasks and never changes; runs act in `fresh()` copies.
@lru_cache(maxsize=1)
def ferry_company() -> Toolkit:
    """The toolkit of the shipped domain, made once."""
    return Ferry(Database(database()))


def ferry_tasks(*, kind: str = "") -> Iterator[Task]:
    """The tasks of the shipped domain.

    Args:
        kind: only "look", "act", "refuse" or "recover".

    Raises:
        DataError: the kind does not exist.
    """
    rows = task_rows()
    kinds = list(dict.fromkeys(row.axis for row in rows))
    if kind and kind not in kinds:
        raise DataError(f"kind={kind!r}: expected one of {', '.join(kinds)}")
    toolkit = ferry_company()
    for row in rows:
        if kind in ("", row.axis):
            done = replay(toolkit, row.golden)
            operations = done.operated.to_json()
            yield make_task("ferry", row, done.digest, operations, toolkit.instructions, split="test")


def toolkit_of(task: Task) -> Toolkit:
    """The toolkit of a task; take `fresh()` of it to act in.

    Raises:
        DataError: its domain is unknown, or its folder cannot be read.
    """
    if folder := task.metadata.get("folder"):
        return open_domain(folder)
    if task.metadata.get("domain") == "ferry":
        return ferry_company()
    raise DataError(f"{task.id}: there is no domain {task.metadata.get('domain')!r}; expected 'ferry', or a folder")


def task_sets() -> list[TaskSet]:
    """`toolscale/ferry`, and `toolscale/folder` for what was synthesised."""
    world = worlds(toolkit_of)
    return [
        TaskSet("toolscale/ferry", "55 tasks of a ferry company, twenty tools", ferry_tasks, world),
        TaskSet("toolscale/folder", "tasks that were synthesised into a folder", folder_tasks, world),
    ]
