"""The messages of a server over stdio: its output cut into messages, and its input.

`MessageReader` and `MessageWriter` are the two streams that a `ClientSession` reads and writes. Writing goes straight
into the pipe.

Invariants: memory is bounded whatever the server prints: a message has at most `MESSAGE_BYTES`, and at most `WAITING`
of them wait, with about `WAITING_BYTES` in all. A message that is too long or unreadable is answered with an error
where its id can be found, so that its call ends with a reason. Output that is not MCP ends the connection.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import deque
from typing import Any, Self, cast

logger = logging.getLogger("concertino.mcp")

MESSAGE_BYTES = 16 * 2**20
WAITING = 512
WAITING_BYTES = 2 * MESSAGE_BYTES
STRAYS = 200
"""Lines in a row that are not messages, after which the output is taken for something other than MCP."""

_ENDS = 512
_FIRST_ID = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_VERSION = rb'\s*"jsonrpc"\s*:\s*"2\.0"\s*'
_LAST_ID = re.compile(rb'(?:,%b)?,\s*"id"\s*:\s*(\d{1,15})\s*(?:,%b)?\}\s*$' % (_VERSION, _VERSION))


class MessageReader(asyncio.Protocol):
    """Standard output, cut into messages: the stream that a session reads.

    Attributes:
        ended: whether no further message comes.
        end_event: set then.
        reason: why, where the server's output is the reason.
    """

    last_context = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.ended = False
        self.end_event = asyncio.Event()
        self.reason = ""
        self._transport: asyncio.ReadTransport | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._head = self._foot = b""
        self._messages: deque[tuple[int, Any]] = deque()
        self._held = 0
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self._strays = 0

    # -- the pipe's side -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)

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
        self.reason = self.reason or reason
        self.ended = True
        self._parts.clear()
        self.end_event.set()
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
        """A line that is not a message: a damaged answer to a call, a banner, or not MCP at all."""
        if self._answered(line[:_ENDS], line[-_ENDS:], "the server's answer is not a JSON-RPC message"):
            return
        self._strays += 1
        shown = line[:80].decode(errors="replace")
        logger.debug("%s printed a line that is not a message: %r", self.name, shown)
        if self._strays > STRAYS:
            self.end(f"its standard output is not MCP: it printed {shown!r}")

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


class MessageWriter(asyncio.Protocol):
    """Standard input: the stream that a session writes."""

    def __init__(self, reader: MessageReader) -> None:
        self._reader = reader
        self._transport: asyncio.WriteTransport | None = None
        self._clear = asyncio.Event()
        self._clear.set()
        self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def pause_writing(self) -> None:
        self._clear.clear()

    def resume_writing(self) -> None:
        self._clear.set()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._closed:
            self._reader.end()
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
