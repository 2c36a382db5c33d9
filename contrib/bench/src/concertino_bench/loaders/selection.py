"""A part of a task set, chosen by id and seed alone.

A task's place in a file has no part in it: a file in another order, or read as a stream, gives the same tasks; so does
another machine. A task that is added changes at most which one falls out of a subset, and no side of a split.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from heapq import heappush, heappushpop

from concertino_bench.tasks.task import Task

_END = 1 << 64


def subset(tasks: Iterable[Task], count: int, seed: int = 0) -> list[Task]:
    """A random choice of tasks: those with the smallest hashes.

    One pass, and memory for `count` tasks. A smaller subset is the beginning of a larger one with the same seed.

    Args:
        tasks: with ids that differ.
        count: how many; all, if there are not more.
        seed: another one gives another choice.

    Returns:
        The chosen tasks, in the order of their hashes.

    Raises:
        ValueError: `count` is below 1.
    """
    if count < 1:
        raise ValueError(f"count={count}; expected a whole number from 1")
    largest: list[tuple[int, str, int, Task]] = []
    for number, task in enumerate(tasks):
        # Negative: heapq has the smallest in front, and the largest of the chosen is what has to go.
        entry = (-_place(task, seed), task.id, number, task)
        if len(largest) < count:
            heappush(largest, entry)
        else:
            heappushpop(largest, entry)
    return [task for _, _, _, task in sorted(largest, key=lambda entry: (-entry[0], entry[1]))]


def split(tasks: Iterable[Task], share: float, seed: int = 0) -> tuple[list[Task], list[Task]]:
    """Two parts that have no task in common, each in the order of the file.

    Args:
        tasks: with ids that differ.
        share: about how much goes to the first part, above 0 and below 1.
        seed: another one gives another split.

    Raises:
        ValueError: `share` is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise ValueError(f"share={share}; expected a number above 0 and below 1")
    parts: tuple[list[Task], list[Task]] = ([], [])
    for task in tasks:
        # Each task's side follows from its own hash, so that adding tasks moves none.
        parts[_place(task, seed) >= share * _END].append(task)
    return parts


def _place(task: Task, seed: int) -> int:
    """Where a task stands, from 0 to 2^64: random, and the same everywhere."""
    return int.from_bytes(blake2b(f"{seed}\0{task.id}".encode(), digest_size=8).digest())
