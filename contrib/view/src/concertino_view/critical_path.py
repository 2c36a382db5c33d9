"""The critical path of a recorded run: the chain of items that the run was waiting for, from its end to its begin.

It is read off the times on record: a call waited for the last of the calls that it names, or for the request that
planned it; a request waited for whatever ended last before it. Invariant: no item of one level is on the path twice,
and each began no later than the one that waited for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .run_fold import Item

_MEANWHILE = 0.005
"""Seconds that may lie between an end and a begin on record, the wrong way round, and still mean `afterwards`."""


def critical_path(items: Sequence[Item]) -> list[int]:
    """The indexes of the items on it, earliest first; items inside agents follow their agent."""
    inside: dict[int, list[Item]] = {}
    for item in items:
        if item.started is not None and item.ended is not None:
            inside.setdefault(item.parent, []).append(item)
    return _chain(items, inside, -1)


def _chain(items: Sequence[Item], inside: dict[int, list[Item]], parent: int) -> list[int]:
    level = _Level(inside.get(parent, []))
    chain: list[Item] = []
    seen: set[int] = set()
    current = level.last
    while current is not None and current.index not in seen:
        seen.add(current.index)
        chain.append(current)
        current = _waited_for(items, level, current)
    path = []
    for item in reversed(chain):
        path.append(item.index)
        if item.index in inside:
            path += _chain(items, inside, item.index)
    return path


class _Level:
    """The ended items of one level, found by the time of their end."""

    def __init__(self, items: list[Item]) -> None:
        self._ended = sorted(items, key=lambda item: item.ended or 0.0)
        self._ends = [item.ended or 0.0 for item in self._ended]
        self._requests = sorted((item for item in items if item.kind == "request"), key=lambda item: item.started or 0)
        self._asked = [item.started or 0.0 for item in self._requests]

    @property
    def last(self) -> Item | None:
        return self._ended[-1] if self._ended else None

    def before(self, moment: float, other_than: Item) -> Item | None:
        """What ended last before a moment."""
        place = bisect_right(self._ends, moment + _MEANWHILE) - 1
        while place >= 0 and (self._ended[place] is other_than or (self._ended[place].started or 0.0) > moment):
            place -= 1
        return self._ended[place] if place >= 0 else None

    def request_before(self, moment: float) -> Item | None:
        """The request that was asked last before a moment; calls may begin while it is still written."""
        place = bisect_right(self._asked, moment) - 1
        return self._requests[place] if place >= 0 else None


def _waited_for(items: Sequence[Item], level: _Level, item: Item) -> Item | None:
    moment = item.started or 0.0
    named = [items[index] for index in item.after if items[index].ended is not None]
    if named:
        return max(named, key=lambda each: each.ended or 0.0)
    if item.kind != "request" and (request := level.request_before(moment)) is not None:
        return request
    return level.before(moment, item)
