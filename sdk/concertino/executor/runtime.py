"""What all executions of one executor share: limits, deadlines, threads, who is under way and who misbehaved."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary, ref

from concertino.core.events import Stalled
from concertino.core.logs import logger

from .isolation.orphans import silence
from .isolation.threads import Crew
from .limits import Limits
from .retry import RetryPolicy
from .turns import Turns

_STALE = 64
"""Deadlines of calls that have ended which may be kept, beside twice as many as there are."""


class UnderWay(Protocol):
    """An execution whose task runs."""

    def stop(self, why: Literal["cancelled"]) -> None:
        """End it."""

    def has_begun(self, task: asyncio.Task[Any]) -> bool:
        """Whether plugin code of this execution began a background task."""

    def blocked_the_loop(self, seconds: float, where: str) -> None:
        """It blocked the event loop at a line of its source."""


class HasDeadline(Protocol):
    """What has a deadline."""

    def deadline_passed(self) -> None:
        """Its time is over."""


class Deadlines:
    """The deadlines of one event loop, on its clock, with one timer for the next of them.

    Most calls end long before their deadline, and a timer for each call would cost more than all else that is done for
    its deadline. So the timer stays when a call ends. At worst it wakes up once for nothing.
    """

    __slots__ = ("__weakref__", "_groups", "_heap", "_loop", "_next")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Weak, since the loop is the key under which this is found.
        self._loop = ref(loop)
        # The inner dict is an ordered set: calls are told in the order in which they began.
        self._groups: dict[float, dict[HasDeadline, None]] = {}
        self._heap: list[float] = []
        self._next = inf

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> Deadlines:
        """Those of a loop, which all executors on it share."""
        known = _deadlines.get(loop)
        if known is None:
            known = _deadlines[loop] = cls(loop)
        return known

    def add(self, when: float, call: HasDeadline) -> None:
        """Call `deadline_passed` at that time; never, at infinity."""
        group = self._groups.get(when)
        if group is not None:
            group[call] = None
        elif when < inf:
            self._groups[when] = {call: None}
            if len(self._heap) > 2 * len(self._groups) + _STALE:
                self._heap = list(self._groups)
                heapify(self._heap)
            else:
                heappush(self._heap, when)
            if when < self._next:
                self._wake_at(when)

    def remove(self, when: float, call: HasDeadline) -> None:
        """Forget a call that ended before its deadline."""
        group = self._groups.get(when)
        if group is not None and call in group:
            del group[call]
            if not group:
                del self._groups[when]

    def _wake_at(self, when: float) -> None:
        loop = self._loop()
        assert loop is not None, "a deadline is added on its running loop"
        self._next = when
        # The handle is not kept: it would keep the loop alive, under which this is found.
        loop.call_at(when, self._passed, when)

    def _passed(self, due: float) -> None:
        if due != self._next:
            return  # an earlier one was added since, whose timer came before
        self._next = inf
        loop = self._loop()
        assert loop is not None
        # All that have passed by now: an agent that asks again and again after the deadline of its requests sets that
        # as the next deadline each time, and its own would never be looked at.
        now = max(due, loop.time())
        try:
            while self._heap and self._heap[0] <= now:
                # Taken out first: each call removes itself as it ends, and would change the dict under this loop.
                for call in self._groups.pop(heappop(self._heap), ()):
                    call.deadline_passed()
        finally:
            while self._heap and self._heap[0] not in self._groups:
                heappop(self._heap)
            if self._heap and self._heap[0] < self._next:
                self._wake_at(self._heap[0])


_deadlines: WeakKeyDictionary[asyncio.AbstractEventLoop, Deadlines] = WeakKeyDictionary()


class Misbehaviour:
    """What plugin code did that it must not do.

    Attributes:
        closed_calls: calls that ignored their cancellation and ended when their coroutine was closed.
        abandoned_calls: tasks of calls that could not be ended and still run.
        stalls: when the event loop was blocked, and by whom.
    """

    __slots__ = ("abandoned_calls", "closed_calls", "stalls")

    def __init__(self) -> None:
        self.closed_calls = 0
        self.abandoned_calls: set[asyncio.Task[None]] = set()
        self.stalls: list[Stalled] = []

    def abandon(self, task: asyncio.Task[None], name: str, call_id: str) -> None:
        """Give up a call's task that does not end, and count it."""
        logger.warning("%s did not stop when cancelled and was given up (call %s)", name, call_id)
        self.abandoned_calls.add(task)
        task.add_done_callback(self.abandoned_calls.discard)
        # `asyncio.run` waits at its end for every registered task, and for this one it would wait for ever.
        asyncio.tasks._unregister_task(task)
        silence(task)


class Runtime:
    """What the executions of one executor share.

    Attributes:
        deadlines: the deadlines on the executor's event loop; there are none before it has one.
        turns: likewise, the turns on it.
        tasks: the executions under way, by task.
        waiting: how many executions wait at a gate.
    """

    __slots__ = ("_leaving", "crew", "deadlines", "limits", "misbehaviour", "retries", "tasks", "turns", "waiting")

    def __init__(self, limits: Limits, retries: RetryPolicy) -> None:
        self.limits = limits
        self.retries = retries
        self.crew = Crew()
        self.deadlines: Deadlines
        self.turns: Turns
        self.tasks: dict[asyncio.Task[None], UnderWay] = {}
        self.waiting = 0
        self.misbehaviour = Misbehaviour()
        self._leaving: set[asyncio.Future[Any]] = set()

    def leaving(self, task: asyncio.Future[Any]) -> None:
        """A task was cancelled and nobody awaits it. Closing the executor does, for a moment."""
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def settle_down(self, tasks: Iterable[asyncio.Task[None] | None]) -> None:
        """Wait until stopped executions have left their tasks, but never longer than the ladder takes."""
        unfinished = [task for task in (*tasks, *self._leaving) if task is not None and not task.done()]
        if unfinished:
            # The ladder takes two graces, one per cancellation; half a grace more is for delays of the loop.
            await asyncio.wait(unfinished, timeout=2.5 * self.limits.grace)

    def whose(self, task: asyncio.Task[Any]) -> UnderWay | None:
        """The execution that a task belongs to, or a background task of its plugin code."""
        # The stall watch asks from its own thread, so the loop below goes over a copy.
        found = self.tasks.get(task)
        return found or next((one for one in list(self.tasks.values()) if one.has_begun(task)), None)

    @staticmethod
    def blame(culprit: UnderWay | None, seconds: float, where: str) -> None:
        """Log that the event loop was blocked, and have the culprit moved off it."""
        if culprit is None:
            logger.warning("the event loop was blocked for %.2f s at %s, not by a concertino call", seconds, where)
        else:
            culprit.blocked_the_loop(seconds, where)
