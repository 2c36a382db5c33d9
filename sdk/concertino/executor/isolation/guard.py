"""The guard of one child process: a small process between the owner and the child, which sees to the child's end.

It runs as a plain script and needs only the standard library: `python -I -S guard.py OPTIONS COMMAND...`. The child
inherits the guard's standard streams and the guard lets go of them, so no data passes through it.

Invariant: no descendant of the child outlives the guard, and the guard outlives neither its owner (by more than the
grace) nor the child. The guard adopts orphans (Linux), so it also finds what left the child's process group.

    the owner says "stop"      SIGTERM to the child's group, SIGKILL to whatever is left after the grace
    the owner says "kill"      SIGKILL at once
    the owner ends, any way    as "stop", with a grace of its own; 0 kills at once
    the child ends             as if the owner had ended, for what the child left behind
    the guard is killed        the system signals the child (Linux), and the owner kills the child's group

Owner and guard exchange lines of JSON over two pipes:

    owner to guard   ["stop"], ["kill"], ["note"], ["inherit", path]
    guard to owner   ["started", pid], ["shared_memory", [path, ...]], ["exited", exit code] of the child,
                     ["ended", exit code] once nothing is left
"""

# ruff: noqa: PTH108, PTH115, PTH123, PTH208
# Importing pathlib would take longer than all else that this program does at its start.

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any

