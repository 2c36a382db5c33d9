"""`/mcp`: the pool as an MCP server over HTTP, as the official package speaks it.

Invariants: a request gets here past the gate, with a key where keys are needed, and with a body within the limits; so
the checks of the package, which are weaker, are not needed. A session belongs to the key that began it. A client whose
connection breaks has left its calls.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .gate import read_bytes
from .mcp_server import LEAVING, OWNER, McpService
from .serving import Serving

_IDLE_SECONDS = 1800.0
_SESSIONS = 1000


class McpRoutes:
    """Answers the requests of MCP clients.

    Raises:
        UsageError: as `McpService`.
        PoolError: as `McpService`.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._manager = StreamableHTTPSessionManager(
            McpService(serving).server,
            max_request_body_size=serving.settings.limits.body_bytes,
            session_idle_timeout=_IDLE_SECONDS,
            max_sessions=_SESSIONS,
            stateless=serving.hub.ledger.shared,  # the next request of a session may come to another worker
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """While it answers. It can be entered once."""
        return self._manager.run()

    async def answer(self, request: Request) -> ASGIApp:
        """Answer a request."""
        owner = self._serving.owner(request)
        body = await read_bytes(request, self._serving.settings.limits) if request.method == "POST" else b""
        return _Answer(self._manager, owner, body)


class _Answer:
    """What answers one request.

    Args:
        body: that was read already.
    """

    def __init__(self, manager: StreamableHTTPSessionManager, owner: str, body: bytes) -> None:
        self._manager = manager
        self._owner = owner
        self._body: bytes | None = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving: list[Any] = []
        found = {**scope, OWNER: self._owner, LEAVING: leaving}
        if self._owner:
            # Of the key its name alone: what the package may log holds no secret.
            found["user"] = AuthenticatedUser(AccessToken(token="", client_id=self._owner, scopes=[]))

        async def again() -> Message:
            if self._body is None:
                return await receive()
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}

        try:
            await self._manager.handle_request(found, again, send)
        finally:
            for scope_of_call in leaving.copy():
                scope_of_call.cancel()
