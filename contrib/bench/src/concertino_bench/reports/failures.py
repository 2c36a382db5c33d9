"""Failures worth reading: answers that were not right, those first from which one learns most.

First come systems that broke, each error once, then tasks that most others solved, then what took most time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from concertino_bench.metrics.metric import by_system
from concertino_bench.tasks.item import Item

PER_SYSTEM = 5


class FailedItem(NamedTuple):
    """An item that is not right.

    Attributes:
        item: what happened.
        solved, others: of the other systems that tried the task, how many got it right at least once.
    """

    item: Item
    solved: int
    others: int


def failures(items: Iterable[Item], per_system: int = PER_SYSTEM) -> list[FailedItem]:
    """The failures of each system most worth reading: at most `per_system` each, one per task and per error."""
    items = list(items)
    right: dict[str, set[str]] = {}
    tried: dict[str, set[str]] = {}
    for item in items:
        tried.setdefault(item.key.task, set()).add(item.key.system)
        if item.right:
            right.setdefault(item.key.task, set()).add(item.key.system)
    chosen: list[FailedItem] = []
    for system, of_system in by_system(items).items():
        found = [
            FailedItem(
                item,
                len(right.get(item.key.task, set()) - {system}),
                len(tried[item.key.task] - {system}),
            )
            for item in of_system
            if not item.right
        ]
        # The key at the end makes the order the same for every report of a file.
        found.sort(key=lambda each: (not each.item.error, -each.solved, -each.item.seconds, each.item.key))
        kept: dict[str, FailedItem] = {}
        for each in found:
            # A system that is set up wrongly breaks the same way on every task; once is enough to read.
            kept.setdefault(each.item.error or f"task {each.item.key.task}", each)
        chosen += list(kept.values())[:per_system]
    return chosen
