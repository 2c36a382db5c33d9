"""A server over streamable HTTP: a client that turns each failure of a request into that request's error.

The transport of the MCP SDK ends a whole session when one of its requests meets a network error, and says of an HTTP
status only that there was one. `ErrorAnsweringClient` answers in the server's place with a JSON-RPC error whose data
says what happened, so that one failed call stays one failed call.

Invariant: a body that is not a stream of events is read up to `MESSAGE_BYTES`; the transport itself bounds each event.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from concertino import keep_headers, read_secret
from concertino.text import TooManyValues, check_values
from mcp.client.streamable_http import streamable_http_client

from concertino_mcp.errors import ServerFailed
from concertino_mcp.settings import PLACE, McpServerSettings

from .http_errors import HTTP_FAILED
from .messages import MESSAGE_BYTES

# The body was read and decompressed here, so its length and encoding no longer hold.
_KEPT = ("content-type", "mcp-session-id")
# They come before the first byte of a request is sent.
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class ErrorAnsweringClient(httpx2.AsyncClient):
    """An HTTP client whose failures are answers."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; a network error or an error status becomes a JSON-RPC error."""
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            if request.method == "DELETE":  # the end of a session at a server that is gone
                return httpx2.Response(204, request=request)
            if request.method != "POST":
                raise
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return _error(request, 502, text, {"http": 0, "sent": not isinstance(error, _NEVER_SENT)})
        if request.method != "POST":
            return response
        kind = response.headers.get("content-type", "").lower()
        if response.status_code < 400 and not kind.startswith("application/json"):
            return response
        body = await _read(response)
        if body is None:
            text = f"the server answered with more than {MESSAGE_BYTES:,} bytes"
            return _error(request, 502, text, {"bad_result": True})
        try:
            check_values(body)
        except TooManyValues as error:
            return _error(request, 502, f"the server answered with {error}", {"bad_result": True})
        # The specification asks for a 404; some servers answer 400.
        in_session = "mcp-session-id" in request.headers
        if in_session and response.status_code in (400, 404) and b"session" in body[:2000].lower():
            text = "the server no longer knows this session"
            return _error(request, 404, text, {"http": 404, "sent": False})
        if response.status_code < 400 or (kind.startswith("application/json") and b'"jsonrpc"' in body):
            headers = {name: value for name, value in response.headers.items() if name in _KEPT}
            return httpx2.Response(response.status_code, headers=headers, content=body, request=request)
        after = response.headers.get("retry-after", "")
        text = f"HTTP {response.status_code} {response.reason_phrase}".strip()
        said = " ".join(body[:200].decode(errors="replace").split())
        data = {"http": response.status_code, "sent": True, "after": after}
        return _error(request, response.status_code, f"{text}: {said}" if said else text, data)


def _error(request: httpx2.Request, status: int, text: str, data: dict[str, Any]) -> httpx2.Response:
    error = {"code": HTTP_FAILED, "message": text, "data": data}
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


async def _read(response: httpx2.Response) -> bytes | None:
    """The body, None where it is too long."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in response.aiter_bytes():
            size += len(part)
            if size > MESSAGE_BYTES:
                return None
            parts.append(part)
    finally:
        await response.aclose()
    return b"".join(parts)


def headers(declaration: McpServerSettings) -> dict[str, str]:
    """The headers of a server, from the environment; a bare token for Authorization is sent as `Bearer`.

    Raises:
        ServerFailed: a variable is not set.
    """
    found: dict[str, str] = {}
    for header, text in declaration.headers:
        # Texts and names of variables by turns.
        parts = enumerate(PLACE.split(text))
        found[header] = "".join(_variable(part, f"headers.{header}") if at % 2 else part for at, part in parts)
    for header, variable in declaration.headers_env:
        value = _variable(variable, f"headers_env.{header}")
        bare = header.lower() == "authorization" and " " not in value
        found[header] = f"Bearer {value}" if bare else value
    keep_headers(found)
    return found


def _variable(name: str, place: str) -> str:
    value = read_secret(name)
    if not value:
        raise ServerFailed(f"the environment variable {name} ({place}) is not set")
    return value


@asynccontextmanager
async def open_http(declaration: McpServerSettings) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a server over HTTP."""
    # No bound on reading: the executor keeps the deadline of a call.
    timeout = httpx2.Timeout(None, connect=min(5.0, declaration.start_timeout), write=30.0)
    # More than the calls, since the listening stream and notifications need connections too.
    limits = httpx2.Limits(max_connections=declaration.concurrency and declaration.concurrency + 4)
    async with ErrorAnsweringClient(headers=headers(declaration), timeout=timeout, limits=limits) as client:
        transport = streamable_http_client(declaration.url, http_client=client, max_sse_event_size=MESSAGE_BYTES)
        async with transport as streams:
            yield streams
