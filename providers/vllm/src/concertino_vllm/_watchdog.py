"""The watchdog of one server: a process of its own that ends the server once its owner is gone, for any reason.

It is run as a plain script by `_process`, knows only the standard library, and reads one order (a line of JSON), then
single words, from its standard input. It answers with lines of JSON on its standard output:

    {"event": "started", "pid": 1234, "port": 40001}      the server was started; it is not ready yet
    {"event": "stock", "paths": ["/dev/shm/..."]}         what it holds, in answer to `stock`
    {"event": "taken"}                                    the port belongs to somebody else; nothing was started
    {"event": "exited", "code": -9}                       the server ended by itself
    {"event": "gone"}                                     nothing of it is left; the watchdog ends

Words: `stock` (note what the server holds in /dev/shm), `own FOLDER` (remove it too, if the owner ends without doing
so), `stop`, `fail` (stop, and keep the log).

The owner is gone when the pipe closes, or, where the system tells (Linux), when its process is no more: a forked child
of the owner may keep the pipe open. No thread matters: the pipe and the process are those of the whole owner.

What the server starts stays with the watchdog: it leads the server's process group, adopts orphans (Linux), and does
not end before the last one is dead, its shared memory and its scratch folder are removed. If the watchdog itself is
killed, the server gets a SIGTERM from the system (Linux), and the owner kills the group.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SHARED_MEMORY = "/dev/shm/"
_PORT = "{port}"


def _prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Owner:
    """Whoever started the watchdog: a pipe that brings words, and a process that may end."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._words = b""
        self._handle = -1
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._handle = os.pidfd_open(pid)

    def watched(self) -> list[int]:
        """What to wait for."""
        return [0, self._handle] if self._handle >= 0 else [0]

    def gone(self, ready: list[int]) -> bool:
        """Whether its process has ended."""
        return self._handle in ready or os.getppid() != self.pid

    def read(self) -> list[str] | None:
        """The words that have come, or None at the end of the pipe."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(0, 1 << 16)
            if not data:
                return None
            *whole, self._words = (self._words + data).split(b"\n")
            return [line.decode() for line in whole]
        return []


class Watchdog:
    """One server, from its start until nothing of it is left."""

    def __init__(self, order: dict[str, Any], owner: Owner) -> None:
        self.order = order
        self.owner = owner
        self.child = 0
        self.code: int | None = None
        self.stopping = False
        self.keep_log = False
        self.orphaned = False
        self.owned = ""
        self.held: socket.socket | None = None
        self.shared: set[str] = set()
        self.others = _shared_memory()
        self._alarm, alarm = os.pipe()
        for end in (self._alarm, alarm):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: setattr(self, "stopping", True))

    def run(self) -> None:
        """Start, watch, end."""
        port = self._hold_port()
        if not port:
            self._clear()
            self._tell(event="taken")
            return
        self.child = self._start(port)
        self._tell(event="started", pid=self.child, port=port)
        while not self.stopping and self.code is None:
            self._wait(1.0)
        if self.code is not None:
            self.keep_log = True
            self._tell(event="exited", code=self.code)
        self._end()
        self._clear()
        self._tell(event="gone")

    def _tell(self, **event: Any) -> None:
        """One line to the owner, if it is there."""
        with contextlib.suppress(OSError):
            os.write(1, json.dumps(event).encode() + b"\n")

    # -- starting ----------------------------------------------------------------------------------------------

    def _hold_port(self) -> int:
        """Bind the port without listening, so that nobody else is given it before the server listens; 0 if taken."""
        host, port = self.order["host"], int(self.order["port"])
        held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind((host, port))
        except OSError:
            held.close()
            return 0
        port = int(held.getsockname()[1])
        if LINUX:  # elsewhere, a bound socket would keep the server itself from binding
            self.held = held
        else:
            held.close()
        return port

    def _start(self, port: int) -> int:
        command = [part.replace(_PORT, str(port)) for part in self.order["command"]]
        log = os.open(self.order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        me = os.getpid()
        child = os.fork()
        if child:
            os.close(log)
            with contextlib.suppress(OSError):
                os.setpgid(child, child)
            return child
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != me:
                os._exit(127)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.execv(command[0], command)
        except OSError as error:
            os.write(2, f"cannot execute {command[0]}: {error}\n".encode())
        os._exit(127)

    # -- watching ----------------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Wait for a word, a signal, the owner's end or a child's end."""
        waiting = [*self.owner.watched(), self._alarm] if not self.stopping else [self._alarm]
        try:
            ready, _, _ = select.select(waiting, [], [], seconds)
        except InterruptedError:
            ready = []
        with contextlib.suppress(BlockingIOError):
            os.read(self._alarm, 512)
        self._reap()
        if self.stopping:
            return
        words = self.owner.read() if 0 in ready else []
        if words is None or self.owner.gone(ready):
            self.stopping = self.orphaned = True
            return
        for word in words:
            if word == "stock":
                self._take_stock()
                self._tell(event="stock", paths=sorted(self.shared))
            elif word.startswith("own "):
                self.owned = word.removeprefix("own ")
            elif word in ("stop", "fail"):
                self.stopping, self.keep_log = True, word == "fail"

    def _reap(self) -> bool:
        """Take in what has ended; whether a child is left. Orphans are adopted, so without a child nothing is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            if pid == self.child:
                self.code = os.waitstatus_to_exitcode(status)

    # -- ending ------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        """SIGTERM to the group, SIGKILL to whatever is left after the grace, until nothing is left."""
        self.stopping = True
        self._take_stock()
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + float(self.order["grace"])
        while self._anything_left():
            late = time.monotonic() >= deadline
            if late:
                self._signal(signal.SIGKILL)
                for pid in _descendants():
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
            self._wait(0.02 if late else min(0.1, deadline - time.monotonic()))

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.child, number)

    def _anything_left(self) -> bool:
        if self._reap():
            return True
        if not LINUX:  # where orphans are not adopted
            with contextlib.suppress(OSError):
                os.killpg(self.child, 0)
                return True
        return False

    def _take_stock(self) -> None:
        """Note the shared memory that the server's processes have open or mapped."""
        for pid in _descendants():
            with contextlib.suppress(OSError):
                for entry in os.scandir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(OSError):
                        self._note(os.readlink(entry.path))  # noqa: PTH115
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
                    self._note(line[line.find("/") :] if "/" in line else "")

    def _note(self, path: str) -> None:
        if path.startswith(_SHARED_MEMORY) and not path.endswith(" (deleted)") and path not in self.others:
            self.shared.add(path)

    def _clear(self) -> None:
        """Remove what dead processes leave: shared memory, the scratch folder, a log that nobody needs."""
        if self.held is not None:
            self.held.close()
        for path in self.shared:
            with contextlib.suppress(OSError):
                Path(path).unlink()
        shutil.rmtree(self.order["scratch"], ignore_errors=True)
        if self.orphaned and self.owned:
            shutil.rmtree(self.owned, ignore_errors=True)
        if self.order["temporary"] and not self.keep_log:
            shutil.rmtree(Path(self.order["log"]).parent, ignore_errors=True)


def _shared_memory() -> frozenset[str]:
    """What is in /dev/shm now."""
    with contextlib.suppress(OSError):
        return frozenset(map(str, Path(_SHARED_MEMORY).iterdir()))
    return frozenset()


def _descendants() -> list[int]:
    """Living processes below this one, by /proc; orphans among them have been adopted."""
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for name in (entry.name for entry in os.scandir("/proc")):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    state, parent = (
                        Path(f"/proc/{name}/stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                    )
                    if state not in "ZX":
                        parents[int(name)] = int(parent)
    found: list[int] = []
    edge = [os.getpid()]
    while edge:
        edge = [pid for pid, parent in parents.items() if parent in edge]
        found += edge
    return found


def main() -> None:
    """Read the order and do it."""
    owner = Owner(int(sys.argv[1]))
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return  # the owner ended before it gave an order
        line += byte
    os.set_blocking(0, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    Watchdog(json.loads(line), owner).run()


if __name__ == "__main__":
    main()
