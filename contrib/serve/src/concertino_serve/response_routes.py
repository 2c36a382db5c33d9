"""The routes of `/v1/responses`: create, read, read on, cancel, delete, and the items that were sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from .api_error import ApiError
from .client_tools import call_key, read_tools
from .conversation_routes import blocked, items_of, take_place
from .conversation_store import KeptConversation
from .event_stream import PING, EventStream, JsonAnswer, LateAnswer
from .request_reader import Conversation, flag, read_messages, read_schema, refuse_fields
from .request_record import RequestRecord
from .response_items import ANSWERS, as_message, as_messages, page_of, read_items, read_metadata, shown_item
from .response_wire import ResponseStream, response_now
from .served_run import ServedRun
from .serving import Serving, run_headers

_REFUSED = {
    "prompt": "there are no stored prompts; give instructions",
}
_MOST_TURNS = 500


async def create(serving: Serving, request: Request) -> ASGIApp:
    """Begin a response, or join the one that the same request began."""
    run = await serving.run_of(request, "responses", partial(_read, serving))
    if run.request.conversation and (refused := take_place(serving, run)) is not None:
        await serving.hub.delete(run)
        raise refused
    left = partial(serving.hub.left, run)
    if run.request.streams:
        return EventStream(_frames(run, -1), run_headers(run), left)
    if run.request.background:
        return JsonAnswer(_now(run), headers=run_headers(run))
    return LateAnswer(_whole(run), run_headers(run), left)


async def read(serving: Serving, request: Request) -> ASGIApp:
    """A response as it is now, or its events behind a number."""
    run = _found(serving, request)
    if request.query_params.get("stream") not in ("true", "True", "1"):
        return JsonAnswer(_now(run), headers=run_headers(run))
    after = request.query_params.get("starting_after", "-1")
    if not after.removeprefix("-").isdecimal() or len(after) > 12:
        raise ApiError(400, f"starting_after={after[:20]!r}; expected a number", param="starting_after")
    return EventStream(_frames(run, int(after)), run_headers(run), partial(serving.hub.left, run))


async def cancel(serving: Serving, request: Request) -> ASGIApp:
    """Stop a response; one that is over stays as it is."""
    run = _found(serving, request)
    await serving.hub.cancel(run)
    return JsonAnswer(_now(_found(serving, request)), headers=run_headers(run))


async def delete(serving: Serving, request: Request) -> ASGIApp:
    """Remove a response with its trace."""
    run = _found(serving, request)
    await serving.hub.delete(run)
    return JsonAnswer({"id": run.answer_id, "object": "response", "deleted": True})


async def input_items(serving: Serving, request: Request) -> ASGIApp:
    """What was sent, the last first."""
    run = _found(serving, request)
    items = [shown_item(run.answer_id, place, item) for place, item in enumerate(run.request.input)]
    return JsonAnswer(page_of(items, request.query_params))


def _found(serving: Serving, request: Request) -> ServedRun:
    return serving.hub.get(request.path_params["name"], serving.owner(request))


def _now(run: ServedRun) -> dict[str, Any]:
    return response_now(run.answer_id, run.request, run.so_far(), over=run.over)


async def _whole(run: ServedRun) -> dict[str, Any]:
    return response_now(run.answer_id, run.request, await run.moments(), over=True)


async def _frames(run: ServedRun, after: int) -> AsyncIterator[bytes]:
    stream = ResponseStream(run.answer_id, run.request)
    async for moments in run.follow():
        if moments:
            yield "".join(frame.text for frame in stream.take(moments) if frame.number > after).encode()
        else:
            yield PING
    yield "".join(frame.text for frame in stream.close() if frame.number > after).encode()


# -- what is asked -----------------------------------------------------------------------------------------------------


def _read(serving: Serving, body: dict[str, Any], owner: str) -> tuple[dict[str, Any], Conversation]:
    refuse_fields(body, _REFUSED)
    form = body.get("text") or {}
    if not isinstance(form, Mapping):
        raise ApiError(400, "text: expected an object with a format", param="text")
    instructions, previous = _text(body, "instructions"), _text(body, "previous_response_id")
    items = read_items(body.get("input"))
    kept = _conversation(serving, body, owner)
    if kept is not None and previous:
        raise ApiError(400, "give conversation or previous_response_id, not both", param="conversation")
    goes_on = bool(items) and items[-1].get("type") in ANSWERS
    earlier = [] if goes_on else _before(serving, kept, previous, owner)
    asked = read_messages([*earlier, *(as_message(item) for item in items)], "input")
    if kept is not None and not goes_on:
        asked = replace(asked, blocked=blocked(serving, kept))
    if asked.answers is not None and previous and previous.partition(".")[0] != asked.answers.run_id:
        raise ApiError(
            400, "the results are for calls of another response than previous_response_id", param="previous_response_id"
        )
    fields = {
        "streams": flag(body, "stream"),
        "background": flag(body, "background"),
        "input": items,
        "instructions": "\n\n".join(filter(None, (instructions, asked.instructions))),
        "previous": previous,
        "conversation": kept.id if kept is not None else "",
        "metadata": read_metadata(body.get("metadata")),
        "tools": read_tools(body),
        "schema": read_schema(form.get("format"), "text.format"),
    }
    return fields, asked


def _conversation(serving: Serving, body: dict[str, Any], owner: str) -> KeptConversation | None:
    given = body.get("conversation")
    if given is None:
        return None
    name = given.get("id") if isinstance(given, Mapping) else given
    if not isinstance(name, str):
        raise ApiError(400, "conversation: expected its id", param="conversation")
    return serving.conversations.get(name, owner)


def _before(serving: Serving, kept: KeptConversation | None, previous: str, owner: str) -> list[dict[str, Any]]:
    """The messages before a question."""
    return as_messages(items_of(serving, kept) if kept is not None else _earlier(serving, previous, owner))


def _earlier(serving: Serving, previous: str, owner: str) -> list[dict[str, Any]]:
    """The turns before: what was asked and answered, along the chain of responses."""
    turns: list[dict[str, Any]] = []
    for _ in range(_MOST_TURNS):
        if not previous:
            return turns
        run = serving.hub.get(previous, owner)
        if not run.over:
            raise ApiError(400, f"the response {run.id} is still under way", param="previous_response_id")
        story = run.story()
        if story.suspended and run.until is None:
            waiting = ", ".join(call_key(run.id, call_id) for call_id in story.waiting)
            why = f"the response {run.answer_id} waits for {waiting}; send the results or decisions as the last items"
            raise ApiError(400, why, param="input")
        said = story.answer or f"(no answer: {story.stop})"
        asked = RequestRecord.read(run.trace)
        sent = [item for item in asked.input if item.get("role") not in ("system", "developer")]
        turns = [*sent, {"role": "assistant", "content": said}, *turns]
        previous = asked.previous
    raise ApiError(400, f"more than {_MOST_TURNS} responses follow each other", param="previous_response_id")


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise ApiError(400, f"{name}: expected a text", param=name)
    return value or ""
