"""Threads for plugin code: a daemon thread per synchronous call, and a loop thread per isolated provider.

Never asyncio's shared pool: eight hung functions would fill it, healthy ones behind them would be reported as timed
out, and the process could not exit. Threads cannot be killed, so the invariant is a weaker one, kept honestly: the
caller never waits for an abandoned thread, and every abandoned thread is counted in `abandoned()` until it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Any

_abandoned: set[threading.Thread] = set()


def abandoned() -> list[str]:
    """Names of threads that were given up and still run."""
    _abandoned.difference_update([thread for thread in _abandoned if not thread.is_alive()])
    return sorted(thread.name for thread in _abandoned)


def _deliver(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        # StopIteration cannot be put into a future; a plugin's exit must not become ours.
        future.set_exception(
            error if isinstance(error, Exception) and not isinstance(error, StopIteration) else _Foreign(error)
        )
    else:
        future.set_result(result)


class _Foreign(Exception):
    """Carries what may not travel through a future: SystemExit, KeyboardInterrupt, StopIteration, GeneratorExit."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        self.error = error


def _post(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: Any, error: BaseException | None
) -> None:
    with contextlib.suppress(RuntimeError):  # the caller's loop is closed: nobody waits any more
        loop.call_soon_threadsafe(_deliver, future, result, error)


async def run_in_thread(name: str, function: Callable[[], Any]) -> Any:
    """Run a synchronous function in a daemon thread of its own, with a copy of the caller's context variables.

    Cancelling stops the waiting at once; the thread is left running and counted as abandoned.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except BaseException as error:  # the thread's end is an observation, never a traceback on stderr
            _post(loop, future, None, error)
        else:
            _post(loop, future, result, None)

    thread = threading.Thread(target=work, name=f"concertino:{name}", daemon=True)
    thread.start()
    try:
        return await future
    except asyncio.CancelledError:
        if thread.is_alive():
            _abandoned.add(thread)
        raise


class LoopThread:
    """An event loop in a daemon thread of its own, for a provider that blocks, or may not share the caller's loop."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"concertino:loop:{name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    async def run(self, make: Callable[[], Awaitable[Any]]) -> Any:
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

        def stop() -> None:
            if task is not None:
                task.cancel()

        self.loop.call_soon_threadsafe(begin)
        try:
            return await future
        except asyncio.CancelledError:
            if not self.loop.is_closed():
                self.loop.call_soon_threadsafe(stop)
            raise

    async def alive(self, patience: float) -> bool:
        """Whether the loop answers within `patience` seconds."""
        answered = asyncio.get_running_loop().create_future()
        self.loop.call_soon_threadsafe(_post, asyncio.get_running_loop(), answered, True, None)
        done, _ = await asyncio.wait({answered}, timeout=patience)
        return bool(done)

    def stop(self) -> None:
        """End the loop; if plugin code blocks it, give the thread up and count it."""

        def finish() -> None:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.call_soon(self.loop.stop) if not tasks else self.loop.create_task(_stop_after(tasks, self.loop))

        if self.loop.is_closed():
            return
        self.loop.call_soon_threadsafe(finish)
        self._thread.join(0.05)
        if self._thread.is_alive():
            _abandoned.add(self._thread)


async def _stop_after(tasks: set[asyncio.Task[Any]], loop: asyncio.AbstractEventLoop) -> None:
    await asyncio.wait(tasks, timeout=0.2)
    loop.stop()
