"""Own processes for tools that must be killable: CPU-bound, untrusted with the interpreter, or prone to crash.

A worker is the module `concertino.executor.isolation.worker`, started with the function's import path. It reads a JSON
request per line and answers with a JSON line. Whatever the tool prints goes nowhere, except for the end of its
standard error, which explains a crash. Idle workers are kept for the next call. The invariants: a worker whose answer
is no longer awaited is killed; no worker, and nothing that a tool started, outlives this process (see `ChildProcess`).
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import threading
from collections import deque
from collections.abc import Callable
from subprocess import PIPE
from typing import Any

from concertino.core.child_python import module_command, safe_environment
from concertino.executor.content import BadResult
from concertino.members.import_path import import_path

from .child_process import ChildProcess
from .threads import Crew

_BYTES_PER_CHARACTER = 16
"""Bytes of JSON that one character of a result takes at most, with room for what stands around it."""


class WorkerError(Exception):
    """What a tool in its own process raised, or how the process died."""


class _WorkerProcess:
    """One process, used by one call at a time."""

    def __init__(self, module: str, qualname: str) -> None:
        self.process = ChildProcess(
            module_command("concertino.executor.isolation.worker", module, qualname),
            stdin=PIPE,
            stdout=PIPE,
            env=safe_environment(os.environ),
        )
        self._killed = False
        assert self.process.stdout is not None
        self._replies = io.BufferedReader(self.process.stdout)

    def ask(self, arguments: dict[str, Any], limit: int) -> Any:
        """Send arguments, wait for the answer (blocking).

        Raises:
            WorkerError: the tool raised, or the process died.
            BadResult: the answer is too long.
        """
        assert self.process.stdin is not None
        most = _BYTES_PER_CHARACTER * limit
        try:
            data = memoryview(json.dumps(arguments).encode() + b"\n")
            while data:
                data = data[self.process.stdin.write(data) or 0 :]
            line = self._replies.readline(most)
        except (OSError, ValueError):  # the process died, or another thread closed the pipes
            line = b""
        if not line:
            raise WorkerError(self._death())
        # The rest would be read as the answer to the next call, so the process cannot be used again.
        if not line.endswith(b"\n"):
            self.kill()
            raise BadResult(f"returned more than {most:,} bytes of JSON, or died while it answered")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer["result"]

    def _death(self) -> str:
        try:
            # A process closes its pipes a moment before the guard knows of its end.
            code = self.process.wait(1.0)
        except TimeoutError:  # it closed the pipe and lives on
            self.kill()
            code = self.process.wait()
        tail = self.process.stderr_tail()
        how = f"its process died ({'signal' if code < 0 else 'exit code'} {abs(code)})"
        return f"{how}; the end of its stderr: {tail}" if tail else how

    @property
    def alive(self) -> bool:
        """Whether it can be asked again."""
        return not self._killed and self.process.poll() is None

    def kill(self) -> None:
        """End the process and whatever the tool started. Returns at once; a thread that waits for the answer gets
        none.
        """
        self._killed = True
        self.process.kill()

    def close(self) -> None:
        """End the process, and wait until nothing of it is left."""
        self.kill()
        with contextlib.suppress(TimeoutError):
            self.process.wait(5.0)
        self.process.close_pipes()


class _Seat:
    """Which worker a call got, and whether the call still waits for it."""

    __slots__ = ("left", "worker")

    def __init__(self) -> None:
        self.worker: _WorkerProcess | None = None
        self.left = False


class Workers:
    """The processes of one member."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._path = import_path(function, name)
        self._idle: deque[_WorkerProcess] = deque()
        self._busy: set[_WorkerProcess] = set()
        self._lock = threading.Lock()

    async def run(self, arguments: dict[str, Any], crew: Crew, limit: int) -> Any:
        """Run the tool on plain JSON arguments in a process that this call has for itself.

        Args:
            crew: whose threads wait for the process.
            limit: characters of the largest result (`Limits.result_bytes`).
        """
        seat = _Seat()

        def work() -> Any:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            worker = worker or _WorkerProcess(*self._path)
            with self._lock:
                self._busy.add(worker)
                seat.worker = worker
                left = seat.left
            try:
                # The call was cancelled while the process started, when there was no worker yet to kill.
                if left:
                    worker.kill()
                    raise WorkerError("it was no longer awaited when its process was ready")
                return worker.ask(arguments, limit)
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

    def _release(self, worker: _WorkerProcess) -> None:
        with self._lock:
            reusable = worker in self._busy and worker.alive
            self._busy.discard(worker)
            if reusable:
                self._idle.append(worker)
        if not reusable:
            worker.close()

    def _discard(self, worker: _WorkerProcess) -> None:
        with self._lock:
            self._busy.discard(worker)
        worker.kill()  # its thread sees the end of the pipe and closes it

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            workers = [*self._idle, *self._busy]
            self._idle.clear()
        for worker in workers:
            worker.kill()  # all at once, before the first is waited for
        for worker in workers:
            worker.close()
        self._busy.clear()
