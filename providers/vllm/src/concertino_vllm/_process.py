"""A server's processes as this process sees them: a watchdog that was given an order, and what it says since.

`ServerProcess` belongs to no event loop and no particular thread: its two futures may be awaited or waited for
anywhere. Invariant: whatever ends this process or this object, the server's processes end within the grace.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger("concertino.vllm")

_WATCHDOG = Path(__file__).with_name("_watchdog.py")
_alive: weakref.WeakSet[ServerProcess] = weakref.WeakSet()


class PortTaken(Exception):
    """The port belongs to another process."""


@dataclass(frozen=True)
class Order:
    """What a watchdog is told.

    Attributes:
        command: program and arguments; `{port}` in them becomes the port.
        env: the whole environment of the server.
        host: the address whose port is held for the server.
        port: the port, 0 for a free one.
        log: the file that takes its output.
        scratch: a folder of its own for sockets and other temporary files, removed at the end.
        temporary: whether the log, with its folder, is removed after an orderly end.
        grace: seconds between SIGTERM and SIGKILL.
    """

    command: Sequence[str]
    env: Mapping[str, str]
    host: str
    port: int
    log: Path
    scratch: Path
    temporary: bool
    grace: float


class ServerProcess:
    """A server under its watchdog.

    Attributes:
        started: the server's pid and port; fails with `PortTaken`, or with `ConnectionError` if the watchdog died.
        exited: the exit code, if the server ends by itself (negative: the signal); else as it ends.
        gone: set when nothing of it is left.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.started: Future[tuple[int, int]] = Future()
        self.exited: Future[int] = Future()
        self.gone: Future[None] = Future()
        self._lock = threading.RLock()  # a lease may be released while a word is being said
        with order.log.open("ab") as log:
            self._watchdog = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_WATCHDOG), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(order.env),
                start_new_session=True,
                bufsize=0,
            )
        _alive.add(self)
        told = {
            "command": list(order.command),
            "host": order.host,
            "port": order.port,
            "log": str(order.log),
            "scratch": str(order.scratch),
            "temporary": order.temporary,
            "grace": order.grace,
        }
        self._say(json.dumps(told))
        threading.Thread(target=self._listen, name="concertino-vllm-watchdog", daemon=True).start()

    @property
    def watchdog_pid(self) -> int:
        """Pid of the watchdog."""
        return self._watchdog.pid

    @property
    def alive(self) -> bool:
        """Whether the server has been started and not ended."""
        return self.started.done() and self.started.exception() is None and not self.exited.done()

    def take_stock(self) -> None:
        """Have the watchdog note what the server holds, in case all of it is killed at once."""
        self._say("stock")

    def own(self, folder: Path) -> None:
        """Have the watchdog remove a folder too, if this process ends without doing so."""
        self._say(f"own {folder}")

    def stop(self, *, failed: bool = False) -> None:
        """Ask for the end; `gone` tells when it has come. `failed` keeps the log."""
        self._say("fail" if failed else "stop")

    def _say(self, word: str) -> None:
        with self._lock, contextlib.suppress(OSError, ValueError):
            assert self._watchdog.stdin is not None
            self._watchdog.stdin.write(word.encode() + b"\n")

    def _listen(self) -> None:
        """Take in what the watchdog says, until it ends."""
        assert self._watchdog.stdout is not None
        pid, orderly, held = 0, False, []
        with self._watchdog.stdout as lines:
            for line in lines:
                event = json.loads(line)
                if event["event"] == "started":
                    pid = event["pid"]
                    self.started.set_result((pid, event["port"]))
                elif event["event"] == "exited":
                    self.exited.set_result(event["code"])
                elif event["event"] == "taken":
                    self.started.set_exception(PortTaken())
                elif event["event"] == "stock":
                    held = event["paths"]
                orderly = orderly or event["event"] in ("gone", "taken")
        code = self._watchdog.wait()
        with self._lock, contextlib.suppress(OSError):
            assert self._watchdog.stdin is not None
            self._watchdog.stdin.close()
        if pid and not orderly:
            logger.warning("the watchdog of the server (pid %d) was killed (%d); ending the server", pid, code)
            _end_group(pid, self.order.grace)
            shutil.rmtree(self.order.scratch, ignore_errors=True)
            for path in held:
                Path(path).unlink(missing_ok=True)
        if not self.started.done():
            self.started.set_exception(ConnectionError(f"the server's watchdog ended with {code}"))
        if not self.exited.done():
            self.exited.set_result(0)
        self.gone.set_result(None)

    def _forget(self) -> None:
        """In a forked child: the server is the parent's."""
        for pipe in (self._watchdog.stdin, self._watchdog.stdout):
            if pipe is not None:
                pipe.close()
        self._watchdog.returncode = 0  # not a child of this process


def _end_group(leader: int, grace: float) -> None:
    """End a process group without the help of its watchdog."""
    deadline = time.monotonic() + grace
    with contextlib.suppress(OSError):
        os.killpg(leader, signal.SIGTERM)
        while time.monotonic() < deadline:
            time.sleep(0.05)
            os.killpg(leader, 0)
        os.killpg(leader, signal.SIGKILL)


@atexit.register
def _end_all() -> None:
    """At a normal exit: wait until all servers are gone, so that their memory is free for whoever comes next."""
    left = [process for process in _alive if not process.gone.done()]
    for process in left:
        process.stop()
    for process in left:
        with contextlib.suppress(TimeoutError):
            process.gone.result(process.order.grace + 5)


def _forget_all() -> None:
    for process in list(_alive):
        process._forget()
    _alive.clear()


os.register_at_fork(after_in_child=_forget_all)
