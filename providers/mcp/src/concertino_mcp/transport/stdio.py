"""A server over stdio: its process under a guard, with an environment of its own, ended in good order.

`open_process` gives its streams to a session. Invariant: however a connection ends, nothing of the server is left when
`open_process` returns.

The MCP SDK's own `stdio_client` is not used: it reads a line without an end into memory, lets a call whose answer is
unreadable wait until its deadline, reports neither the exit code nor the end of standard error, and leaves the server
running when this process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE

from concertino import keep_variables, read_secret
from concertino.core.logs import logger_of
from concertino.executor import ChildProcess, awaitable, child_environment

from concertino_mcp.errors import ServerFailed

from .messages import MessageReader, MessageWriter

logger = logger_of("mcp")

GRACE = 1.0
"""Seconds between the end of its standard input and SIGTERM, and again until SIGKILL."""


def environment(env: Mapping[str, str], env_from: tuple[str, ...]) -> dict[str, str]:
    """The whole environment of a server: a few harmless variables, those that are passed on, and the literal ones.

    Raises:
        ServerFailed: a variable that is to be passed on is not set.
    """
    missing = [name for name in env_from if name not in os.environ]
    if missing:
        raise ServerFailed(f"the environment variable {missing[0]} (env_from) is not set")
    for name in set(env_from) - child_environment().keys():
        read_secret(name)
    keep_variables(env)
    return {**child_environment(env_from), **env}


def find_program(program: str, path: str | None) -> str:
    """The full path of a program.

    Raises:
        ServerFailed: there is none.
    """
    found = shutil.which(program, path=path)
    if found is None:
        raise ServerFailed(f"there is no program {program!r}" + ("" if "/" in program else " in PATH"))
    return found


class StdioServer:
    """The process of a server, as its connection sees it."""

    def __init__(self, name: str, command: tuple[str, ...], env: Mapping[str, str], cwd: str) -> None:
        self.name = name
        self.reader = MessageReader(name)
        self.writer = MessageWriter(self.reader)
        if sys.platform == "win32":
            raise ServerFailed("servers over stdio need a POSIX system; use one over HTTP (`url`)")
        program = find_program(command[0], env.get("PATH"))
        if cwd and not Path(cwd).is_dir():
            raise ServerFailed(f"its working directory {cwd} does not exist")
        try:
            self.child = ChildProcess(
                [program, *command[1:]],
                env=env,
                cwd=cwd or None,
                stdin=PIPE,
                stdout=PIPE,
                grace=GRACE,
                on_stderr=self._log,
            )
        except OSError as error:
            raise ServerFailed(f"it cannot be started: {error.strerror}") from None

    def _log(self, data: bytes) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s (stderr): %s", self.name, data.decode(errors="replace").rstrip())

    async def connect(self) -> None:
        """Put the pipes on the running loop."""
        loop = asyncio.get_running_loop()
        await self.reader.connect(self.child.stdout)
        await loop.connect_write_pipe(lambda: self.writer, self.child.stdin)

    async def ended(self, seconds: float) -> bool:
        """Whether nothing of the process is left, now or within some seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(awaitable(self.child.ended), seconds)
        return self.child.poll() is not None

    async def stop(self) -> None:
        """Close its input, then SIGTERM, then SIGKILL; returns when it is gone. Bounded in time."""
        self.writer.close_now()
        if not await self.ended(GRACE):
            self.child.stop()
            if not await self.ended(2 * GRACE + 1.0):
                logger.warning("the process %d of %s cannot be killed", self.child.pid, self.name)
        # `close` keeps a pipe open as long as the server has not read all of it.
        self.writer.abort()
        self.reader.close_now()

    async def explain(self) -> str:
        """Why the connection ended: what is known of the process, and the end of its standard error."""
        reason = self.reader.reason
        if not reason:
            # The pipe closes a moment before the exit code is known.
            await self.ended(0.5)
        code = self.child.poll()
        if reason:
            why = reason
        elif code is None:
            why = "it closed its standard input or output"
        elif code < 0:
            why = f"it was ended by {_signal_name(-code)}"
        else:
            why = f"it ended with exit code {code}"
        tail = self.child.stderr_tail()
        return f"{why}; the end of its stderr: {tail}" if tail else why


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@asynccontextmanager
async def open_process(process: StdioServer) -> AsyncIterator[tuple[MessageReader, MessageWriter]]:
    """The streams of a process; at the end the process is stopped, even where the caller is cancelled."""
    try:
        await process.connect()
        yield process.reader, process.writer
    finally:
        stopping = asyncio.ensure_future(process.stop())
        while not stopping.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(stopping)
