"""A server as a process of this one: started under a guard, spoken to over its standard input and output.

`open_process` gives the two streams that a `ClientSession` reads and writes. Writing goes straight into the pipe, and a
reader cuts the server's output into lines.

Invariants: memory is bounded whatever the server prints: a message has at most `MESSAGE_BYTES`, at most `WAITING` of
them wait and about `WAITING_BYTES` in all, and of its standard error the last `TAIL_BYTES` are kept. A message that is
too long or unreadable is answered with an error where its id can be found, so that its call ends with a reason. Output
that is no MCP ends the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from .failures import ServerFailed

logger = logging.getLogger("concertino.mcp")

MESSAGE_BYTES = 16 * 2**20
TAIL_BYTES = 8192
WAITING = 512
WAITING_BYTES = 2 * MESSAGE_BYTES
STRAYS = 200
"""Lines that are no messages, between two that are, after which the output is no MCP."""
GRACE = 1.0
"""Seconds between the end of its standard input and SIGTERM, and again until SIGKILL."""

_GUARD = Path(__file__).with_name("_guard.py")
_ENDS = 512
_FIRST_ID = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_VERSION = rb'\s*"jsonrpc"\s*:\s*"2\.0"\s*'
_LAST_ID = re.compile(rb'(?:,%b)?,\s*"id"\s*:\s*(\d{1,15})\s*(?:,%b)?\}\s*$' % (_VERSION, _VERSION))
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


class Lines(asyncio.Protocol):
    """Standard output, cut into messages: the stream that a session reads."""

    last_context = None

    def __init__(self, process: Process) -> None:
        self._process = process
        self._transport: asyncio.ReadTransport | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._head = self._foot = b""
        self._messages: deque[tuple[int, Any]] = deque()
        self._held = 0
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self._strays = 0
        self.ended = False

    # -- the pipe's side -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._add(piece)
            self._finish()
            if self.ended:
                return
        if rest:
            self._add(rest)
        full = len(self._messages) > WAITING or self._held > WAITING_BYTES
        if full and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        self.end()

    def connection_lost(self, error: Exception | None) -> None:
        self.end()

    def end(self, reason: str = "") -> None:
        """No further message comes."""
        if reason and not self._process.reason:
            self._process.reason = reason
        self.ended = True
        self._parts.clear()
        self._process.gone.set()
        self._wake()

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= MESSAGE_BYTES:
            self._parts.append(piece)
            return
        if self._parts:
            self._head = b"".join(self._parts)[:_ENDS]
            self._parts.clear()
        self._foot = (self._foot + piece)[-_ENDS:]
        if self._size > 8 * MESSAGE_BYTES:
            self.end(f"it printed more than {8 * MESSAGE_BYTES:,} bytes without a line break")

    def _finish(self) -> None:
        """A line is whole."""
        size, self._size = self._size, 0
        if size > MESSAGE_BYTES:
            text = f"the server answered with {size:,} bytes; at most {MESSAGE_BYTES:,} are taken"
            found = self._answered(self._head, self._foot, text)
            self._head = self._foot = b""
            if not found:
                self.end(f"it sent a message of {size:,} bytes; at most {MESSAGE_BYTES:,} are taken")
            return
        line = b"".join(self._parts)
        self._parts.clear()
        if not line.strip():
            return
        from mcp.shared.message import SessionMessage

        try:
            message = _read(line)
        except (ValueError, RecursionError):
            self._stray(line)
            return
        self._strays = 0
        self._put(SessionMessage(message), size)

    def _stray(self, line: bytes) -> None:
        """A line that is no message: the answer to a call, damaged; or a banner; or no MCP at all."""
        if self._answered(line[:_ENDS], line[-_ENDS:], "the server's answer is no JSON-RPC message"):
            return
        self._strays += 1
        shown = line[:80].decode(errors="replace")
        logger.debug("%s printed a line that is no message: %r", self._process.name, shown)
        if self._strays > STRAYS:
            self.end(f"its standard output is no MCP: it printed {shown!r}")

    def _answered(self, head: bytes, foot: bytes, text: str) -> bool:
        """Answer the request with an error in the server's place, if its id is at the begin or the end."""
        found = _FIRST_ID.match(head) or _LAST_ID.search(foot)
        if found is None:
            return False
        from mcp.shared.message import SessionMessage
        from mcp_types import ErrorData, JSONRPCError

        error = ErrorData(code=-32700, message=text, data={"bad_result": True})
        self._put(SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found.group(1)), error=error)))
        return True

    def _put(self, message: Any, size: int = 0) -> None:
        self._messages.append((size, message))
        self._held += size
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- the session's side ----------------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while not self._messages:
            if self.ended:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        size, message = self._messages.popleft()
        self._held -= size
        low = len(self._messages) < WAITING // 2 and self._held < WAITING_BYTES // 2
        if self._paused and low and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return message

    async def receive(self) -> Any:
        """The next message; raises at the end as a stream of anyio does."""
        import anyio

        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        """Read no more."""
        self.end()
        self.close_now()

    def close_now(self) -> None:
        """Close the pipe."""
        if self._transport is not None:
            self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


def _read(line: bytes) -> Any:
    """A message; raises ValueError or RecursionError where it is none."""
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        if not line.lstrip().startswith(b"{"):
            raise
        # The quick parser stops at 200 levels: one tool with such a schema is not to cost the others.
        return jsonrpc_message_adapter.validate_python(json.loads(line), by_name=False)


class Words(asyncio.Protocol):
    """Standard input: the stream that a session writes."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._transport: asyncio.WriteTransport | None = None
        self._clear = asyncio.Event()
        self._clear.set()
        self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def pause_writing(self) -> None:
        self._clear.clear()

    def resume_writing(self) -> None:
        self._clear.set()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._closed:
            self._lines.end()
        self._closed = True
        self._clear.set()

    async def send(self, message: Any) -> None:
        """Write a message; waits while the server does not read."""
        import anyio

        if not self._clear.is_set():
            await self._clear.wait()
        if self._closed or self._transport is None or self._transport.is_closing():
            raise anyio.ClosedResourceError
        data = message.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        self._transport.write(data + b"\n")

    async def aclose(self) -> None:
        """Write no more: the server sees the end of its input when what was written has been read."""
        self.close_now()

    def close_now(self) -> None:
        """Close the pipe."""
        self._closed = True
        self._clear.set()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the pipe, with what has not been written yet."""
        self._closed = True
        if self._transport is not None:
            self._transport.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


class Tail(asyncio.Protocol):
    """Standard error: its last bytes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bytes = b""
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._bytes = (self._bytes + data)[-TAIL_BYTES:]
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s (stderr): %s", self._name, data.decode(errors="replace").rstrip())

    def text(self, limit: int = 400) -> str:
        """Its last lines, in at most `limit` characters."""
        return self._bytes.decode(errors="replace").strip()[-limit:]


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
