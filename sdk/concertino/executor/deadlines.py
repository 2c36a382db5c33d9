"""Deadlines of calls: those that end at the same instant share one timer of the event loop.

The calls of a round start together and mostly have the same time limit, so a timer each would cost more than
everything else that a call does with its deadline. A timer is cancelled with the last call that needs it.
"""

from __future__ import annotations

import asyncio
from typing import Protocol


class HasDeadline(Protocol):
    """What has a deadline."""

    def deadline_passed(self) -> None:
        """Its time is over."""


class Deadlines:
    """The deadlines of one event loop, on its clock."""

    __slots__ = ("_groups", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._groups: dict[float, tuple[asyncio.TimerHandle, dict[HasDeadline, None]]] = {}

    def add(self, when: float, call: HasDeadline) -> None:
        """Call `deadline_passed` at that time; never, at infinity."""
        group = self._groups.get(when)
        if group is not None:
            group[1][call] = None
        elif when < float("inf"):
            self._groups[when] = (self._loop.call_at(when, self._passed, when), {call: None})

    def remove(self, when: float, call: HasDeadline) -> None:
        """The call has ended before."""
        group = self._groups.get(when)
        if group is not None and call in group[1]:
            del group[1][call]
            if not group[1]:
                group[0].cancel()
                del self._groups[when]

    def _passed(self, when: float) -> None:
        for call in self._groups.pop(when)[1]:
            call.deadline_passed()
