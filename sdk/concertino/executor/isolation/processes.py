"""Own processes for tools that must be killable: CPU-bound, untrusted with the interpreter, or prone to crash.

A worker is the module `concertino.executor.isolation.worker`, started with the function's import path. It reads a JSON
request per line and answers with a JSON line. Whatever the tool prints goes nowhere, except for the end of its
standard error, which explains a crash. Idle workers are kept for the next call. The invariants: a worker whose answer
is no longer awaited is killed; no worker, and nothing that a tool started, outlives this process (see `ChildProcess`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable
from subprocess import PIPE
from typing import Any

from concertino.core.bounded_pipe import BoundedLines, TooMuchOutput
from concertino.core.child_environment import child_environment
from concertino.core.child_python import module_command, safe_environment
from concertino.executor.content import MOST_VALUES, BadResult
from concertino.members.import_path import import_path
from concertino.text.stranger_json import TooManyValues, read_stranger_json

from .child_process import ChildProcess
from .threads import Crew

_AROUND = 64
"""Bytes that stand around a result."""
_ERROR_BYTES = 1 << 17
"""Bytes that the line of an error has at most."""


class WorkerError(Exception):
    """What a tool in its own process raised, or how the process died."""


class _WorkerProcess:
    """One process, used by one call at a time."""

    def __init__(self, module: str, qualname: str, env_from: tuple[str, ...]) -> None:
        self.process = ChildProcess(
            module_command("concertino.executor.isolation.worker", module, qualname),
            stdin=PIPE,
            stdout=PIPE,
            env=safe_environment(child_environment(env_from, python=True)),
        )
        self._killed = False
        assert self.process.stdout is not None
        self._replies = BoundedLines(self.process.stdout)

    def ask(self, arguments: dict[str, Any], limit: int) -> Any:
        """Send arguments, wait for the answer (blocking).

        Args:
            arguments: of the tool.
            limit: bytes of JSON that a result may have.

        Raises:
            WorkerError: the tool raised, or the process died.
            BadResult: the answer is too long, or no answer.
        """
        assert self.process.stdin is not None
        try:
            data = memoryview(json.dumps({"arguments": arguments, "most": limit}).encode() + b"\n")
            while data:
                data = data[self.process.stdin.write(data) or 0 :]
            line = self._replies.line(max(limit, _ERROR_BYTES) + _AROUND)
        except TooMuchOutput:
            # The rest would be read as the answer to the next call, so the process cannot be used again.
            self.kill()
            raise BadResult(f"returned more than {limit:,} bytes of JSON; at most that many are taken") from None
        except (OSError, ValueError):  # the process died, or another thread closed the pipes
            line = b""
        if not line:
            raise WorkerError(self._death())
        answer = self._read(line)
        if "error" in answer:
            raise WorkerError(str(answer["error"]))
        if "too_large" in answer:
            raise BadResult(f"returned {answer['too_large']:,} bytes of JSON; at most {limit:,} are taken")
        return answer["result"]

    def _read(self, line: bytes) -> dict[str, Any]:
        """The answer on a line. A tool may write lines of its own there, and then nothing can be believed any more."""
        try:
            if not line.endswith(b"\n"):
                raise ValueError("it died while it answered")
            answer = read_stranger_json(line, 2 * MOST_VALUES)
            if type(answer) is dict and (
                "result" in answer or type(answer.get("error")) is str or type(answer.get("too_large")) is int
            ):
                return answer
            raise ValueError("not an answer of a worker")
        except (ValueError, RecursionError) as error:
            if not isinstance(error, TooManyValues):
                self.kill()
            raise BadResult(f"gave an answer that cannot be read: {str(error)[:200]}") from None

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
    """The processes of one member.

    Args:
        name: of the member.
        function: what they run.
        env_from: environment variables that they are given beside those of `child_environment`.
    """

    def __init__(self, name: str, function: Callable[..., Any], env_from: tuple[str, ...] = ()) -> None:
        self.name = name
        self._env_from = env_from
        self._path = import_path(function, name)
        self._idle: deque[_WorkerProcess] = deque()
        self._busy: set[_WorkerProcess] = set()
        self._lock = threading.Lock()

    async def run(self, arguments: dict[str, Any], crew: Crew, limit: int) -> Any:
        """Run the tool on plain JSON arguments in a process that this call has for itself.

        Args:
            crew: whose threads wait for the process.
            limit: bytes of the largest result (`Limits.result_bytes`).
        """
        seat = _Seat()

        def work() -> Any:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            worker = worker or _WorkerProcess(*self._path, self._env_from)
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
