"""Items of the Responses API that clients send: read, told to a model, and shown again.

Invariant: an item is shown as it was sent, with an id that stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import QueryParams

from .api_error import ApiError
from .request_reader import flag

ANSWERS = ("function_call_output", "mcp_approval_response")
"""Items that let a suspended run go on."""
_KNOWN = ("message", "function_call", *ANSWERS)
_PASSED_OVER = ("mcp_call", "mcp_list_tools", "mcp_approval_request", "reasoning")
"""Items of earlier answers that a client sends back: what they said, the answers said too."""


def read_items(given: Any, name: str = "input") -> list[dict[str, Any]]:
    """The items of a field.

    Raises:
        ApiError: one is something else; says which.
    """
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list):
        raise ApiError(400, f"{name}: expected a text or a list of items", param=name)
    found = []
    for place, item in enumerate(given):
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if kind in _PASSED_OVER:
            continue
        if kind not in _KNOWN:
            where = f"{name}[{place}]"
            raise ApiError(400, f"{where}: {str(kind)[:40]!r}; expected a message", param=where)
        found.append(item)
    return found


def as_message(item: dict[str, Any]) -> dict[str, Any]:
    """An item as the message of a chat that says the same."""
    match item:
        case {"type": "function_call"}:
            return {"role": "assistant", "content": None}
        case {"type": "function_call_output"}:
            return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
        case {"type": "mcp_approval_response"}:
            key, approve = item.get("approval_request_id"), flag(item, "approve")
            return {"role": "tool", "tool_call_id": key, "content": "", "approve": approve}
    return item


def as_messages(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items of an earlier conversation as messages; those that nobody has to read are left out."""
    return [as_message(item) for item in items if item.get("type", "message") in ("message", "function_call_output")]


def shown_item(owner: str, place: int, item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as it was sent, with what the official client expects of one.

    Args:
        owner: the id of what it was sent with.
    """
    name = f"{owner}.input.{place}"
    if item.get("type", "message") != "message":
        return {"status": "completed", **item, "id": name}
    content, role = item.get("content"), str(item.get("role"))
    if isinstance(content, str):
        part = {"type": "output_text", "annotations": []} if role == "assistant" else {"type": "input_text"}
        content = [{**part, "text": content}]
    return {"id": name, "type": "message", "role": role, "status": "completed", "content": content}


def page_of(items: list[dict[str, Any]], asked: QueryParams) -> dict[str, Any]:
    """A page of items, the last first unless asked otherwise."""
    if asked.get("order", "desc") != "asc":
        items = items[::-1]
    names = [item["id"] for item in items]
    after, most = asked.get("after"), asked.get("limit", "20")
    begin = names.index(after) + 1 if after in names else 0
    page = items[begin : begin + (int(most) if most.isdecimal() and len(most) < 4 else 20)]
    return list_of(page, more=begin + len(page) < len(items))


def list_of(page: list[dict[str, Any]], *, more: bool = False) -> dict[str, Any]:
    """A list of items as clients read it."""
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": "", "last_id": ""}
    return {"object": "list", "data": page, **ends, "has_more": more}


def read_metadata(given: Any) -> dict[str, str]:
    """What a client notes beside its request.

    Raises:
        ApiError: it is too much, or no texts.
    """
    if given is None:
        return {}
    if (
        not isinstance(given, dict)
        or len(given) > 16
        or not all(isinstance(value, str) and len(value) <= 512 and len(name) <= 64 for name, value in given.items())
    ):
        raise ApiError(400, "metadata: expected at most 16 texts of 512 characters", param="metadata")
    return given
