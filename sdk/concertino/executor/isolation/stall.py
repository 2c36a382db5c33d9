"""Notice plugin code that blocks the event loop, while it blocks it, and say who it is.

A daemon thread asks the loop to answer, some times per second and only while calls are under way. When no answer comes
for `patience` seconds, the task that is running right now is the culprit: its call is looked up, and the source line
it is at is read from the interpreter's frames. Blocking code cannot be stopped from outside; the executor moves the
member to a thread of its own, so that it happens once.

Invariant: time for which the loop's thread waited for a processor, because the machine is busy, is nobody's fault.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

Culprit = TypeVar("Culprit")


class StallWatch(Generic[Culprit]):
    """Watches one event loop.

    Args:
        loop: the loop, running in the current thread.
        busy: whether anything of ours is under way.
        patience: seconds without an answer that count as a stall.
        find: called while the loop is blocked, for the task that runs: whose it is, None for nobody of ours.
        blame: called in the loop's thread, after the stall: what `find` found, how long, and where (file:line).
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        busy: Callable[[], bool],
        patience: float,
        find: Callable[[asyncio.Task[Any]], Culprit | None],
        blame: Callable[[Culprit | None, float, str], None],
    ) -> None:
        self._loop = loop
        self._busy = busy
        self._patience = patience
        self._find = find
        self._blame = blame
        self._loop_thread = threading.get_ident()
        self._native_thread = threading.get_native_id()
        self._stopped = threading.Event()
        self._answered = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="concertino:stall-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the watching."""
        self._stopped.set()
        self._answered.set()

    def _watch(self) -> None:
        # Five looks per patience, and at least 20 ms apart, or the watch itself would load the loop.
        pause = max(0.02, self._patience / 5)
        while not self._stopped.wait(pause):
            # An idle process is left asleep.
            if not self._busy():
                continue
            self._answered.clear()
            asked, waited = time.monotonic(), seconds_without_processor(self._native_thread)
            try:
                self._loop.call_soon_threadsafe(self._answered.set)
            except RuntimeError:
                return  # the loop is closed
            if not self._answered.wait(self._patience):
                self._report(asked, waited)

    def _report(self, asked: float, waited: float) -> None:
        task = asyncio.current_task(self._loop)
        culprit = self._find(task) if task is not None else None
        frame = sys._current_frames().get(self._loop_thread)
        where = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}" if frame else "unknown"
        # A frame keeps all its local variables alive, and the stall may last.
        del frame
        # Until the loop answers, for only then is the length of the stall known.
        while not self._answered.wait(0.05):
            if self._stopped.is_set():
                return
        seconds = time.monotonic() - asked
        if seconds - (seconds_without_processor(self._native_thread) - waited) < self._patience:
            return
        try:
            self._loop.call_soon_threadsafe(self._blame, culprit, seconds, where)
        except RuntimeError:
            return


def seconds_without_processor(thread: int) -> float:
    """For how long a thread of this process was ready to run and had no processor; 0.0 where the system does not say.

    Args:
        thread: its native id.
    """
    try:
        # Linux: nanoseconds on a processor, nanoseconds in the queue for one, and turns.
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
