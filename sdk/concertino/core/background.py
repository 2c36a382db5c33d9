"""Work on large data that must not hold up an event loop: a thread for it, and JSON that is written in steps.

There is one such thread for the whole process; it ends when nothing was given to it for some time. What it does is done
in the order in which it was given. The interpreter runs one thread at a time, and a megabyte of JSON takes
milliseconds in one call of it: so data is written in steps, between which other threads run.

Invariant: each waiter gets a result or an error, whatever happens in the thread. A child that was forked has a thread
of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
THREAD_NAME = "concertino:large-data"
_IDLE_SECONDS = 5.0
_STEP = 1 << 16
"""Characters that are written in one step: a quarter of a millisecond."""
_FEW, _SHORT = 64, 1 << 10
"""Values of a list that are written at once, if all of them are plain and their texts no longer than this."""


class _Background:
    """The thread, and what it has to do."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the thread, which a forked child does not have, and what was given to it."""
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._running = False

    def give(self, work: Callable[[], None]) -> None:
        """Have something done, which must not raise."""
        with self._lock:
            self._work.put(work)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name=THREAD_NAME, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                work = self._work.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                # Under the lock nothing can be given between the look and the end.
                with self._lock:
                    if self._work.empty():
                        self._running = False
                        return
                continue
            work()
            # Not kept until the next one comes: it holds a large value.
            del work


_background = _Background()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_background.begin_anew)


async def in_background(work: Callable[[], T]) -> T:
    """What a function gives, or raises, in the thread; the event loop is free meanwhile."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: Any, error: Exception | None) -> None:
        if done.done():
            return  # the waiter was cancelled
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result, failed = None, None
        try:
            result = work()
        except Exception as error:
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, failed)

    _background.give(run)
    return await done


def json_in_steps(value: Any, comma: str = ", ", colon: str = ": ") -> str:
    """The JSON of plain data, as `json.dumps` writes it with `ensure_ascii=False`.

    Raises:
        TypeError, ValueError, RecursionError: it is not plain data, not finite, or nested too deeply.
    """
    return "".join(_Steps(comma, colon).pieces(value))


class _Steps:
    """One value that is written."""

    def __init__(self, comma: str, colon: str) -> None:
        self._comma, self._colon = comma, colon
        encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(comma, colon))
        self._encode = encoder.encode
        self._pieces: list[str] = []
        self._written = 0

    def pieces(self, value: Any) -> list[str]:
        """The text, in pieces."""
        self._value(value)
        return self._pieces

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._written += len(text)
        if self._written >= _STEP:
            self._written = 0
            time.sleep(0)  # lets another thread run, which waits for its turn

    def _value(self, value: Any) -> None:
        kind = type(value)
        if kind is str:
            self._text(value)
        elif kind is list and value:
            self._list(value)
        elif kind is dict and value:
            self._dict(value)
        else:
            self._put(self._encode(value))

    def _text(self, text: str) -> None:
        if len(text) <= _STEP:
            self._put(self._encode(text))
            return
        self._put('"')
        for begin in range(0, len(text), _STEP):
            self._put(self._encode(text[begin : begin + _STEP])[1:-1])
        self._put('"')

    def _list(self, values: list[Any]) -> None:
        before = "["
        for begin in range(0, len(values), _FEW):
            some = values[begin : begin + _FEW]
            if all(_is_short(value) for value in some):
                self._put(before + self._encode(some)[1:-1])
                before = self._comma
                continue
            for value in some:
                self._put(before)
                self._value(value)
                before = self._comma
        self._put("]")

    def _dict(self, values: dict[Any, Any]) -> None:
        before = "{"
        for key, value in values.items():
            if type(key) is not str:
                raise TypeError(f"keys must be str, not {type(key).__name__}")
            self._put(f"{before}{self._encode(key)}{self._colon}")
            self._value(value)
            before = self._comma
        self._put("}")


def _is_short(value: Any) -> bool:
    return len(value) <= _SHORT if type(value) is str else not isinstance(value, (str, dict, list, tuple))
