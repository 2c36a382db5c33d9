"""Requests that come one by one: which calls belong to which turn, and which functions are there only later.

The idea: a run has one question. Its world gives further requests as answers of one more tool, so the calls between two
of them are those of a turn, in a world and in a trace alike.

The invariant: a call of a function that is not there yet changes nothing, and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from concertino_bench.tasks.task import Task

NEXT = "next_request"
"""The tool that gives the next request."""
Call = Mapping[str, Any]


def first_turns(task: Task) -> dict[str, int]:
    """By name the turn from which on a function is there, where that is not the first.

    One published row calls functions in its gold before they are said to be there: the gold goes first.
    """
    later = {name: int(turn) for turn, names in (task.metadata.get("missed_function") or {}).items() for name in names}
    for turn, calls in enumerate(task.metadata.get("turn_calls") or ()):
        for call in calls:
            if turn < later.get(call["name"], 0):
                later[call["name"]] = turn
    return {name: turn for name, turn in later.items() if turn}


def by_turn(calls: Iterable[Call], task: Task) -> list[list[Call]]:
    """The calls of each turn of a task, in order, without those of functions that were not there yet."""
    later, turn = first_turns(task), 0
    found: list[list[Call]] = [[] for _ in task.metadata["turns"]]
    for call in calls:
        if call["name"] == NEXT:
            turn = min(turn + 1, len(found) - 1)
        elif later.get(str(call["name"]), 0) <= turn:
            found[turn].append(call)
    return found
