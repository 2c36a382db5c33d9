"""The one background thread, with one event loop, that owns all sessions of this process.

A session of the MCP SDK lives in the task that opened it, while calls come from any event loop and any thread. So calls
are handed over: `run` from a coroutine, `wait` from plain code. Hand-overs in both directions are collected, so that a
burst of calls wakes each side once.

Invariants: cancelling the waiting coroutine cancels the work there; after `close` no thread, task or session is left,
and the next use opens new ones; a forked child opens its own, and touches nothing of its parent's sessions.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from concertino_mcp.settings import McpServerSettings

    from .lifecycle import ServerLifecycle

T = TypeVar("T")
# `ServerLifecycle.close` may take 3 s for a start under way and 9 s for its connections.
_CLOSING_SECONDS = 12.0


_CLOSED = "the MCP sessions of this process were closed"


class Closed(Exception):
    """The sessions were closed while a call was under way."""


class _LoopTask:
    """One piece of work that was handed over."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, Any]], home: asyncio.AbstractEventLoop) -> None:
        self.make = make
        self.home = home
        self.future: asyncio.Future[Any] = home.create_future()
        # The work runs in its caller's context, so the caller's context variables hold there.
        self.context = contextvars.copy_context()
        self.task: asyncio.Task[None] | None = None
        self.abandoned = False


class _Basket:
    """Things for another loop: collected until it takes them, and announced once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, take: Callable[[Any], None]) -> None:
        self._items: deque[Any] = deque()
        self._loop = loop
        self._take = take
        self._announced = False

    def put(self, item: Any) -> None:
        """From any thread. Raises RuntimeError where the loop is closed."""
        self._items.append(item)
        if not self._announced:
            self._announced = True
            # An empty context, or everybody's items would be taken in that of the first.
            self._loop.call_soon_threadsafe(self._empty, context=contextvars.Context())

    def rest(self) -> list[Any]:
        """What nobody took, when the loop has stopped."""
        left, self._items = list(self._items), deque()
        return left

    def _empty(self) -> None:
        # Before the items are taken: what comes later has to be announced again.
        self._announced = False
        while self._items:
            self._take(self._items.popleft())


class Background:
    """The thread, its loop, and the lives of the servers on it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.lives: dict[McpServerSettings, ServerLifecycle] = {}
        self.closing = False
        self._open: set[_LoopTask] = set()
        self._jobs = _Basket(self.loop, self._begin)
        self._homes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Basket] = WeakKeyDictionary()
        self._thread = threading.Thread(target=self._run, name="concertino-mcp", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        with contextlib.suppress(Exception):
            self.loop.run_until_complete(_cancel_all())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        for job in (*self._open, *self._jobs.rest()):  # what never began; nobody is to wait for it
            self._deliver(job, None, Closed(_CLOSED))
        asyncio.set_event_loop(None)
        self.loop.close()

    @property
    def is_here(self) -> bool:
        """Whether the caller runs on this thread."""
        return threading.current_thread() is self._thread

    def life(self, declaration: McpServerSettings) -> ServerLifecycle:
        """The life of a server, on this loop; made at first use."""
        known = self.lives.get(declaration)
        if known is None:
            from .lifecycle import ServerLifecycle

            known = self.lives[declaration] = ServerLifecycle(declaration)
        return known

    # -- handing over ----------------------------------------------------------------------------------------------

    async def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Have a coroutine run there, from a coroutine anywhere."""
        job = _LoopTask(make, asyncio.get_running_loop())
        try:
            self._jobs.put(job)
        except RuntimeError:
            raise Closed(_CLOSED) from None
        try:
            return cast(T, await job.future)
        except asyncio.CancelledError:
            # Set here and not on the other loop, so that work which has not begun never does.
            job.abandoned = True
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._cancel, job)
            raise

    def wait(self, make: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
        """Have a coroutine run there and wait for it, from plain code.

        Raises:
            TimeoutError: it took longer, and was cancelled.
        """
        if self.is_here:
            raise RuntimeError("plain code on the thread of the sessions would wait for itself")
        future = asyncio.run_coroutine_threadsafe(make(), self.loop)
        try:
            return future.result(seconds)
        except concurrent.futures.CancelledError:
            raise Closed(_CLOSED) from None
        finally:
            # After a timeout, the work would otherwise go on over there.
            future.cancel()

    def _begin(self, job: _LoopTask) -> None:
        if job.abandoned:
            return
        self._open.add(job)
        job.task = self.loop.create_task(self._work(job), context=job.context)

    def _cancel(self, job: _LoopTask) -> None:
        if job.task is not None:
            job.task.cancel()

    async def _work(self, job: _LoopTask) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = await job.make()
        except asyncio.CancelledError:
            if job.abandoned:
                return
            error = Closed(_CLOSED)
        except BaseException as raised:
            # A SystemExit over there must not end the caller.
            error = raised if isinstance(raised, Exception) else RuntimeError(f"{type(raised).__name__}: {raised}")
        finally:
            self._open.discard(job)
        self._deliver(job, result, error)

    def _deliver(self, job: _LoopTask, result: Any, error: BaseException | None) -> None:
        basket = self._homes.get(job.home)
        if basket is None:
            basket = self._homes[job.home] = _Basket(job.home, _deliver)
        with contextlib.suppress(RuntimeError):  # the caller's loop is closed: nobody waits any more
            basket.put((job.future, result, error))

    # -- ending ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End all sessions, then the thread. Bounded in time; called by any thread but this one."""
        self.closing = True
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._end(), self.loop).result(_CLOSING_SECONDS)
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_CLOSING_SECONDS)

    async def _end(self) -> None:
        await asyncio.gather(*(life.close() for life in self.lives.values()), return_exceptions=True)
        await _cancel_all()


async def _cancel_all() -> None:
    """Cancel all other tasks of the running loop, and wait a moment for them."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=1.0)


def _deliver(item: tuple[asyncio.Future[Any], Any, BaseException | None]) -> None:
    future, result, error = item
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


_lock = threading.Lock()
_background: Background | None = None
_of_the_parent: list[Background] = []


def background() -> Background:
    """The thread of this process, started at first use."""
    global _background  # noqa: PLW0603 - one per process is the point
    with _lock:
        if _background is None:
            _background = Background()
        return _background


def close() -> None:
    """End all MCP sessions and servers of this process. Later calls start them again. May be called twice."""
    global _background
    with _lock:
        ending, _background = _background, None
    if ending is not None:
        ending.close()


def _start_afresh() -> None:
    global _background, _lock  # noqa: PLW0603
    _lock = threading.Lock()
    if _background is not None:
        _of_the_parent.append(_background)  # kept, for its end must not be noticed; the guardian closed its pipes
        _background = None


atexit.register(close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
