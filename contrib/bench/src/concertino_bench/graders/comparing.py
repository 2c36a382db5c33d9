"""Comparisons of mathematical answers that can be cut off: in a process of their own, from any thread or event loop.

A symbolic comparison may take for ever or eat all memory, and nothing inside a thread can stop it. So each runs in a
worker process (`math_worker`), which is killed when its time is over and used again when it is not. The invariants:
`compare` never raises because of the texts; at most `workers` processes live; none outlives this process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_START_SECONDS = 120.0
_WORKER = Path(__file__).with_name("math_worker.py")


class MathComparison(NamedTuple):
    """The result of a comparison.

    Attributes:
        equal: whether the two are the same.
        found: what was read as the answer; None where nothing was.
        trouble: why there is no verdict, such as the time limit; empty where there is one.
    """

    equal: bool
    found: str | None
    trouble: str


class Comparer:
    """A few worker processes that compare.

    Args:
        seconds: of one comparison, reading included.
        workers: comparisons at once; more wait.
    """

    def __init__(self, seconds: float = 5.0, workers: int = 2) -> None:
        if seconds <= 0 or workers < 1:
            raise ValueError(f"Comparer(seconds={seconds}, workers={workers}); expected more than 0, and at least 1")
        self.seconds, self.workers = seconds, workers
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(workers)
        self._idle: list[_MathProcess] = []
        weakref.finalize(self, _end_all, self._idle)  # when nobody has it any more, and at the end of the process
        _LIVING.add(self)

    def compare(self, golds: Sequence[str], found: str, *, whole: bool = True, rounding: bool = True) -> MathComparison:
        """Compare an answer with each gold text. Blocks; may be called from any thread.

        Args:
            golds: right answers in LaTeX, without dollar signs.
            found: the answer, or a text that holds one.
            whole: `found` is nothing but the answer.
            rounding: an exact answer equals a decimal gold that it rounds to.

        Raises:
            ModuleNotFoundError: math-verify is not installed.
            RuntimeError: a worker cannot be started at all.
        """
        request = json.dumps({"golds": list(golds), "found": found, "whole": whole, "rounding": rounding})
        with self._places:
            worker = self._take()
            answer = worker.ask(request, self.seconds)
            if answer is None:
                worker.end()
                return MathComparison(False, None, f"not compared within {self.seconds:g} s")
            with self._lock:
                self._idle.append(worker)
        if "equal" not in answer:
            return MathComparison(False, None, "the comparing process ended; too much memory, maybe")
        trouble = f"it cannot be compared: {answer['error']}" if answer["error"] else ""
        return MathComparison(bool(answer["equal"]), answer["found"], trouble)

    def close(self) -> None:
        """End all idle workers; the next comparison starts new ones."""
        with self._lock:
            _end_all(self._idle)

    def _take(self) -> _MathProcess:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive():
                    return worker
                worker.end()
        return _MathProcess()

    def _forget(self) -> None:
        """Begin again after a fork, whose child must not talk to the workers of its parent."""
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(self.workers)
        while self._idle:
            self._idle.pop().leave()


class _MathProcess:
    """One worker process, ready when it is made."""

    def __init__(self) -> None:
        if importlib.util.find_spec("math_verify") is None:
            raise ModuleNotFoundError("comparing mathematical answers needs math-verify: pip install math-verify")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        if self._line(_START_SECONDS) is None:
            self.end()
            raise RuntimeError(f"the comparing process did not start: `{sys.executable} {_WORKER}` says why")

    def ask(self, request: str, seconds: float) -> dict[str, Any] | None:
        """Its answer; None after the time, an empty one if the process ended by itself."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
        except OSError:
            return {}
        return self._line(seconds)

    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self._process.poll() is None

    def end(self) -> None:
        """Kill it and give back what it held."""
        self._process.kill()
        self._process.wait()
        self._close()

    def leave(self) -> None:
        """Give back what this process holds of it, and let it live: it is another one's."""
        self._process.returncode = 0
        self._close()

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _line(self, seconds: float) -> dict[str, Any] | None:
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        assert self._process.stdout is not None
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        if late.is_set():
            return None
        answer: dict[str, Any] = json.loads(line) if line else {}
        return answer


_LIVING: weakref.WeakSet[Comparer] = weakref.WeakSet()


def _end_all(idle: list[_MathProcess]) -> None:
    while idle:
        idle.pop().end()


def _forget_all() -> None:
    for comparer in list(_LIVING):
        comparer._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
