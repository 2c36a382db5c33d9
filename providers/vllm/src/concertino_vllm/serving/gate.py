"""A gate in front of a server: requests pass side by side, a change of weights passes alone.

So a request never spans a change, and the version that is read while a request is inside is the version that answers
it. Whoever came first goes first: a change is not starved by requests, and requests that come during a change wait.

The gate belongs to no event loop; those who wait may be on several, in several threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class _Waiting:
    alone: bool
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    granted: bool = False

    def __post_init__(self) -> None:
        self.turn: asyncio.Future[None] = self.loop.create_future()

    def _wake(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)

    def grant(self) -> bool:
        """Say that it is its turn; False if its loop is gone."""
        self.granted = True
        try:
            self.loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop was closed, and nobody waits any more
            return False
        return True


class RequestGate:
    """Lets requests in side by side, and a change of weights alone, in the order in which they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[_Waiting] = deque()
        self._inside = 0
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether anybody is inside."""
        return self._closed or self._inside > 0

    @contextlib.asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Around a request: waits while a change is inside, or came first."""
        await self._enter(alone=False)
        try:
            yield
        finally:
            self._leave(alone=False)

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Around a change: waits until all requests that came before it have been answered."""
        await self._enter(alone=True)
        try:
            yield
        finally:
            self._leave(alone=True)

    async def _enter(self, *, alone: bool) -> None:
        with self._lock:
            if not self._queue and self._may_enter(alone):
                self._count(alone, 1)
                return
            waiting = _Waiting(alone)
            self._queue.append(waiting)
        try:
            await waiting.turn
        except asyncio.CancelledError:
            with self._lock:
                if not waiting.granted:
                    self._queue.remove(waiting)
                    # A change that gives up may have been all that kept those behind it out.
                    self._let_in()
                    raise
            # It was let in before the cancellation reached it.
            self._leave(alone=alone)
            raise

    def _leave(self, *, alone: bool) -> None:
        with self._lock:
            self._count(alone, -1)
            self._let_in()

    def _may_enter(self, alone: bool) -> bool:
        return not self._closed and (not alone or not self._inside)

    def _count(self, alone: bool, change: int) -> None:
        if alone:
            self._closed = change > 0
        else:
            self._inside += change

    def _let_in(self) -> None:
        while self._queue and self._may_enter(self._queue[0].alone):
            waiting = self._queue.popleft()
            if waiting.grant():
                self._count(waiting.alone, 1)
