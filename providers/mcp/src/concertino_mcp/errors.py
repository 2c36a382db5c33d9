"""Why a server could not be used, or a call of it not be completed, before it is an observation.

`CallFailed` ends the call of a member with a code of its own: what goes wrong with one server says nothing about the
others of the provider, so nothing here counts against the provider's breaker.
"""

from __future__ import annotations

from typing import Any, NoReturn

from concertino import CallFailed, ErrorInfo, Observation, Status, UsageError, without_secrets


class ServerFailed(Exception):
    """A server cannot be reached or started, or was lost.

    Args:
        text: why; complete after "the MCP server 'x': ".
        executed: whether the call may have been executed.
        refused: the server refuses who we are or what we ask: repeating changes nothing.
        pause: seconds to wait at least before another attempt; None for an attempt at once.
    """

    def __init__(self, text: str, *, executed: bool = False, refused: bool = False, pause: float | None = None) -> None:
        super().__init__(without_secrets(text))
        self.pause = pause
        self.executed = executed
        self.refused = refused


class McpServerError(UsageError):
    """`concertino_mcp.server(...)` found a server that cannot be used; the text says why."""


def fail(member: str, code: str, message: str, content: Any = None, *, retryable: bool = False) -> NoReturn:
    """End a member's call with an error of its own."""
    error = ErrorInfo(code, without_secrets(message), retryable=retryable)
    raise CallFailed(Observation("", member, Status.EXEC_ERR, content, error))
