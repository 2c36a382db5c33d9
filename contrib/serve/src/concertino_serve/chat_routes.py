"""`POST /v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from .api_error import ApiError
from .chat_wire import ChatStream, completion
from .client_tools import read_tools
from .event_stream import PING, EventStream, LateAnswer
from .request_reader import Conversation, flag, read_messages, read_schema, refuse_fields
from .served_run import ServedRun
from .serving import Serving, run_headers
from .side_prompts import is_side_prompt

_REFUSED = {
    "functions": "give tools instead",
    "audio": "this server writes texts",
    "logprobs": "an answer of several models has no log-probabilities",
}


async def chat(serving: Serving, request: Request) -> ASGIApp:
    """Answer a chat, as a stream or as a whole."""
    run = await serving.run_of(request, "chat", _read)
    left = partial(serving.hub.left, run)
    if run.request.streams:
        return EventStream(_frames(run), run_headers(run), left)
    return LateAnswer(_whole(run), run_headers(run), left)


def _read(body: dict[str, Any], owner: str) -> tuple[dict[str, Any], Conversation]:
    refuse_fields(body, _REFUSED)
    if body.get("n") not in (None, 1):
        raise ApiError(400, "n: a run has one answer; ask again for another", param="n", code="invalid_value")
    options = body.get("stream_options") or {}
    asked = read_messages(body.get("messages"))
    fields = {
        "streams": flag(body, "stream"),
        "usage": isinstance(options, dict) and flag(options, "include_usage"),
        "schema": read_schema(body.get("response_format"), "response_format"),
        "instructions": asked.instructions,
        "tools": read_tools(body),
        "side": is_side_prompt(body),
    }
    return fields, asked


async def _frames(run: ServedRun) -> AsyncIterator[bytes]:
    stream = ChatStream(run.answer_id, run.request)
    async for moments in run.follow():
        yield stream.frames(moments) if moments else PING
    yield stream.last_frames()


async def _whole(run: ServedRun) -> dict[str, Any]:
    return completion(run.answer_id, run.request, await run.moments())
