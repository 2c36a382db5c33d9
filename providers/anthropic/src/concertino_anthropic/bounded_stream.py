"""The body of an answer, bounded before the vendor's SDK sees it: in bytes, in events, after decompression.

The SDK joins the lines of an event one by one, and asks nobody how many there may be. So events are cut out here, and
passed on whole. Invariant: whatever a server sends, at most `REPLY_BYTES` of a body are passed on, an event has at most
`EVENT_BYTES`, `EVENT_LINES` and `QUICK_VALUES` values, and the event loop gets a turn after each piece.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Iterator

import httpx2
from concertino import FailureClass, ProviderError
from concertino.text import QUICK_VALUES, counted_values

REPLY_BYTES = 64 * 2**20
EVENT_BYTES = 8 * 2**20
EVENT_LINES = 1_000
ERROR_BYTES = 64 * 2**10
"""Bytes of an error's body that are read; the rest is left."""
_PIECE = 64 * 2**10
"""Bytes that are decompressed at once."""
_END = re.compile(rb"\n\n|\r\r|\r\n\r\n")


class BoundedStream(httpx2.AsyncByteStream):
    """The body of one answer.

    Args:
        response: that it belongs to; the header of its encoding is removed, for the body is decoded here.
        where: the server's address, for errors.
    """

    def __init__(self, response: httpx2.Response, where: str) -> None:
        self._stream = response.stream
        self._where = where
        self._failed = response.status_code >= 300
        self._events = "event-stream" in response.headers.get("content-type", "") and not self._failed
        self._encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        self._left = ERROR_BYTES if self._failed else REPLY_BYTES
        self._held = bytearray()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        async for data in self._decoded(self._stream):
            self._left -= len(data)
            if self._left < 0 and self._failed:
                yield data[: self._left]
                return
            if self._left < 0:
                raise self._too_much(f"a reply of more than {REPLY_BYTES:,} bytes")
            for piece in self._whole_events(data) if self._events else (data,):
                yield piece
        if self._held:
            yield bytes(self._held)  # torn off; what it is worth is for the reader to say

    async def aclose(self) -> None:
        """Give up the connection."""
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        await self._stream.aclose()

    async def _decoded(self, stream: httpx2.AsyncByteStream) -> AsyncIterator[bytes]:
        if self._encoding in ("", "identity"):
            async for data in stream:
                yield data
            return
        if self._encoding != "gzip":
            raise ProviderError(
                f"{self._where} sent a body in the encoding {self._encoding[:40]!r}; gzip is what was asked for",
                failure=FailureClass.CALLER,
            )
        inflater = zlib.decompressobj(wbits=31)
        async for packed in stream:
            rest = packed
            while rest:
                try:
                    piece = inflater.decompress(rest, _PIECE)
                except zlib.error as error:
                    raise ProviderError(
                        f"{self._where} sent invalid gzip data: {error}", failure=FailureClass.MAYBE_EXECUTED
                    ) from None
                rest = inflater.unconsumed_tail
                if piece:
                    yield piece
                    # A few bytes may become a thousand times as many.
                    await asyncio.sleep(0)

    def _whole_events(self, data: bytes) -> Iterator[bytes]:
        """The events that end with a piece; the rest is held."""
        # The sign that ends an event may have begun before this piece.
        begin, place = 0, max(0, len(self._held) - 3)
        self._held += data
        for found in _END.finditer(self._held, place):
            yield self._checked(bytes(memoryview(self._held)[begin : found.end()]))
            begin = found.end()
        del self._held[:begin]
        if len(self._held) > EVENT_BYTES:
            raise self._too_much(f"an event of more than {EVENT_BYTES:,} bytes")

    def _checked(self, event: bytes) -> bytes:
        if len(event) > EVENT_LINES and event.count(b"\n") + event.count(b"\r") > EVENT_LINES:
            raise self._too_much(f"an event of more than {EVENT_LINES:,} lines")
        if len(event) > QUICK_VALUES and counted_values(event) > QUICK_VALUES:
            raise self._too_much(f"an event with more than {QUICK_VALUES:,} JSON values")
        return event

    def _too_much(self, what: str) -> ProviderError:
        return ProviderError(f"{self._where} sent {what}", failure=FailureClass.CUT_OFF)
