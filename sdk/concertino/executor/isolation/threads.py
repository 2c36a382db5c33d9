"""Threads for plugin code: a daemon thread for each synchronous call, and a loop thread per isolated provider.

Never asyncio's shared pool: eight hung functions would fill it, healthy ones behind them would be reported as timed
out, and the process could not exit. A `Crew` has a thread for every call under way, and keeps idle ones for the next.
Threads cannot be killed, so the invariant is a weaker one, kept honestly: the caller never waits for an abandoned
thread, and every abandoned call is named in `abandoned()` until it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from .orphans import silence, unwatch, watch

_IDLE_SECONDS = 5.0
"""Seconds for which an idle thread waits for another call."""
_LEAVING_SECONDS = 0.05
"""Seconds that `Crew.close` waits in all for idle threads, which only have to wake up to leave."""

# Of the process, because what was abandoned outlives its executor.
_abandoned: set[threading.Thread | _ThreadCall | _Stopped] = set()


def abandoned() -> list[str]:
    """Names of threads and synchronous calls that were given up and still run."""
    _abandoned.difference_update([given_up for given_up in _abandoned if not given_up.is_alive()])
    return sorted(given_up.name for given_up in _abandoned)


def abandoned_by(name: str) -> int:
    """How many synchronous calls of a member were given up and still run."""
    return abandoned().count(_ThreadCall.PREFIX + name) if _abandoned else 0


def _deliver(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        # StopIteration cannot be put into a future; a plugin's exit must not become ours.
        future.set_exception(
            error if isinstance(error, Exception) and not isinstance(error, StopIteration) else Foreign(error)
        )
    else:
        future.set_result(result)


class Foreign(Exception):
    """Carries what may not travel through a future: SystemExit, KeyboardInterrupt, StopIteration, GeneratorExit."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        self.error = error


def _post(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: Any, error: BaseException | None
) -> None:
    with contextlib.suppress(RuntimeError):  # the caller's loop is closed: nobody waits any more
        loop.call_soon_threadsafe(_deliver, future, result, error)


