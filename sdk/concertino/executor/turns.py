"""The runs of one event loop take turns, so that a thousand of them leave time for other tasks.

An event loop runs everything that is ready before it looks at timers and sockets again. With a thousand runs ready,
that is a thousand steps, and a timer of the caller is a second late. So a run asks for its turn before each of its
steps, a call before it runs code of its member, and before it takes in a large result. They pass at once until a slice
of time is over; then they wait for one of the next passes of the loop.

Invariant: each waiter gets its turn, the run that began first before all others. So runs that all have work to do end
one after another, and few of them are half done at any time.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from weakref import WeakKeyDictionary, ref

from .isolation.stall import WATCHER

SLICE, RUN_SLICE = 0.005, 0.0015
"""Seconds of a pass of the loop after which no call begins, and after which no run takes a step. With few runs half
done, little memory is touched and collected again and again."""
RESULT, CALL, NOT_BEGUN = -2.0, -1.0, float("inf")
"""The places of a large result that has come and of a call that begins, before all runs, and of a run that has not
begun, behind them."""
_RUN_COST, _CALL_COST = 0.0005, 0.0001
"""Seconds that the turn of a run and that of a call take, before any was measured."""


class Turns:
    """The turns on one event loop."""

    __slots__ = (
        "__weakref__",
        "_began",
        "_call_cost",
        "_calls",
        "_looking",
        "_loop",
        "_numbers",
        "_run_cost",
        "_runs",
        "_waiting",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Weak, since the loop is the key under which this is found.
        self._loop = ref(loop)
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._looking = False
        self._began = loop.time()
        self._runs = self._calls = 0
        self._run_cost, self._call_cost = _RUN_COST, _CALL_COST

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
        if now >= WATCHER.due:
            WATCHER.make_room()
        late = now - self._began > _slice_of(place)
        if late and not self._looking:
            # Nobody looked when the loop began another pass, as long as there was time: to look costs a callback a
            # pass. So this may be a new pass, and is taken for one.
            self._looking = True
            self._began, self._runs, self._calls = now, 0, 0
            loop.call_soon(self._next_pass)
        elif late or (self._waiting and place >= 0):
            turn: asyncio.Future[None] = loop.create_future()
            heappush(self._waiting, (place, next(self._numbers), turn))
            return turn
        if place >= 0:
            self._runs += 1
        else:
            self._calls += 1
        return None

    def _next_pass(self) -> None:
        """The loop begins another pass: as many as it has time for go on."""
        loop = self._loop()
        assert loop is not None
        now = loop.time()
        self._learn(now - self._began)
        self._began, self._runs, self._calls = now, 0, 0
        if not self._waiting:
            self._looking = False
            return
        self._serve()
        loop.call_soon(self._next_pass)

    def _serve(self) -> None:
        """Let as many go on as a pass has time for: at least one, whatever it takes."""
        spent = 0.0
        while self._waiting and (not spent or spent < _slice_of(self._waiting[0][0])):
            place, _, turn = heappop(self._waiting)
            if turn.done():
                continue  # the waiter was cancelled
            turn.set_result(None)
            if place >= 0:
                self._runs += 1
                spent += self._run_cost
            else:
                self._calls += 1
                spent += self._call_cost

    def _learn(self, took: float) -> None:
        """What a turn takes, from what the last pass took."""
        if self._runs:
            # What else a run has to do for a step, in the tasks of its calls, is a part of what its turn takes.
            self._run_cost = (self._run_cost + took / self._runs) / 2
        elif self._calls:
            self._call_cost = (self._call_cost + took / self._calls) / 2


def _slice_of(place: float) -> float:
    return RUN_SLICE if place >= 0 else SLICE


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()
