"""Notice plugin code that blocks an event loop, while it blocks it, and say who it is.

One daemon thread for the whole process asks each loop to answer, some times per second and only while calls are under
way on it. When no answer comes for `patience` seconds, the task that is running right now is the culprit: its call is
looked up, and the source line it is at is read from the interpreter's frames. Blocking code cannot be stopped from
outside; the executor moves the member to a thread of its own, so that it happens once.

A busy loop gives the interpreter up thousands of times per second, each time for so short that a thread which waits for
it wakes, finds it taken and waits again. That made the loop 1.4 times slower until the thread had its turn, tens of
milliseconds later. So a busy loop sees when the thread is due, and waits until it has looked.

Invariant: a member is blamed only for its own time. It is not blamed while the thread waits for a processor, while the
garbage collector works, or while concertino itself works in the task of a call.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import math
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeVar

Culprit = TypeVar("Culprit")

THREAD_NAME = "concertino:stall-watch"
_SHORTEST, _USUAL = 0.02, 0.05
"""Seconds between two looks: at least, and while there is nothing to watch."""
_ROOM, _LATE = 0.001, 0.0002
"""Seconds for which a busy loop waits for the thread at most, and by which the thread is late before a loop waits."""
_IDLE_SECONDS = 1.0
"""Seconds for which the thread stays after the last executor was closed: the next run begins without starting one."""
_PACKAGE = f"{Path(__file__).parents[2]}/"
_TESTING = f"{_PACKAGE}testing/"
"""The fakes stand for plugins."""
_LOOP = frozenset({"_run_once", "run_forever", "run_until_complete"})


class StallWatch(Generic[Culprit]):
    """An executor's part in the watching of its event loop.

    Args:
        loop: the loop, running in the current thread.
        busy: whether anything of the executor is under way.
        patience: seconds without an answer that count as a stall.
        find: called while the loop is blocked, for the task that runs: whose it is, None for nobody of this executor.
        blame: called in the loop's thread, after the stall: what `find` found, how long, and where (file:line).
    """

    __slots__ = ("blame", "busy", "find", "loop", "patience")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        busy: Callable[[], bool],
        patience: float,
        find: Callable[[asyncio.Task[Any]], Culprit | None],
        blame: Callable[[Culprit | None, float, str], None],
    ) -> None:
        self.loop = loop
        self.busy = busy
        self.patience = patience
        self.find = find
        self.blame = blame
        WATCHER.add(self)

    def stop(self) -> None:
        """End the watching."""
        WATCHER.discard(self)


class _Question:
    """One question to a loop, and what was seen while the loop did not answer.

    Attributes:
        answered: when the loop answered, on the monotonic clock; None until then.
        seen: the watch that found who ran meanwhile, what it found, and where; None before anybody looked.
        starved: seconds that the thread had waited for a processor when it was asked.
        collecting: seconds that the garbage collector had taken by then.
    """

    __slots__ = ("answered", "asked", "collecting", "seen", "starved")

    def __init__(self, starved: float, collecting: float) -> None:
        self.asked = time.monotonic()
        self.answered: float | None = None
        self.starved = starved
        self.collecting = collecting
        self.seen: tuple[StallWatch[Any], Any, str] | None = None

    def answer(self) -> None:
        """Called by the loop."""
        self.answered = time.monotonic()


class _WatchedLoop:
    """One event loop, and the executors that want it watched."""

    __slots__ = ("_loop", "_native_thread", "_question", "_thread", "watches")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._native_thread = threading.get_native_id()
        self._question: _Question | None = None
        # Not a set: who is asked first must not depend on addresses.
        self.watches: dict[StallWatch[Any], None] = {}

    def look(self, collecting: Callable[[], float]) -> float:
        """Ask, or see whether the last question was answered. Gives the seconds until the next look."""
        watches = list(self.watches)
        patience = min(watch.patience for watch in watches)
        pause = pause_of(patience)
        question = self._question
        if question is None:
            # An idle process is left asleep.
            if any(watch.busy() for watch in watches):
                question = self._question = _Question(seconds_without_processor(self._native_thread), collecting())
                try:
                    self._loop.call_soon_threadsafe(question.answer)
                except RuntimeError:  # it was closed just now
                    self._question = None
            return pause
        if question.answered is not None:
            self._conclude(question, collecting)
            return pause
        left = question.asked + patience - time.monotonic()
        if left <= 0 and question.seen is None:
            question.seen = self._see(watches)
        return min(pause, left) if left > 0 else pause

    def leave(self, watch: StallWatch[Any], collecting: Callable[[], float]) -> None:
        """An executor was closed; what its last call did is told now. Called on the loop."""
        self.watches.pop(watch, None)
        question = self._question
        if question is not None and question.seen is not None and question.seen[0] is watch:
            self._conclude(question, collecting)

    def _conclude(self, question: _Question, collecting: Callable[[], float]) -> None:
        """The loop runs again."""
        self._question = None
        if question.seen is None:
            return
        watch, culprit, where = question.seen
        seconds = (question.answered or time.monotonic()) - question.asked
        starved = seconds_without_processor(self._native_thread) - question.starved
        if seconds - starved - (collecting() - question.collecting) < watch.patience:
            return
        try:
            self._loop.call_soon_threadsafe(watch.blame, culprit, seconds, where)
        except RuntimeError:  # the loop is closed
            return

    def _see(self, watches: list[StallWatch[Any]]) -> tuple[StallWatch[Any], Any, str]:
        """Who runs now, and where."""
        task = asyncio.current_task(self._loop)
        frame = sys._current_frames().get(self._thread)
        where = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}" if frame else "unknown"
        foreign = runs_foreign_code(frame)
        # A frame keeps all its local variables alive, and the stall may last.
        del frame
        if task is not None and foreign:
            for watch in watches:
                culprit = watch.find(task)
                if culprit is not None:
                    return watch, culprit, where
        return min(watches, key=lambda watch: watch.patience), None, where


def pause_of(patience: float) -> float:
    """Seconds between two looks: five per patience, but not so many that the watching itself would load the loop."""
    return max(_SHORTEST, patience / 5)


class _Watcher:
    """The thread that watches all loops of the process; it lives while there is something to watch.

    Attributes:
        due: when the thread wants the interpreter and may not get it, on the monotonic clock; infinite while it works.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loops: dict[asyncio.AbstractEventLoop, _WatchedLoop] = {}
        self._thread: threading.Thread | None = None
        self._pause = _USUAL
        self._sooner = threading.Event()
        self.due = math.inf
        self._looked = threading.Lock()
        self._looked.acquire()
        self._collecting = 0.0
        self._collection_began = 0.0

    def add(self, watch: StallWatch[Any]) -> None:
        """Watch a loop for one more executor."""
        with self._lock:
            watched = self._loops.get(watch.loop)
            if watched is None:
                watched = self._loops[watch.loop] = _WatchedLoop(watch.loop)
            watched.watches[watch] = None
            if pause_of(watch.patience) < self._pause:
                self._sooner.set()  # rare: all executors with usual limits look alike often
            # Not alive: in a process that was forked, the thread stayed behind.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name=THREAD_NAME, daemon=True)
                self._thread.start()

    def discard(self, watch: StallWatch[Any]) -> None:
        """An executor was closed."""
        with self._lock:
            watched = self._loops.get(watch.loop)
            if watched is not None:
                watched.leave(watch, self._seconds_collecting)
                if not watched.watches:
                    del self._loops[watch.loop]

    def make_room(self) -> None:
        """Leave the interpreter to the thread until it has looked. Called on a busy loop when the thread is due."""
        self.due = math.inf  # waited for once: where the processors are taken, it may not come in this time either
        self._looked.acquire(blocking=False)  # an earlier look that nobody waited for
        self._looked.acquire(timeout=_ROOM)

    def _watch(self) -> None:
        gc.callbacks.append(self._collects)
        try:
            unused_since = time.monotonic()
            while True:
                if self._looked.locked():
                    self._looked.release()
                self.due = time.monotonic() + self._pause + _LATE
                self._sooner.wait(self._pause)
                self.due = math.inf
                with self._lock:
                    self._sooner.clear()
                    for loop in [loop for loop in self._loops if loop.is_closed()]:
                        del self._loops[loop]  # its executors were not closed
                    if self._loops:
                        unused_since = time.monotonic()
                        self._pause = min(watched.look(self._seconds_collecting) for watched in self._loops.values())
                        continue
                    self._pause = _USUAL
                    if time.monotonic() - unused_since > _IDLE_SECONDS:
                        self._thread = None
                        return
        finally:
            gc.callbacks.remove(self._collects)

    def _seconds_collecting(self) -> float:
        return self._collecting

    def _collects(self, phase: str, info: dict[str, int]) -> None:
        # Young objects are collected all the time, and quickly.
        if info["generation"] == 0:
            return
        now = time.monotonic()
        if phase == "start":
            self._collection_began = now
        else:
            self._collecting += now - self._collection_began


