"""Background tasks that plugin code leaves behind: each is known to the call that started it, and ends with it.

A task factory on the event loop notes tasks that are created inside a call (a context variable says which). It calls
the factory that was there before, and is taken away when the last executor on the loop closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Coroutine, Generator, Iterator
from typing import Any, Protocol
from weakref import WeakKeyDictionary


class TaskOwner(Protocol):
    """A call, as the tasks that its plugin code begins see it."""

    def adopt(self, task: asyncio.Future[Any]) -> None:
        """Remember a background task, and end it with the call."""


CURRENT: contextvars.ContextVar[TaskOwner | None] = contextvars.ContextVar("concertino_call", default=None)
"""The call inside which code is running."""

_watched: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Any]] = WeakKeyDictionary()


class _Contained(Coroutine[Any, Any, Any]):
    """A coroutine whose SystemExit or KeyboardInterrupt stays in its task, where asyncio would end the whole loop."""

    __slots__ = ("_coroutine",)

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine

    def send(self, value: Any) -> Any:
        with _contained():
            return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        with _contained():
            return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()


@contextlib.contextmanager
def _contained() -> Iterator[None]:
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def watch(loop: asyncio.AbstractEventLoop) -> None:
    """Begin to note the tasks of calls on a loop. Each `watch` needs one `unwatch`."""
    known = _watched.get(loop)
    if known is not None:
        known[0] += 1
        return
    previous = loop.get_task_factory()

    def factory(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Future[Any]:
        call = CURRENT.get()
        if call is not None:
            # Only tasks of plugin code: all others keep the behaviour of asyncio.
            coro = _Contained(coro)
        task = previous(loop, coro, **options) if previous else asyncio.Task(coro, loop=loop, **options)
        if call is not None:
            call.adopt(task)
        return task

    loop.set_task_factory(factory)  # type: ignore[arg-type]  # the stubs demand one result type of both
    _watched[loop] = [1, previous, factory]


def unwatch(loop: asyncio.AbstractEventLoop) -> None:
    """Undo one `watch`."""
    known = _watched.get(loop)
    if known is None:
        return
    known[0] -= 1
    if known[0] == 0:
        del _watched[loop]
        # Somebody may have put a factory over ours since, and that one stays.
        if not loop.is_closed() and loop.get_task_factory() is known[2]:
            loop.set_task_factory(known[1])


def silence(task: asyncio.Task[Any]) -> None:
    """Have asyncio not report a task that is destroyed before its end."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio offers no public way
