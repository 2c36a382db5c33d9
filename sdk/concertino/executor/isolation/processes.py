"""Own processes for tools that must be killable: CPU-bound, untrusted with the interpreter, or prone to crash.

A worker is `python -m concertino.executor.isolation.worker`, started with the function's import path. It reads a
JSON request per line and answers with a JSON line on a pipe of its own, so whatever the tool prints goes nowhere. Idle
workers are kept for the next call. The invariant: a worker whose answer is no longer awaited is killed, and no worker
outlives its parent, however that dies: it holds the reading end of a pipe whose writing end only the parent has.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from concertino.members.import_path import import_path

from .threads import Crew


class WorkerError(Exception):
    """What a tool in its own process raised, or how the process died."""


class _Worker:
    """One process, used by one call at a time."""

    def __init__(self, module: str, qualname: str) -> None:
        reply_read, reply_write = os.pipe()
        lifeline, self._lifeline = os.pipe()
        try:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "concertino.executor.isolation.worker",
                    module,
                    qualname,
                    str(reply_write),
                    str(lifeline),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(reply_write, lifeline),
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p or str(Path.cwd()) for p in sys.path)},
            )
        except BaseException:
            os.close(reply_read)
            os.close(self._lifeline)
            raise
        finally:
            os.close(reply_write)
            os.close(lifeline)
        self.replies = os.fdopen(reply_read, "rb")

    def ask(self, arguments: dict[str, Any]) -> Any:
        """Send arguments, wait for the answer (blocking)."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(arguments).encode() + b"\n")
            self.process.stdin.flush()
            line = self.replies.readline()
        except (OSError, ValueError):
            line = b""
        if not line:
            code = self.process.wait()
            raise WorkerError(f"its process died ({'signal' if code < 0 else 'exit code'} {abs(code)})")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer["result"]

    def kill(self) -> None:
        """End the process now."""
        self.signal_death()
        self.process.wait()
        for stream in (self.process.stdin, self.replies):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        lifeline, self._lifeline = self._lifeline, -1  # once: the number may belong to somebody else by now
        if lifeline >= 0:
            os.close(lifeline)

    def signal_death(self) -> None:
        """Kill the process and whatever the tool forked from it, unless the process has been waited for."""
        if self.process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)


class _Seat:
    """Which worker a call got, and whether the call still waits for it."""

    __slots__ = ("left", "worker")

    def __init__(self) -> None:
        self.worker: _Worker | None = None
        self.left = False


class Workers:
    """The processes of one member."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._path = import_path(function, name)
        self._idle: deque[_Worker] = deque()
        self._busy: set[_Worker] = set()
        self._lock = threading.Lock()

    async def run(self, arguments: dict[str, Any], crew: Crew) -> Any:
        """Run the tool on plain JSON arguments in a process that this call has for itself.

        Args:
            crew: whose threads wait for the process.
        """
        seat = _Seat()

        def work() -> Any:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            worker = worker or _Worker(*self._path)
            with self._lock:
                self._busy.add(worker)
                seat.worker = worker
                left = seat.left
            if left:
                self._discard(worker)
                raise WorkerError("it was no longer awaited when its process was ready")
            try:
                return worker.ask(arguments)
            finally:
                self._release(worker)

        try:
            return await crew.run(self.name, work)
        except asyncio.CancelledError:
            with self._lock:
                seat.left = True
                worker = seat.worker
            if worker is not None:
                self._discard(worker)
            raise

    def _release(self, worker: _Worker) -> None:
        with self._lock:
            alive = worker in self._busy and worker.process.poll() is None
            self._busy.discard(worker)
            if alive:
                self._idle.append(worker)
        if not alive:
            worker.kill()

    def _discard(self, worker: _Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
        worker.signal_death()  # its thread sees the end of the pipe and reaps it

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            workers = [*self._idle, *self._busy]
            self._idle.clear()
        for worker in workers:
            worker.kill()
        self._busy.clear()
