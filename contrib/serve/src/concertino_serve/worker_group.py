"""Several workers of one server: processes that share a socket, a folder of runs, and a ledger.

    WorkerGroup(command, 4, listening, folder).run()      # until SIGTERM or Ctrl-C

A worker is the same command with `--worker NAME`. It has inherited the socket, and ends when its stdin does.

Invariants: the folder is locked until the last worker has ended, also if this process was killed: each worker has
inherited the lock. What a worker held is free for the others as soon as its death is known. Each worker has a name
that none had before.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from concertino.core.errors import UsageError
from concertino.core.logs import logger_of

from .run_ledger import RunLedger
from .served_folder import ServedFolder

_LOOK = 0.1
"""Seconds between two looks at the workers."""
_SOON = 5.0
"""A worker that fails within so many seconds could not begin."""
_LONGEST_PAUSE = 10.0
_MOST_FAILURES = 3
_STOP_SECONDS = 30.0
"""How long a worker may take to end, beside the time for its requests."""
logger = logger_of("serve")


@dataclass
class _Worker:
    name: str
    process: subprocess.Popen[bytes]
    began: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        return time.monotonic() - self.began


class WorkerGroup:
    """The workers of a server.

    Args:
        command: of a worker, without `--worker`.
        count: how many.
        listening: the socket that they share.
        folder: of the runs, locked.
        drain_seconds: how long a worker that is stopped waits for its requests.
    """

    def __init__(
        self, command: Sequence[str], count: int, listening: socket.socket, folder: ServedFolder, drain_seconds: float
    ) -> None:
        self._command = list(command)
        self._count = count
        self._fds = listening.fileno(), folder.fileno()
        self._ledger = ledger_file(folder.path)
        self._drain = drain_seconds
        self._workers: list[_Worker] = []
        self._made = self._failures = 0
        self._not_before = 0.0
        self._stopping = False

    def run(self) -> None:
        """Keep so many workers until a signal comes, then stop them.

        Raises:
            UsageError: no worker can begin.
        """
        with _handled({signal.SIGTERM: self._stop, signal.SIGINT: self._stop, signal.SIGHUP: self._pass_on}):
            try:
                while not self._stopping:
                    self._bury()
                    self._fill()
                    time.sleep(_LOOK)
            finally:
                self._end()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._tell(number)

    def _tell(self, number: int) -> None:
        for worker in self._workers:
            with contextlib.suppress(OSError):
                worker.process.send_signal(number)

    def _bury(self) -> None:
        """Free what dead workers held."""
        for worker in [each for each in self._workers if each.process.poll() is not None]:
            self._workers.remove(worker)
            self._abandon(worker)
            code = worker.process.returncode
            # One that was killed could begin.
            self._failures = self._failures + 1 if code > 0 and worker.age < _SOON else 0
            pause = min(_LONGEST_PAUSE, 0.25 * 2**self._failures) if self._failures else 0.0
            self._not_before = time.monotonic() + pause
            logger.warning("worker %s (process %s) has ended: %s", worker.name, worker.process.pid, _why(code))
        if self._failures >= _MOST_FAILURES and all(worker.age < _SOON for worker in self._workers):
            raise UsageError("no worker can begin, for the reason above; try it with --workers 1")

    def _abandon(self, worker: _Worker) -> None:
        with contextlib.closing(RunLedger(self._ledger, "group")) as ledger:
            ledger.abandon(worker.name)

    def _fill(self) -> None:
        while len(self._workers) < self._count and time.monotonic() >= self._not_before:
            self._made += 1
            name = str(self._made)
            command = [*self._command, "--worker", f"{name}:{self._fds[0]}"]
            # A group of processes of its own: Ctrl-C in a terminal is for this process, which stops them in order.
            # It is the same program with the same work, so it gets the keys, too.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, pass_fds=self._fds, process_group=0, env={**os.environ}
            )
            self._workers.append(_Worker(name, process))

    def _end(self) -> None:
        self._tell(signal.SIGTERM)
        until = time.monotonic() + self._drain + _STOP_SECONDS
        for worker in self._workers:
            try:
                worker.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                logger.error("worker %s (process %s) does not end, and is killed", worker.name, worker.process.pid)
                worker.process.kill()
                worker.process.wait()
        remove_ledger(self._ledger)


def ledger_file(folder: Path) -> Path:
    """The ledger of the workers of a folder."""
    return folder / "serve.ledger"


def new_ledger(folder: Path) -> RunLedger:
    """An empty ledger for the workers of a folder, which nobody else may serve now."""
    remove_ledger(ledger_file(folder))
    return RunLedger(ledger_file(folder), "group")


def remove_ledger(file: Path) -> None:
    """Remove a ledger that no worker has open."""
    for path in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
        path.unlink(missing_ok=True)


def end_with_stdin() -> None:
    """Stop this process in order when the process that began it ends: it holds the other end of stdin."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="end_with_stdin", daemon=True).start()


@contextlib.contextmanager
def _handled(handlers: dict[signal.Signals, Callable[[int, FrameType | None], None]]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _why(code: int) -> str:
    return f"signal {-code}; its runs continue in another one" if code < 0 else f"exit code {code}"
