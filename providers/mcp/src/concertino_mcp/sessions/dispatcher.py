"""The dispatcher of a session, with one rule of its own: an unreadable tool costs itself and not the whole list.

Invariant: what it passes on of a list can be read by the SDK; what cannot is in `dropped`, with what is wrong with it.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import methods
from pydantic import ValidationError


class Dispatcher(JSONRPCDispatcher[Any]):
    """The SDK's dispatcher, which takes one unreadable tool out of a list where the SDK would refuse the whole list."""

    def __init__(self, *streams: Any) -> None:
        super().__init__(*streams)
        self.version = ""
        self.dropped: list[tuple[str, str]] = []

    async def send_raw_request(self, method: str, *rest: Any, **more: Any) -> dict[str, Any]:
        raw = await super().send_raw_request(method, *rest, **more)
        if method == "tools/list" and isinstance(raw.get("tools"), list) and self._fault(raw):
            kept = []
            for tool in raw["tools"]:
                fault = self._fault({**raw, "tools": [tool]})
                if not fault:
                    kept.append(tool)
                    continue
                name = tool.get("name") if isinstance(tool, dict) else None
                self.dropped.append((str(name or "?"), fault))
            raw = {**raw, "tools": kept}
        return raw

    def _fault(self, raw: dict[str, Any]) -> str:
        try:
            methods.validate_server_result("tools/list", self.version or "2025-11-25", raw)
            types.ListToolsResult.model_validate(raw, by_name=False)
        except (ValueError, RecursionError) as error:
            return first_fault(error)
        except KeyError:  # a version that the SDK knows no schema of
            return ""
        return ""


def first_fault(error: Exception) -> str:
    """What an answer that breaks the protocol, or is nested too deeply, has wrong."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"][:6])
        return f"it breaks the protocol at {place}: {first['msg']}"
    return f"it cannot be read: {' '.join(str(error).split())[:200]}"
