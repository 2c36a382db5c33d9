"""Answers that come while a run goes on. They are written to the server as bytes: no object of a framework for a piece.

Invariants: whoever leaves is noticed at once, also while nothing is sent, and the run is told. Whoever is thrown out
because the server stops has not left.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from .api_error import ApiError

PING = b": still here\n\n"
"""A sign of life: a comment, which no client reads."""
_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", "x-accel-buffering": "no"}
PLAIN_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
compact_json = json.JSONEncoder(separators=(",", ":")).encode
"""JSON without spaces. The encoder is made once: `json.dumps` with separators makes one for each call. The output is
ASCII, so half of a surrogate pair breaks no frame."""


class EventStream:
    """A stream of server-sent events.

    Args:
        frames: bytes of whole frames.
        headers: more of them.
        left: told when the client has gone before the end.
    """

    def __init__(
        self, frames: AsyncIterator[bytes], headers: dict[str, str], left: Callable[[], Awaitable[None]]
    ) -> None:
        self._frames = frames
        self._headers = {**_STREAM, **PLAIN_HEADERS, **headers}
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(_start(200, self._headers))
        try:
            await _unless_gone(self._write(send), receive)
        except ClientDisconnect:
            await self._left()

    async def _write(self, send: Send) -> None:
        async for frames in self._frames:
            if not frames:
                continue  # empty would be an end to some servers
            await send({"type": "http.response.body", "body": frames, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class LateAnswer:
    """A JSON object that is known when the run is over.

    Args:
        found: gives it.
        headers: more of them.
        left: as for `EventStream`.
    """

    def __init__(
        self,
        found: Coroutine[Any, Any, dict[str, Any]],
        headers: dict[str, str],
        left: Callable[[], Awaitable[None]],
    ) -> None:
        self._found = found
        self._headers = headers
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await _unless_gone(self._found, receive)
        except ApiError as error:
            await JsonAnswer(error.to_json(), error.status, {**self._headers, **error.headers})(scope, receive, send)
        except ClientDisconnect:
            await self._left()
        else:
            await JsonAnswer(answer, 200, self._headers)(scope, receive, send)


class JsonAnswer:
    """A JSON object."""

    def __init__(self, data: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.body = compact_json(data).encode()
        self.status = status
        self.headers = {
            "content-type": "application/json",
            "content-length": str(len(self.body)),
            **PLAIN_HEADERS,
            **(headers or {}),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(_start(self.status, self.headers))
        await send({"type": "http.response.body", "body": self.body})


async def _unless_gone(work: Coroutine[Any, Any, Any], receive: Receive) -> Any:
    """The result of the work, unless the client goes before.

    Raises:
        ClientDisconnect: it went.
    """
    working, going = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, going}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    except OSError:  # the connection broke while something was sent
        raise ClientDisconnect from None
    finally:
        for task in (working, going):
            task.cancel()
        await asyncio.gather(working, going, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _start(status: int, headers: dict[str, str]) -> Message:
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": raw}