LINUX = sys.platform == "linux"
# From <linux/prctl.h>; Python has no names for them.
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SHARED_MEMORY = "/dev/shm/"
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def prctl(option: int, value: int) -> None:
    """Call prctl(2); does nothing where there is none."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Guard:
    """One child, from its start until nothing of it is left."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.owner: int = options["owner"]
        self.control: int = options["control"]
        self.status: int = options["status"]
        self.grace: float = options["grace"]
        self.orphan_grace: float = options["orphan_grace"]
        self.inherited: list[str] = options["inherited"]
        self.child = 0
        self.code: int | None = None
        self.orphaned = False
        self.deadline: float | None = None  # from then on, whatever is left is killed; None: the child may live on
        self._sweeps: bool = options["shared_memory"]
        self._foreign = frozenset(_listdir(SHARED_MEMORY)) if self._sweeps else frozenset()
        self._shared: set[str] = set()
        self._signalled = False
        self._unread = b""
        for end in (self.control, self.status):
            # Each side learns of the other's end by the closing of its pipe, so the child must not hold one open.
            os.set_inheritable(end, False)
        # A signal that arrives just before poll() must still wake it, so signals write to a pipe.
        self._alarm, alarm = os.pipe()
        for end in (self._alarm, alarm, self.control):
            os.set_blocking(end, False)
        # A full pipe wakes poll() just as well, so it is no reason to warn.
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        # Only signals with a handler of Python's own write to the pipe.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_signal)
        self._pidfd = -1
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._pidfd = os.pidfd_open(self.owner)

    def _on_signal(self, *_: object) -> None:
        self._signalled = True

    def run(self, command: list[str]) -> None:
        """Start, watch, end."""
        self.child = self._start(command)
        devnull = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(devnull, stream)
        self._tell("started", self.child)
        while self._anything_left():
            if self.code is not None:
                self._end(self.orphan_grace)
            if self.deadline is None:
                # A pidfd wakes poll() when the owner ends; without one, the parent has to be looked up often.
                self._wait(5.0 if self._pidfd >= 0 else 0.2)
            elif (left := self.deadline - time.monotonic()) > 0:
                self._wait(left)
            else:
                self._signal_all(signal.SIGKILL)
                self._wait(0.01)  # then look again: something may have forked just before it was killed
        self._wait(0.0)  # the owner may have ended meanwhile
        self._clear()
        self._tell("ended", self.code)

    def _tell(self, *message: Any) -> None:
        with contextlib.suppress(OSError):  # the owner is gone
            os.write(self.status, json.dumps(message).encode() + b"\n")

    def _start(self, command: list[str]) -> int:
        me = os.getpid()
        child = os.fork()
        if child:
            # Done in both processes, since either may run first, and a signal may come at once.
            with contextlib.suppress(OSError):
                os.setpgid(child, child)
            return child
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            # Ignored signals stay ignored across exec, and Python ignores SIGPIPE.
            for number in (*STOP_SIGNALS, signal.SIGCHLD, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            prctl(PR_SET_PDEATHSIG, signal.SIGTERM if self.orphan_grace else signal.SIGKILL)
            if os.getppid() == me:  # else the guard died before the system was told to watch it
                os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"cannot execute {command[0]}: {error.strerror}\n".encode())
        os._exit(127)  # the shell's code for a command that cannot be executed

    # -- watching ------------------------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Wait for a message, a signal, the owner's end or a child's end."""
        poll = select.poll()  # not select(), which takes no descriptor above 1,023
        for end in (self._alarm, *((self.control, self._pidfd) if not self.orphaned else ())):
            if end >= 0:
                poll.register(end, select.POLLIN)
        ready = [end for end, _ in poll.poll(seconds * 1000)]
        with contextlib.suppress(BlockingIOError):
            os.read(self._alarm, 512)
        if self._signalled:
            self._end(self.grace)
        if self.control in ready:
            self._read_messages()
        # A forked child of the owner may hold the control pipe open, so its end alone is no proof of life.
        if self._pidfd in ready or os.getppid() != self.owner:
            self._orphan()

    def _read_messages(self) -> None:
        data = os.read(self.control, 1 << 16)
        if not data:
            self._orphan()
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            word, *values = json.loads(line)
            if word == "stop":
                self._end(self.grace)
            elif word == "kill":
                self._end(0.0)
            elif word == "note":
                self._note_shared_memory()
                self._tell("shared_memory", sorted(self._shared))
            elif word == "inherit":
                self.inherited += values

    def _orphan(self) -> None:
        self.orphaned = True
        self._end(self.orphan_grace)

    def _anything_left(self) -> bool:
        """Reap what has ended. Orphans are adopted, so without a child nothing is left."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return True
                if pid == self.child:
                    self.code = os.waitstatus_to_exitcode(status)
                    self._tell("exited", self.code)
        if not LINUX:  # where orphans are not adopted
            with contextlib.suppress(OSError):
                os.killpg(self.child, 0)
                return True
        return False

    # -- ending --------------------------------------------------------------------------------------------------------

    def _end(self, grace: float) -> None:
        """Ask the child to end, and kill what is left after the grace. A later call can only make it sooner."""
        due = time.monotonic() + grace
        if self.deadline is None:
            self.deadline = due
            self._note_shared_memory()
            if grace:
                _killpg(self.child, signal.SIGTERM)
        self.deadline = min(self.deadline, due)

    def _signal_all(self, number: int) -> None:
        _killpg(self.child, number)
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def _note_shared_memory(self) -> None:
        """Note the shared memory that the child and its descendants have open or mapped now."""
        if not self._sweeps:
            return
        for pid in descendants(os.getpid()):
            for entry in _listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    self._note(os.readlink(f"/proc/{pid}/fd/{entry}"))
            for line in _read(f"/proc/{pid}/maps").splitlines():
                self._note(line[line.find("/") :] if "/" in line else "")

    def _note(self, path: str) -> None:
        name = path.removeprefix(SHARED_MEMORY)
        # /proc marks files so that are unlinked already, and files that were there before belong to others.
        if path != name and not path.endswith(" (deleted)") and name not in self._foreign:
            self._shared.add(path)

    def _clear(self) -> None:
        """Remove the shared memory, and what the owner can no longer remove itself."""
        for path in self._shared:
            with contextlib.suppress(OSError):
                os.unlink(path)
        if self.orphaned and self.inherited:
            # Imported here, because few guards are orphaned and every one has to start quickly.
            import shutil

            for path in self.inherited:
                shutil.rmtree(path, ignore_errors=True)


def _killpg(group: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)


def _listdir(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _read(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def descendants(root: int) -> list[int]:
    """Living processes below one, by /proc; none where there is no /proc."""
    parents: dict[int, int] = {}
    for name in _listdir("/proc"):
        if name.isdigit():
            # The name in parentheses may hold spaces and parentheses itself.
            fields = _read(f"/proc/{name}/stat").rpartition(")")[2].split()
            # Zombies and dead processes hold nothing and cannot be killed; their parents reap them.
            if len(fields) > 1 and fields[0] not in "ZX":
                parents[int(name)] = int(fields[1])
    found: list[int] = []
    edge = [root]
    while edge:
        edge = [pid for pid, parent in parents.items() if parent in edge]
        found += edge
    return found


def main() -> None:
    """Guard one child."""
    options = json.loads(sys.argv[1])
    if os.getppid() != options["owner"]:
        return  # it ended before this process began
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    Guard(options).run(sys.argv[2:])


if __name__ == "__main__":
    main()
