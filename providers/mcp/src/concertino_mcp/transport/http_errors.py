"""Errors that the HTTP client makes in the server's place, and what they mean for a call.

It stands apart from the client, so that reading such an error imports nothing heavy. Invariant: only what surely never
reached the server counts as not executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from concertino_mcp.errors import ServerFailed

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError

HTTP_FAILED = -32097
"""`data` of such an error has `http` (the status, 0 for none), `sent`, and `after` (Retry-After)."""
REFUSED = (401, 402, 403)
"""Statuses with which a server refuses who we are: repeating changes nothing."""


def http_failure(error: MCPError) -> ServerFailed | None:
    """The failure of the way to a server over HTTP; None for an error of the server itself."""
    data = error.data if isinstance(error.data, dict) else {}
    if error.code != HTTP_FAILED or "http" not in data:
        return None
    status = data["http"]
    if status in REFUSED:
        return ServerFailed(error.message, refused=True)
    if session_is_over(error):
        return ServerFailed(error.message)  # another session, at once
    # A server that answers 429 has not begun.
    executed = status != 429 and data.get("sent", True)
    return ServerFailed(error.message, executed=executed, pause=_seconds(data.get("after", "")))


def session_is_over(error: MCPError) -> bool:
    """Whether the server no longer knows the session."""
    data = error.data if isinstance(error.data, dict) else {}
    return error.code == HTTP_FAILED and data.get("http") == 404 and not data.get("sent", True)


def _seconds(after: str) -> float:
    """The seconds of a Retry-After header; 0 where it has none."""
    try:
        return max(0.0, float(after))
    except ValueError:
        return 0.0
