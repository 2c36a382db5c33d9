"""Comparisons of mathematical answers that can be cut off: in a process of their own, from any thread or event loop.

A symbolic comparison may take for ever or eat all memory, and nothing inside a thread can stop it. So each runs in a
worker process (`math_worker`), which is killed when its time is over and used again when it is not. The invariants:
`compare` never raises because of the texts; at most `workers` processes live; none outlives this process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any, NamedTuple

from concertino.executor import BoundedLines, ChildProcess, TooMuchOutput, child_environment

# For importing sympy, which takes seconds, and far longer on a machine that is busy or has a cold disk.
_START_SECONDS = 120.0
# Bytes of an answer, which are far fewer: the process that reads a stranger's text is not trusted with our memory.
_ANSWER_BYTES = 1 << 16
_WORKER = Path(__file__).with_name("math_worker.py")


class MathComparison(NamedTuple):
    """The result of a comparison.

    Attributes:
        equal: whether the two are the same.
        found: what was read as the answer; None where nothing was.
        trouble: why there is no verdict, such as the time limit; empty where there is one.
        late: there is none because of the time.
    """

    equal: bool
    found: str | None
    trouble: str
    late: bool = False


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
        self._idle: list[_MathProcess] = []
        self._begin()
        # The list and not `self`: a reference to the object would keep it alive for ever.
        weakref.finalize(self, _end_all, self._idle)

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(self.workers)

    def compare(
        self,
        golds: Sequence[str],
        found: str,
        *,
        whole: bool = True,
        rounding: bool = True,
        seconds: float | None = None,
    ) -> MathComparison:
        """Compare an answer with each gold text. Blocks; may be called from any thread.

        Args:
            golds: right answers in LaTeX, without dollar signs.
            found: the answer, or a text that holds one.
            whole: `found` is nothing but the answer.
            rounding: an exact answer equals a decimal gold that it rounds to.
            seconds: after which the process gives up by itself and lives on; for a verdict that can be done without.

        Raises:
            ModuleNotFoundError: math-verify is not installed.
            RuntimeError: a worker cannot be started at all.
        """
        if self._pid != os.getpid():  # a forked child must not talk to the workers of its parent
            self._idle.clear()
            self._begin()
        asked = {"golds": list(golds), "found": found, "whole": whole, "rounding": rounding}
        request = json.dumps(asked if seconds is None else asked | {"seconds": seconds})
        with self._places:
            worker = self._take()
            if not worker.ready(seconds):
                self._put_back(worker)
                return MathComparison(False, None, "it is still starting", late=True)
            answer = worker.ask(request, self.seconds)
            if not answer or "equal" not in answer:
                # Not put back: a late reply, or the rest of a long one, would be taken for the next comparison's.
                worker.end()
                late = f"not compared within {self.seconds:g} s"
                ended = "the comparing process ended; too much memory, maybe"
                return MathComparison(False, None, late if answer is None else ended)
            self._put_back(worker)
        trouble = f"it cannot be compared: {answer['error']}" if answer["error"] else ""
        if answer.get("late"):
            return MathComparison(False, None, answer["error"], late=True)
        return MathComparison(bool(answer["equal"]), answer["found"], trouble)

    def close(self) -> None:
        """End all idle workers; the next comparison starts new ones."""
        with self._lock:
            _end_all(self._idle)

    def _put_back(self, worker: _MathProcess) -> None:
        with self._lock:
            # Used again because starting one takes seconds: it imports sympy.
            self._idle.append(worker)

    def _take(self) -> _MathProcess:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.process.poll() is None:
                    return worker
                worker.end()
        return _MathProcess()


class _MathProcess:
    """One worker process, which starts by itself."""

    def __init__(self) -> None:
        if importlib.util.find_spec("math_verify") is None:
            raise ModuleNotFoundError("comparing mathematical answers needs math-verify: pip install math-verify")
        # -P: the folder of the script is not searched, whose modules (`numeric`, `matching`) could shadow others.
        command = [sys.executable, "-P", str(_WORKER)]
        self.process = ChildProcess(command, env=child_environment(python=True), stdin=PIPE, stdout=PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._replies = self.process.stdin, BoundedLines(self.process.stdout)
        self._late = False
        self._started = threading.Event()
        # In a thread, for who can do without a comparison does not wait for the start.
        threading.Thread(target=self._start, name="math-verify starts", daemon=True).start()

    def _start(self) -> None:
        try:
            self._late = self._line(_START_SECONDS) is None
        except (OSError, ValueError):  # its pipes were closed meanwhile
            self._late = False
        finally:
            self._started.set()

    def ready(self, seconds: float | None) -> bool:
        """Whether it has started; waits for that, for some seconds or as long as it takes.

        Raises:
            RuntimeError: it does not start.
        """
        if not self._started.wait(seconds):
            return False
        if self._late:
            self.end()
            raise RuntimeError(f"the comparing process did not start: `{sys.executable} {_WORKER}` says why")
        return True

    def ask(self, request: str, seconds: float) -> dict[str, Any] | None:
        """Its answer; None after the time limit, an empty one if the process ended."""
        try:
            data = memoryview(request.encode() + b"\n")
            while data:
                # The pipe is unbuffered, so one write may take only a part.
                data = data[self._requests.write(data) or 0 :]
        except OSError:
            return {}
        return self._line(seconds)

    def end(self) -> None:
        """Kill the process, and close its pipes."""
        self.process.kill()
        self.process.wait()
        self.process.close_pipes()

    def _line(self, seconds: float) -> dict[str, Any] | None:
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.process.kill()

        # A blocking read cannot be given a limit; killing the process ends it.
        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            line = self._replies.line(_ANSWER_BYTES)
        except TooMuchOutput:
            self.process.kill()
            return {}
        finally:
            timer.cancel()
        if late.is_set():
            return None
        # A line that is longer than any answer is none; nor is what is left of one whose process was killed.
        answer: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        return answer


def _end_all(idle: list[_MathProcess]) -> None:
    while idle:
        idle.pop().end()
