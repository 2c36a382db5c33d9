"""The guard of one MCP server: a small process between the owner and the server, which sees to the server's end.

It is run as a plain script and knows only the standard library: `python -I -S _guard.py OWNER_PID GRACE COMMAND...`.
The server inherits the guard's standard streams and the guard lets go of them, so no data passes through it.

Invariant: no process of the server outlives the guard, and the guard outlives neither its owner nor the server's main
process. It adopts orphans (Linux), so what the server starts is found even where it left the server's group.

    the owner ends in any way         everything is killed at once
    SIGTERM                           SIGTERM to the server's group, SIGKILL to all that is left after GRACE seconds
    the server's main process ends    what is left of it is killed; the guard ends in the same way
    the guard is killed               the system kills the server's main process (Linux)
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Guard:
    """One server, from its start until nothing of it is left."""

    def __init__(self, owner: int, grace: float) -> None:
        self.owner = owner
        self.grace = grace
        self.child = 0
        self.status: int | None = None
        self.stopping = False
        self._alarm, alarm = os.pipe()
        for end in (self._alarm, alarm):
            os.set_blocking(end, False)
            os.set_inheritable(end, False)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in _ENDING:
            signal.signal(number, self._stop)
        self._handle = -1
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._handle = os.pidfd_open(owner)

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def run(self, command: list[str]) -> None:
        """Start, watch, end."""
        self.child = self._start(command)
        for stream in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        while self.status is None and not self.stopping and not self._orphaned():
            self._wait(5.0 if self._handle >= 0 else 0.2)
        deadline = time.monotonic()
        if self.stopping and self.status is None:
            deadline += self.grace
            self._signal(signal.SIGTERM)
        while self._reap():
            late = time.monotonic() >= deadline or self._orphaned() or self.status is not None
            if late:
                self._kill()
            self._wait(0.01 if late else deadline - time.monotonic())
        self._end_likewise()

    def _start(self, command: list[str]) -> int:
        me = os.getpid()
        child = os.fork()
        if child:
            with contextlib.suppress(OSError):
                os.setpgid(child, child)
            return child
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            for number in (*_ENDING, signal.SIGCHLD, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == me:
                os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"cannot execute {command[0]}: {error.strerror}\n".encode())
        os._exit(127)

    def _orphaned(self) -> bool:
        """Whether the owner is no more."""
        if os.getppid() != self.owner:
            return True
        return self._handle >= 0 and bool(select.select([self._handle], [], [], 0)[0])

    def _wait(self, seconds: float) -> None:
        """Wait for a signal or the owner's end, and take in what has ended."""
        watched = [self._alarm] if self._handle < 0 or self._orphaned() else [self._alarm, self._handle]
        with contextlib.suppress(InterruptedError):
            select.select(watched, [], [], max(0.0, seconds))
        with contextlib.suppress(BlockingIOError):
            os.read(self._alarm, 512)
        self._reap()

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
                self.status = status

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.child, number)

    def _kill(self) -> None:
        self._signal(signal.SIGKILL)
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _end_likewise(self) -> None:
        """End with the server's exit code, or by the signal that ended it."""
        code = os.waitstatus_to_exitcode(self.status) if self.status is not None else 1
        if code < 0 and -code not in (signal.SIGSTOP, signal.SIGTSTP):
            with contextlib.suppress(ImportError, OSError, ValueError):
                import resource

                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                if -code != signal.SIGKILL:
                    signal.signal(-code, signal.SIG_DFL)
                os.kill(os.getpid(), -code)
        os._exit(code if code >= 0 else 128 - code)


def descendants(root: int) -> list[int]:
    """Living processes below one, by /proc; none where there is no /proc."""
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for name in (entry.name for entry in os.scandir("/proc")):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    text = Path(f"/proc/{name}/stat").read_text(errors="replace")
                    state, parent = text.rpartition(")")[2].split()[:2]
                    if state not in "ZX":
                        parents[int(name)] = int(parent)
    found: list[int] = []
    edge = [root]
    while edge:
        edge = [pid for pid, parent in parents.items() if parent in edge]
        found += edge
    return found


def main() -> None:
    """Guard one server."""
    owner, grace = int(sys.argv[1]), float(sys.argv[2])
    if os.getppid() != owner:
        return  # it ended before this process began
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    Guard(owner, grace).run(sys.argv[3:])


if __name__ == "__main__":
    main()