class _ThreadCall:
    """One synchronous call. Its thread sets `started`, then asks whether the future is cancelled; who cancels does it
    the other way round, so that one of the two always notices the other.
    """

    PREFIX = "concertino:"

    __slots__ = ("_context", "_function", "_over", "future", "loop", "name", "started")

    def __init__(self, name: str, function: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.name = self.PREFIX + name
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.started = False
        self._over = False
        self._function = function
        self._context = contextvars.copy_context()

    def is_alive(self) -> bool:
        """Whether its function still runs."""
        return not self._over

    def run(self) -> None:
        """Run the function, unless nobody waits for it any more."""
        self.started = True
        if not self.future.cancelled():
            threading.current_thread().name = self.name
            try:
                result = self._context.run(self._function)
            except BaseException as error:  # its end is an observation, never a traceback on stderr
                _post(self.loop, self.future, None, error)
            else:
                _post(self.loop, self.future, result, None)
        self._over = True


class _Stopped:
    """A coroutine on a loop thread that was told to stop."""

    __slots__ = ("_task", "name")

    def __init__(self, name: str, task: asyncio.Task[Any]) -> None:
        self.name = _ThreadCall.PREFIX + name
        self._task = task

    def is_alive(self) -> bool:
        """Whether it has not obeyed yet."""
        return not self._task.done() and not self._task.get_loop().is_closed()


class Crew:
    """Daemon threads of one executor, as many as calls are under way; idle ones wait some seconds for another call.

    A thread that begins a call starts up to two more threads if calls still wait. So the number of threads doubles
    until all calls have one, and the event loop itself only starts the first.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_ThreadCall | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle: set[threading.Thread] = set()
        self._waiting = self._starting = 0
        self._growing = self._closed = False

    async def run(self, name: str, function: Callable[[], Any]) -> Any:
        """Run a synchronous function in a thread of its own, with a copy of the caller's context variables.

        Cancelling stops the waiting at once; the thread is left running and counted as abandoned.
        """
        job = _ThreadCall(name, function, asyncio.get_running_loop())
        with self._lock:
            self._waiting += 1
        self._jobs.put(job)
        if not self._growing:
            self._growing = True  # once for all calls of this turn of the loop
            # Not here: starting a thread takes time of the loop, and one start serves all calls of this turn.
            job.loop.call_soon(self._grow_from_loop)
        try:
            return await job.future
        except asyncio.CancelledError:
            if job.started and job.is_alive():
                _abandoned.add(job)
            raise

    def _grow_from_loop(self) -> None:
        self._growing = False
        self._grow()

    def _grow(self) -> None:
        """Start one thread if more calls wait than threads."""
        with self._lock:
            if self._waiting <= len(self._idle) + self._starting:
                return
            self._starting += 1
        try:
            threading.Thread(target=self._work, name="concertino:idle", daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads: this call's failure, not the run's
            with self._lock:
                self._starting -= 1
                self._waiting -= 1
            job = self._jobs.get()
            if job is not None:
                _post(job.loop, job.future, None, error)

    def _work(self) -> None:
        thread = threading.current_thread()
        with self._lock:
            self._starting -= 1
            self._idle.add(thread)
        while (job := self._next(thread)) is not None:
            # Before its own call, so that others do not wait for that; twice, so that the number of threads doubles.
            self._grow()
            self._grow()
            job.run()
            del job  # an idle thread must not keep its last result
            thread.name = "concertino:idle"
            with self._lock:
                if self._closed:
                    return
                self._idle.add(thread)

    def _next(self, thread: threading.Thread) -> _ThreadCall | None:
        """The next call; None when there was none for a while, or at the end."""
        while True:
            try:
                job = self._jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                job = None
            with self._lock:
                # A call came between the time-out and the lock, and counts on this thread, so no other was started.
                if job is None and self._waiting and not self._closed:
                    continue
                self._idle.discard(thread)
                self._waiting -= job is not None
            return job

    def close(self) -> None:
        """Send idle threads away; busy ones leave when their call returns."""
        with self._lock:
            self._closed = True
            idle = list(self._idle)
        for _ in idle:
            self._jobs.put(None)
        end = time.monotonic() + _LEAVING_SECONDS
        for thread in idle:
            thread.join(max(0.0, end - time.monotonic()))


class LoopThread:
    """An event loop in a daemon thread of its own, for a provider that blocks, or may not share the caller's loop."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.loop = asyncio.new_event_loop()
        self.doubtful = False
        """A call on it was cancelled: before the next one, look whether it still answers."""
        self._ending = False
        # So that background tasks of plugin code on this loop, too, end with their call.
        watch(self.loop)
        self._thread = threading.Thread(target=self._run, name=f"concertino:loop:{name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self._ending:
            with contextlib.suppress(BaseException):  # one plugin's exit must not end the loop of the others
                self.loop.run_forever()
        for task in asyncio.all_tasks(self.loop):
            silence(task)  # it did not obey, and ends here
        self.loop.close()

    async def run(self, name: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """Run a coroutine there. Cancelling cancels it there, and does not wait until it obeys."""
        home = asyncio.get_running_loop()
        future: asyncio.Future[Any] = home.create_future()
        context = contextvars.copy_context()
        task: asyncio.Task[Any] | None = None

        async def work() -> None:
            try:
                result = await make()
            except BaseException as error:
                _post(home, future, None, error)
            else:
                _post(home, future, result, None)

        def begin() -> None:
            nonlocal task
            if not future.cancelled():
                task = self.loop.create_task(work(), context=context)
                if future.cancelled():  # meanwhile, by a thread that saw no task to cancel
                    task.cancel()

        self.loop.call_soon_threadsafe(begin)
        try:
            return await future
        except asyncio.CancelledError:
            self._stop(name, task)
            raise

    def _stop(self, name: str, task: asyncio.Task[Any] | None) -> None:
        """Cancel a coroutine, if it began, and count it as abandoned until it ends; one that obeys does at once."""
        self.doubtful = True
        # Without a task it has not begun, and `begin` sees that the future is cancelled.
        if task is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(task.cancel)
            _abandoned.add(_Stopped(name, task))

    async def alive(self, patience: float) -> bool:
        """Whether the loop answers within `patience` seconds."""
        answered = asyncio.get_running_loop().create_future()
        self.loop.call_soon_threadsafe(_post, asyncio.get_running_loop(), answered, True, None)
        done, _ = await asyncio.wait({answered}, timeout=patience)
        self.doubtful = not done
        return bool(done)

    def stop(self) -> None:
        """End the loop; if plugin code blocks it, give the thread up and count it."""

        def finish() -> None:
            self._ending = True
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.call_soon(self.loop.stop) if not tasks else self.loop.create_task(_stop_after(tasks, self.loop))

        if self.loop.is_closed():
            return
        unwatch(self.loop)
        self.loop.call_soon_threadsafe(finish)
        # A loop that is free ends within milliseconds; one that is blocked must not hold up the executor.
        self._thread.join(0.05)
        if self._thread.is_alive():
            _abandoned.add(self._thread)


async def _stop_after(tasks: set[asyncio.Task[Any]], loop: asyncio.AbstractEventLoop) -> None:
    # A moment to obey; a task that does not is silenced when the loop ends.
    await asyncio.wait(tasks, timeout=0.2)
    loop.stop()
