"""A child process that ends with this one, whatever happens to either of them.

`ChildProcess` starts a program under a guard (`guard.py`), a small process of its own. The invariant: when this process
ends in any way (an exception, `os._exit`, SIGKILL, `exec`), the child and everything that it started end too, also what
moved to a session of its own (Linux). Elsewhere what left the child's process group may stay.

A `ChildProcess` belongs to no event loop and to no thread. Its futures may be waited for in any thread, and
awaited through `awaitable` in any loop.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING, Any, TypeVar, cast

from concertino.core.bounded_pipe import TAIL_BYTES
from concertino.core.child_environment import child_environment
from concertino.core.logs import logger_of

if TYPE_CHECKING:
    import asyncio

logger = logger_of("executor")

T = TypeVar("T")

_GUARD = Path(__file__).with_name("guard.py")
_GUARD_FLAGS = ["-I", "-S"]
"""Isolated and without site-packages, so that no environment changes the guard, and it starts quickly."""
_READ_BYTES = 1 << 16  # what a pipe of Linux holds


class ChildProcess:
    """A program that runs under a guard.

        child = ChildProcess(["/usr/bin/sort"], stdin=PIPE, stdout=PIPE)
        child.stdin.write(b"b\\na\\n")
        child.stdin.close()
        print(child.wait(), child.stdout.readall())

    Args:
        command: the program, as a path or a name in `env`'s PATH, and its arguments.
        env: the whole environment; by default that of `child_environment()`, which holds no keys.
        cwd: the working directory; by default this process's own.
        stdin: as for `subprocess.Popen`. Pipes are unbuffered.
        stdout: as `stdin`.
        stderr: as `stdin`; by default a pipe whose last `TAIL_BYTES` are kept for error messages, see `stderr_tail`.
        grace: seconds between SIGTERM and SIGKILL when the child is stopped; 0: it is killed at once.
        orphan_grace: the same for the child if this process ends first, and for whatever the child leaves behind.
        shared_memory: remove the files in /dev/shm that the child has open when it ends, or that `note_shared_memory`
            found, and that were not there before it started.
        orphaned_folders: removed at the end, if this process ends before the child; see also `remove_if_orphaned`.
        on_stderr: called with each piece of standard error, in a thread of the child's own.
        on_end: called with the exit code just before `ended` is set, in that thread.

    Attributes:
        started: the child's process id; ConnectionError if the guard died before the child started.
        exited: the exit code, negative for a signal, as soon as the child itself has ended.
        ended: the same, once nothing that it started is left.
        stdin: the pipe, if one was asked for.
        stdout: the pipe, if one was asked for.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdin: Any = DEVNULL,
        stdout: Any = DEVNULL,
        stderr: Any = PIPE,
        grace: float = 0.0,
        orphan_grace: float = 0.0,
        shared_memory: bool = False,
        orphaned_folders: Iterable[str | os.PathLike[str]] = (),
        on_stderr: Callable[[bytes], None] | None = None,
        on_end: Callable[[int], None] | None = None,
    ) -> None:
        self.grace = grace
        self.started: Future[int] = Future()
        self.exited: Future[int] = Future()
        self.ended: Future[int] = Future()
        self._on_stderr = on_stderr
        self._on_end = on_end
        self._tail = b""
        self._unread = b""
        self._code: int | None = None
        self._shared_memory: list[str] = []
        self._lock = threading.RLock()  # reentrant: a finalizer may stop the child while a message is being sent
        guard_control, self._control = os.pipe()
        self._status, guard_status = os.pipe()
        options = {
            "owner": os.getpid(),
            "control": guard_control,
            "status": guard_status,
            "grace": grace,
            "orphan_grace": orphan_grace,
            "shared_memory": shared_memory,
            "inherited": [os.fspath(folder) for folder in orphaned_folders],
        }
        try:
            self._guard = subprocess.Popen(
                [sys.executable, *_GUARD_FLAGS, str(_GUARD), json.dumps(options), *command],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=child_environment() if env is None else dict(env),
                cwd=cwd,
                pass_fds=(guard_control, guard_status),
                # The terminal's Ctrl-C reaches this process alone, which then ends its children.
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            os.close(self._control)
            os.close(self._status)
            raise
        finally:
            # The guard has copies of these; with ours open, this process would not notice the end of the guard.
            os.close(guard_control)
            os.close(guard_status)
        # Unbuffered pipes are FileIO objects, whatever typeshed says.
        self.stdin = cast("io.FileIO | None", self._guard.stdin)
        self.stdout = cast("io.FileIO | None", self._guard.stdout)
        _running.add(self)
        threading.Thread(target=self._watch, name="concertino-child", daemon=True).start()

    @property
    def pid(self) -> int:
        """The child's process id; waits the few milliseconds until the guard has started it."""
        return self.started.result()

    @property
    def guard_pid(self) -> int:
        """The guard's process id."""
        return self._guard.pid

    def poll(self) -> int | None:
        """The exit code, None while anything of the child is left."""
        return self.ended.result() if self.ended.done() else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until nothing of the child is left, and give its exit code.

        Raises:
            TimeoutError: it took longer.
        """
        return self.ended.result(timeout)

    def stop(self) -> None:
        """SIGTERM to the child's process group, and SIGKILL after the grace. Returns at once."""
        self._send("stop")

    def kill(self) -> None:
        """SIGKILL to the child and all that it started. Returns at once."""
        self._send("kill")

    def remove_if_orphaned(self, folder: str | os.PathLike[str]) -> None:
        """Have the guard remove a folder at the end, if this process ends without doing so."""
        self._send("inherit", os.fspath(folder))

    def note_shared_memory(self) -> None:
        """Note what the child holds in /dev/shm now, in case all of its processes are killed at once."""
        self._send("note")

    def stderr_tail(self, limit: int = 400) -> str:
        """The last lines of its standard error, in at most `limit` characters."""
        return self._tail.decode(errors="replace").strip()[-limit:]

    def close_pipes(self) -> None:
        """Close this side of standard input and output."""
        for pipe in (self.stdin, self.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _send(self, *message: str) -> None:
        with self._lock, contextlib.suppress(OSError):
            # The system gives a closed number away again, so a late message must not be written to it.
            if self._control >= 0:
                os.write(self._control, json.dumps(message).encode() + b"\n")

    # -- the child's own thread ----------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Read what the guard says and the child's standard error, until nothing of either is left."""
        errors = self._guard.stderr.fileno() if self._guard.stderr is not None else -1
        with selectors.DefaultSelector() as selector:
            for end in (self._status, errors):
                if end >= 0:
                    os.set_blocking(end, False)
                    selector.register(end, selectors.EVENT_READ)
            # Not only the pipe's end: a process that was forked from this one just now may hold it open.
            while self._code is None and self._status in selector.get_map():
                for key, _ in selector.select():
                    if not self._read(key.fd):
                        selector.unregister(key.fd)
        if errors >= 0:
            # The last words are still in the pipe. Bounded, for a process that nobody could kill may go on writing.
            with contextlib.suppress(BlockingIOError):
                for _ in range(64):
                    if not self._read(errors):
                        break
        self._finish()

    def _read(self, end: int) -> bool:
        """Take in one piece; False at the end of the pipe."""
        data = os.read(end, _READ_BYTES)
        if end != self._status:
            self._tail = (self._tail + data)[-TAIL_BYTES:]
            if data and self._on_stderr is not None:
                # Somebody else's code, and this thread has to go on reading.
                with contextlib.suppress(Exception):
                    self._on_stderr(data)
            return bool(data)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            word, value = json.loads(line)
            if word == "started":
                self.started.set_result(value)
            elif word == "shared_memory":
                self._shared_memory = value
            elif word == "exited":
                self.exited.set_result(value)
            elif word == "ended":
                self._code = value
        return bool(data)

    def _finish(self) -> None:
        """Settle the futures, once the guard has ended."""
        guard_code = self._guard.wait()
        with self._lock:
            os.close(self._control)
            self._control = -1
        os.close(self._status)
        if self._guard.stderr is not None:
            self._guard.stderr.close()
        if self._code is None:
            # The guard has not said how the child ended; what is left of it is killed below.
            self._code = -signal.SIGKILL
            if self.started.done():
                logger.warning("the guard of process %d was killed (%d); ending the process", self.pid, guard_code)
                _end_group(self.pid, self.grace)
                for path in self._shared_memory:
                    Path(path).unlink(missing_ok=True)
        _running.discard(self)
        if self._on_end is not None:
            try:
                self._on_end(self._code)
            except Exception:
                logger.exception("what was to be done after the end of a child process failed")
        if not self.started.done():
            self.started.set_exception(ConnectionError(f"the guard of {self._guard.args!r} ended with {guard_code}"))
        if not self.exited.done():
            self.exited.set_result(self._code)
        self.ended.set_result(self._code)

    def _forget(self) -> None:
        """In a forked child: close what leads to the parent's process, and touch nothing else of it."""
        for pipe in (self._guard.stdin, self._guard.stdout, self._guard.stderr):
            if pipe is not None:
                pipe.close()
        for end in (self._control, self._status):
            with contextlib.suppress(OSError):
                os.close(end)
        self._control = -1
        # Another thread may have held the old lock at the fork, and that thread does not exist here.
        self._lock = threading.RLock()
        self._guard.returncode = 0  # not a child of this process


def awaitable(future: Future[T]) -> asyncio.Future[T]:
    """A future of a child for the running event loop; cancelling it does not cancel the child's own."""
    import asyncio

    # `wrap_future` passes a cancellation on to what it wraps.
    follower: Future[T] = Future()

    def settle(done: Future[T]) -> None:
        if follower.set_running_or_notify_cancel():
            error = done.exception()
            follower.set_exception(error) if error is not None else follower.set_result(done.result())

    future.add_done_callback(settle)
    return asyncio.wrap_future(follower)


def _end_group(leader: int, grace: float) -> None:
    """End a process group whose guard is gone."""
    deadline = time.monotonic() + grace
    with contextlib.suppress(OSError):
        if grace:
            os.killpg(leader, signal.SIGTERM)
        while time.monotonic() < deadline:
            time.sleep(0.05)
            os.killpg(leader, 0)  # raises when nobody is left
        os.killpg(leader, signal.SIGKILL)


_running: set[ChildProcess] = set()


@atexit.register
def _stop_all() -> None:
    """At a normal exit, wait until all children are gone, so that what they held is free for whoever comes next."""
    running = tuple(_running)
    for child in running:
        child.stop()
    for child in running:
        with contextlib.suppress(TimeoutError):
            # Bounded: a process that the system itself cannot kill must not keep this one.
            child.wait(child.grace + 5)


def _forget_all() -> None:
    for child in tuple(_running):
        child._forget()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
