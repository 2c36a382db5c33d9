"""The messages of a server over stdio: its output cut into messages, and its input.

`MessageReader` and `MessageWriter` are the two streams that a `ClientSession` reads and writes. Writing goes straight
into the pipe.

Invariants: memory is bounded whatever the server prints: a message has at most `MESSAGE_BYTES`, and about
`WAITING_BYTES` wait to be read. A message that is too long or unreadable is answered with an error
where its id can be found, so that its call ends with a reason. Output that is not MCP ends the connection.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, Self, cast

from concertino.core.logs import logger_of
from concertino.text import TooManyValues, check_values

logger = logger_of("mcp")

MESSAGE_BYTES = 16 * 2**20
TURN_BYTES = 2**18
"""Up to so many bytes are read in one turn of the event loop; a longer message in a thread."""
WAITING_BYTES = 2 * MESSAGE_BYTES
"""What a `StreamReader` with that limit takes in before it stops reading."""
STRAYS = 200
"""Lines in a row that are not messages, after which the output is taken for something other than MCP."""

_ENDS = 512
# A message too long to be parsed has its id near one of its ends, as servers print it.
_FIRST_ID = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_VERSION = rb'\s*"jsonrpc"\s*:\s*"2\.0"\s*'
_LAST_ID = re.compile(rb'(?:,%b)?,\s*"id"\s*:\s*(\d{1,15})\s*(?:,%b)?\}\s*$' % (_VERSION, _VERSION))


class MessageReader:
    """Standard output, cut into messages: the stream that a session reads.

    Attributes:
        ended: whether the pipe is closed; what was read before may still be taken.
        end_event: set then.
        reason: why the session must end, where the server's output is the reason.
    """

    last_context = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.ended = False
        self.end_event = asyncio.Event()
        self.reason = ""
        self._stream = asyncio.StreamReader(limit=MESSAGE_BYTES)
        self._transport: asyncio.ReadTransport | None = None
        self._strays = 0

    async def connect(self, pipe: Any) -> None:
        """Read a pipe from now on, on the running loop."""
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._stream), pipe
        )

    def end(self, reason: str = "") -> None:
        """Read no more from the pipe."""
        self.reason = self.reason or reason
        self.ended = True
        self.end_event.set()
        self.close_now()  # nothing may be fed to the stream after its end
        self._stream.feed_eof()

    def close_now(self) -> None:
        """Close the pipe."""
        if self._transport is not None:
            self._transport.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while not self.reason:
            try:
                line = await self._stream.readuntil()
            except asyncio.LimitOverrunError:
                message = await self._too_long()
            except (asyncio.IncompleteReadError, OSError):
                self.end()
                break
            else:
                large = len(line) > TURN_BYTES
                message = await asyncio.to_thread(self._message, line) if large else self._message(line)
            if message is not None:
                return message
        raise StopAsyncIteration

    def _message(self, line: bytes) -> Any:
        """The message on a line. None for a line that is not a message, unless it is a damaged answer to a call."""
        if not line.strip():
            return None
        from mcp.shared.message import SessionMessage

        try:
            check_values(line)
            message = SessionMessage(_read(line))
        except TooManyValues as error:
            answer = _error_in_place(line[:_ENDS], line[-_ENDS:], f"the server answered with {error}")
            if answer is None:
                self.end(f"it sent a message with {error}")
            return answer
        except (ValueError, RecursionError):
            return self._stray(line)
        self._strays = 0
        return message

    async def _too_long(self) -> Any:
        """Skip a line that is too long; an error in the place of the answer that it was, if it was one."""
        head = foot = b""
        size = 0
        whole = False
        while not whole:
            try:
                piece = await self._stream.readuntil()
                whole = True
            except asyncio.LimitOverrunError as overrun:
                piece = await self._stream.read(min(overrun.consumed, 2**20))
            except (asyncio.IncompleteReadError, OSError):
                return None
            head = head or piece[:_ENDS]
            foot = (foot + piece[-_ENDS:])[-_ENDS:]
            size += len(piece)
            if size > 8 * MESSAGE_BYTES:
                self.end(f"it printed more than {8 * MESSAGE_BYTES:,} bytes without a line break")
                return None
        text = f"the server answered with {size:,} bytes; at most {MESSAGE_BYTES:,} are taken"
        answer = _error_in_place(head, foot, text)
        if answer is None:
            self.end(f"it sent a message of {size:,} bytes; at most {MESSAGE_BYTES:,} are taken")
        return answer

    def _stray(self, line: bytes) -> Any:
        """A line that is not a message: a damaged answer to a call, a banner, or not MCP at all."""
        answer = _error_in_place(line[:_ENDS], line[-_ENDS:], "the server's answer is not a JSON-RPC message")
        if answer is not None:
            return answer
        self._strays += 1
        shown = line[:80].decode(errors="replace").rstrip("\n")
        logger.debug("%s printed a line that is not a message: %r", self.name, shown)
        if self._strays > STRAYS:
            self.end(f"its standard output is not MCP: it printed {shown!r}")
        return None

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


def _error_in_place(head: bytes, foot: bytes, text: str) -> Any:
    """An error in the place of an answer, None if its id is neither at the beginning nor at the end."""
    found = _FIRST_ID.match(head) or _LAST_ID.search(foot)
    if found is None:
        return None
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData, JSONRPCError

    error = ErrorData(code=-32700, message=text, data={"bad_result": True})
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found.group(1)), error=error))


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
