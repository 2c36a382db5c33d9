"""The process of a server: started under a guard, with an environment of its own, ended in good order.

`open_process` gives its streams to a session. Invariant: however a connection ends, its process has ended when
`open_process` returns; the guard sees to whatever else the server started.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from .failures import ServerFailed
from .pipes import Lines, Tail, Words

logger = logging.getLogger("concertino.mcp")

GRACE = 1.0
"""Seconds between the end of its standard input and SIGTERM, and again until SIGKILL."""

_GUARD = Path(__file__).with_name("_guard.py")
_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")


def environment(env: Mapping[str, str], env_from: tuple[str, ...]) -> dict[str, str]:
    """The whole environment of a server: a few harmless variables, those that are passed on, and the literal ones.

    Raises:
        ServerFailed: a variable that is to be passed on is not set.
    """
    missing = [name for name in env_from if name not in os.environ]
    if missing:
        raise ServerFailed(f"the environment variable {missing[0]} (env_from) is not set")
    names = (*_INHERITED, *env_from)
    return {**{name: os.environ[name] for name in names if name in os.environ}, **env}


def find_program(program: str, path: str | None) -> str:
    """The full path of a program.

    Raises:
        ServerFailed: there is none.
    """
    found = shutil.which(program, path=path)
    if found is None:
        raise ServerFailed(f"there is no program {program!r}" + ("" if "/" in program else " in PATH"))
    return found


class Process:
    """The process of a server, as its connection sees it.

    Attributes:
        reason: why the connection ended, where that is known.
        gone: set when no message comes any more.
    """

    def __init__(self, name: str, command: tuple[str, ...], env: Mapping[str, str], cwd: str) -> None:
        self.name = name
        self.reason = ""
        self.gone = asyncio.Event()
        self.lines = Lines(self)
        self.words = Words(self.lines)
        self.tail = Tail(name)
        if sys.platform == "win32":
            raise ServerFailed("servers over stdio need a POSIX system; use one over HTTP (`url`)")
        program = find_program(command[0], env.get("PATH"))
        if cwd and not Path(cwd).is_dir():
            raise ServerFailed(f"its working directory {cwd} does not exist")
        guarded = [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), str(GRACE), program, *command[1:]]
        try:
            self.popen = subprocess.Popen(
                guarded, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(env),
                cwd=cwd or None, start_new_session=True, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            raise ServerFailed(f"it cannot be started: {error.strerror}") from None

    async def connect(self) -> None:
        """Put the three pipes on the running loop."""
        loop = asyncio.get_running_loop()
        stdin, stdout, stderr = self.popen.stdin, self.popen.stdout, self.popen.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        await loop.connect_read_pipe(lambda: self.tail, stderr)
        await loop.connect_read_pipe(lambda: self.lines, stdout)
        await loop.connect_write_pipe(lambda: self.words, stdin)

    async def ended(self, seconds: float) -> bool:
        """Whether the process ends within some seconds."""
        deadline = time.monotonic() + seconds
        pause = 0.002
        while self.popen.poll() is None:
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.05)
        return True

    async def stop(self) -> None:
        """Close its input, then SIGTERM, then SIGKILL; returns when it is gone. Bounded in time."""
        self.words.close_now()
        if not await self.ended(GRACE):
            with contextlib.suppress(ProcessLookupError):
                self.popen.terminate()
            if not await self.ended(GRACE + 1.0):
                with contextlib.suppress(ProcessLookupError):
                    self.popen.kill()
                if not await self.ended(1.0):
                    logger.warning("the process %d of %s cannot be killed", self.popen.pid, self.name)
        self.release()

    def release(self) -> None:
        """Close the pipes."""
        self.words.abort()
        self.lines.close_now()
        if self.tail.transport is not None:
            self.tail.transport.close()

    async def explain(self) -> str:
        """Why the connection ended: what is known of the process, and the end of its standard error."""
        if not self.reason:
            await self.ended(0.5)
        await asyncio.sleep(0.01)  # its last words may still be in the pipe
        code = self.popen.poll()
        if self.reason:
            why = self.reason
        elif code is None:
            why = "it closed its standard input or output"
        elif code < 0:
            why = f"it was ended by {_signal_name(-code)}"
        else:
            why = f"it ended with exit code {code}"
        tail = self.tail.text()
        return f"{why}; the end of its stderr: {tail}" if tail else why

    def forget(self) -> None:
        """In a forked child: close this side of the pipes, and nothing else."""
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    os.close(pipe.fileno())
        self.popen.returncode = 0  # not a child of this process


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@asynccontextmanager
async def open_process(process: Process) -> AsyncIterator[tuple[Lines, Words]]:
    """The streams of a process; at the end the process is stopped, even where the caller is cancelled."""
    try:
        await process.connect()
        yield process.lines, process.words
    finally:
        stopping = asyncio.ensure_future(process.stop())
        while not stopping.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(stopping)