WATCHER = _Watcher()
"""The one of this process."""


@functools.cache
def _installed() -> tuple[str, tuple[str, ...]]:
    """The folders of Python's own library and of installed packages, which may lie inside of it."""
    import sysconfig  # 3 ms, and most processes never see a stall

    return sysconfig.get_path("stdlib"), tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


def runs_foreign_code(frame: FrameType | None) -> bool:
    """Whether code of a plugin or program is under way in what an event loop runs now.

    Args:
        frame: the innermost one of the loop's thread.
    """
    library, site = _installed()
    if frame is not None and frame.f_code.co_filename == f"{library}/ssl.py":
        return False  # reading the certificates of the system, which the first secure connection does
    while frame is not None and not _is_loop(frame) and not _is_call(frame):
        file = frame.f_code.co_filename
        is_ours = file.startswith(_PACKAGE) and not file.startswith(_TESTING)
        is_library = file.startswith((library, "<frozen ")) and not file.startswith(site)
        if not is_ours and not is_library:
            return True
        frame = frame.f_back
    return False


def _is_loop(frame: FrameType) -> bool:
    """Whether it is the loop itself, which runs what is inside of it."""
    file, (library, _) = frame.f_code.co_filename, _installed()
    if file == f"{library}/asyncio/base_events.py":
        return frame.f_code.co_name in _LOOP
    return file == f"{library}/asyncio/runners.py"


def _is_call(frame: FrameType) -> bool:
    """Whether the task of a call begins here. Below an eager task, the stack has the code that asked for the call."""
    code = frame.f_code
    return code.co_name == "_live" and code.co_filename == f"{_PACKAGE}executor/execution.py"


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
