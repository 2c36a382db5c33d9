"""The routes of `/v1/conversations`, and what a response reads of one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from .api_error import ApiError
from .client_tools import call_key
from .conversation_store import KeptConversation
from .event_stream import JsonAnswer
from .gate import read_body
from .response_items import list_of, page_of, read_items, read_metadata, shown_item
from .response_wire import response_now
from .served_run import ServedRun
from .serving import Serving

_MOST_ITEMS = 20
"""That may be added at once."""


async def create(serving: Serving, request: Request) -> ASGIApp:
    """Begin a conversation, with the items that it begins with."""
    owner, body = serving.owner(request), (await read_body(request, serving.settings.limits))[1]
    items = _new_items(body)
    made = serving.conversations.make(owner, read_metadata(body.get("metadata")), (items,) if items else ())
    return JsonAnswer(_shown(made))


async def read(serving: Serving, request: Request) -> ASGIApp:
    """A conversation."""
    return JsonAnswer(_shown(_found(serving, request)))


async def update(serving: Serving, request: Request) -> ASGIApp:
    """Note other metadata."""
    serving.owner(request)
    _, body = await read_body(request, serving.settings.limits)
    with serving.conversations.changing():
        known = replace(_found(serving, request), metadata=read_metadata(body.get("metadata")))
        return JsonAnswer(_shown(serving.conversations.keep(known)))


async def delete(serving: Serving, request: Request) -> ASGIApp:
    """Remove a conversation; its responses stay."""
    known = _found(serving, request)
    serving.conversations.delete(known)
    return JsonAnswer({"id": known.id, "object": "conversation.deleted", "deleted": True})


async def items(serving: Serving, request: Request) -> ASGIApp:
    """The items, the last first."""
    return JsonAnswer(page_of(items_of(serving, _found(serving, request)), request.query_params))


async def add_items(serving: Serving, request: Request) -> ASGIApp:
    """Put items at the end."""
    owner = serving.owner(request)
    new = _new_items((await read_body(request, serving.settings.limits))[1])
    known = serving.conversations.add(request.path_params["name"], owner, new)
    return JsonAnswer(list_of(_entry_items(serving, known, len(known.entries) - 1)))


async def item(serving: Serving, request: Request) -> ASGIApp:
    """One item."""
    return JsonAnswer(_found_item(serving, request, _found(serving, request)))


async def delete_item(serving: Serving, request: Request) -> ASGIApp:
    """Remove one item from the conversation."""
    with serving.conversations.changing():
        known = _found(serving, request)
        name = _found_item(serving, request, known)["id"]
        return JsonAnswer(_shown(serving.conversations.keep(replace(known, dropped=(*known.dropped, name)))))


def items_of(serving: Serving, known: KeptConversation) -> list[dict[str, Any]]:
    """All items: those that the client added, and what its responses were asked and said."""
    found = [item for place in range(len(known.entries)) for item in _entry_items(serving, known, place)]
    return [item for item in found if item["id"] not in known.dropped]


def take_place(serving: Serving, run: ServedRun) -> ApiError | None:
    """Make a run part of its conversation. Says why not, where another worker has begun one there this moment."""
    name, owner = run.request.conversation, run.request.owner
    with serving.conversations.changing():
        known = serving.conversations.get(name, owner)
        if run.answer_id not in known.entries and not run.part and (why := blocked(serving, known)) is not None:
            return why
        serving.conversations.add(name, owner, run.answer_id)
    return None


def blocked(serving: Serving, known: KeptConversation) -> ApiError | None:
    """Why the conversation cannot be continued with a new question now."""
    last = known.entries[-1] if known.entries else None
    run = _run(serving, known, last) if isinstance(last, str) else None
    if run is None:
        return None
    if not run.over:
        return ApiError(
            409, f"the response {run.answer_id} of this conversation is under way", code="conversation_locked"
        )
    story = run.story()
    if not story.suspended or run.until is not None:
        return None
    waiting = ", ".join(call_key(run.id, call_id) for call_id in story.waiting)
    return ApiError(
        400, f"the response {run.answer_id} waits for {waiting}; send the results or decisions", param="input"
    )


def _entry_items(serving: Serving, known: KeptConversation, place: int) -> list[dict[str, Any]]:
    entry = known.entries[place]
    if not isinstance(entry, str):
        return [shown_item(f"{known.id}.{place}", number, item) for number, item in enumerate(entry)]
    run = _run(serving, known, entry)
    if run is None:
        return []
    sent = [shown_item(run.answer_id, number, item) for number, item in enumerate(run.request.input)]
    said = response_now(run.answer_id, run.request, run.so_far(), over=True)["output"] if run.over else []
    return [*sent, *said]


def _run(serving: Serving, known: KeptConversation, answer_id: str) -> ServedRun | None:
    try:
        return serving.hub.get(answer_id, known.owner)
    except ApiError:
        return None  # the client has deleted the response


def _new_items(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body.get("items") or []
    if not isinstance(given, list) or len(given) > _MOST_ITEMS:
        raise ApiError(400, f"items: expected a list of at most {_MOST_ITEMS} items", param="items")
    return read_items(given, "items")


def _found(serving: Serving, request: Request) -> KeptConversation:
    return serving.conversations.get(request.path_params["name"], serving.owner(request))


def _found_item(serving: Serving, request: Request, known: KeptConversation) -> dict[str, Any]:
    name = request.path_params["item"]
    for found in items_of(serving, known):
        if found["id"] == name:
            return found
    raise ApiError(404, f"there is no item {name[:80]!r} in this conversation", code="not_found")


def _shown(known: KeptConversation) -> dict[str, Any]:
    return {"id": known.id, "object": "conversation", "created_at": known.created, "metadata": dict(known.metadata)}
