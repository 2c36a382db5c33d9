"""What is left running: tasks of the event loop, threads, and child processes, compared before and after.

What a library starts once and keeps is not a leftover, so a caller takes the first look after a warm-up. The same holds
for the threads of the event loop itself (`asyncio.to_thread`): how many it has is chance, so only what still works in
them counts. Things may need a moment to end; `assert_none` waits that long before it complains.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from concertino.executor.isolation.stall import THREAD_NAME

from .check import CheckFailed

LONGEST_STALL = 0.5
"""Seconds for which a call or a request may block the event loop."""
PATIENCE = 2.0
"""Seconds that something may take to end after its call."""


R = TypeVar("R")


class Leftovers:
    """What runs now. Made inside an event loop, which gets a thread pool of its own that can be watched."""

    def __init__(self) -> None:
        self._workers = _Workers()
        # The default pool keeps idle threads, which could not be told from threads that still work.
        asyncio.get_running_loop().set_default_executor(self._workers)
        self._before = _running()

    async def assert_none(self, after: str) -> None:
        """Check that nothing more runs than before.

        Raises:
            CheckFailed: names what still runs after `PATIENCE` seconds.
        """
        end = asyncio.get_running_loop().time() + PATIENCE
        while left := {name for key, name in self._now().items() if key not in self._before}:
            if asyncio.get_running_loop().time() > end:
                raise CheckFailed(
                    f"{after}, {PATIENCE:g} s later, there still run: {', '.join(sorted(left))}; end them in a "
                    "finally block, let CancelledError pass, or declare isolation='process'"
                )
            await asyncio.sleep(0.02)

    def _now(self) -> dict[object, str]:
        idle = self._workers.threads
        running = {key: name for key, name in _running().items() if key not in idle}
        # Copied, because threads add and remove while this is read.
        return running | {work: f"{name} in a thread" for work, name in self._workers.working.copy().items()}


class _Workers(ThreadPoolExecutor):
    """The threads of an event loop, and what they work at."""

    def __init__(self) -> None:
        self._begin = f"of the loop {id(self):x}"
        super().__init__(thread_name_prefix=self._begin)
        self.working: dict[object, str] = {}

    @property
    def threads(self) -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name.startswith(self._begin)}

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        future = super().submit(fn, *args, **kwargs)
        called = fn.args[0] if isinstance(fn, partial) and fn.args else fn  # `to_thread` wraps it
        self.working[future] = getattr(called, "__qualname__", "a function")
        future.add_done_callback(lambda done: self.working.pop(done, None))
        return future


def _running() -> dict[object, str]:
    running: dict[object, str] = {pid: f"process {pid}" for pid in _children()}
    # The watch of event loops serves the whole process, and leaves when it is not needed.
    threads = [thread for thread in threading.enumerate() if thread.name != THREAD_NAME]
    running.update({thread: f"thread {thread.name}" for thread in threads})
    running.update({task: f"task {task.get_name()} ({_code_name(task)})" for task in asyncio.all_tasks()})
    return running


def _code_name(task: asyncio.Task[object]) -> str:
    return str(getattr(task.get_coro(), "__qualname__", "?"))


def _children() -> list[int]:
    """Child processes, where the system lists them."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    found: list[int] = []
    for file in lists:
        try:
            found += map(int, file.read_text().split())
        except OSError:
            continue  # the thread ended meanwhile
    return found
