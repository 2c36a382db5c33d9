"""The runs of one event loop take turns, so that a thousand of them leave the loop to whoever else is on it.

An event loop runs everything that is ready before it looks at timers and sockets again. With a thousand runs ready,
that is a thousand steps, and a timer of the caller is a second late. So a run asks for its turn before each of its
steps. It passes at once while this pass of the loop is young; else it waits for one of the next passes.

Invariant: whoever waits is served, the run that began first before all others. So runs that all have work to do end one
after another, and few of them are half done at any time.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from weakref import WeakKeyDictionary, ref

SLICE = 0.005
"""Seconds after which a pass of the loop should come to its end."""
NOT_BEGUN = float("inf")
"""The place of a run that has not begun."""
_FIRST_GUESS = 0.0005
"""Seconds that a turn takes, before any was measured."""


class Turns:
    """The turns of the runs on one event loop."""

    __slots__ = ("__weakref__", "_began", "_cost", "_loop", "_numbers", "_passed", "_under_way", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Weak, since the loop is the key under which this is found.
        self._loop = ref(loop)
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._under_way = False
        self._began = 0.0
        self._passed = 0
        self._cost = _FIRST_GUESS

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> Turns:
        """Those of a loop."""
        known = _turns.get(loop)
        if known is None:
            known = _turns[loop] = cls(loop)
        return known

    def number(self) -> int:
        """The place of a run that begins now."""
        return next(self._numbers)

    def ask(self, place: float) -> asyncio.Future[None] | None:
        """Ask for a turn: None if it is now, else what has to be awaited before."""
        loop = self._loop()
        assert loop is not None, "turns are taken on their running loop"
        now = loop.time()
        if not self._under_way:
            self._under_way = True
            self._began = now
            loop.call_soon(self._next_pass)
        elif self._waiting or now - self._began > SLICE:
            turn: asyncio.Future[None] = loop.create_future()
            heappush(self._waiting, (place, next(self._numbers), turn))
            return turn
        self._passed += 1
        return None

    def _next_pass(self) -> None:
        """The loop begins another pass: as many as it has time for go on."""
        loop = self._loop()
        assert loop is not None
        now = loop.time()
        if self._passed:
            # What else a run has to do for a step, in the tasks of its calls, is a part of what its turn takes.
            self._cost = (self._cost + (now - self._began) / self._passed) / 2
        self._began, self._passed = now, 0
        if not self._waiting:
            self._under_way = False
            return
        room = max(1, int(SLICE / self._cost))
        while self._waiting and self._passed < room:
            turn = heappop(self._waiting)[2]
            if not turn.done():  # else its run was cancelled
                turn.set_result(None)
                self._passed += 1
        loop.call_soon(self._next_pass)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()
