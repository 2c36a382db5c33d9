"""`/a2a` and the card of the agent: presets as agents for clients of A2A 1.0, over JSON-RPC.

Invariant: a task is a run of the hub, begun by a message, and belongs to the key that sent it. The same message sent
again, with the same `messageId`, joins its task. A message of a context is asked with the tasks of it that have ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, NoReturn

from starlette.requests import Request
from starlette.types import ASGIApp

from .a2a_contexts import TaskQuery, add_to_context, list_tasks, read_history, turns_before
from .a2a_wire import CONTEXT, MESSAGE, PROTOCOL, TaskStream, card, context_of, task_now, task_of
from .api_error import ApiError
from .event_stream import PING, EventStream, JsonAnswer, LateAnswer
from .gate import read_bytes
from .request_digests import digest_of
from .request_reader import Conversation, read_messages
from .request_record import RequestRecord
from .served_run import ServedRun
from .serving import Serving, run_headers

_PARSE, _REQUEST, _METHOD, _PARAMS = -32700, -32600, -32601, -32602
_LONGEST = 200
"""Characters of the id of a context."""
_NO_TASK, _NOT_CANCELABLE, _UNSUPPORTED, _VERSION = -32001, -32002, -32004, -32009


class RpcError(Exception):
    """An error of JSON-RPC.

    Args:
        code: of JSON-RPC, or of A2A.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


Method = Callable[[Serving, str, Any, dict[str, Any]], Awaitable[ASGIApp]]


async def agent_card(serving: Serving, request: Request) -> ASGIApp:
    """The card. It needs no key: who may ask reads there what to send."""
    return JsonAnswer(card(serving.settings, f"{request.url.scheme}://{request.headers['host']}"))


async def answer(serving: Serving, request: Request) -> ASGIApp:
    """Answer a request."""
    owner = serving.owner(request)
    raw = await read_bytes(request, serving.settings.limits)
    request_id = None
    try:
        asked = _parsed(raw)
        request_id = _id_of(asked)  # also where the rest is wrong
        method, params = _read(asked)
        if not request.headers.get("a2a-version", PROTOCOL).startswith(PROTOCOL):
            raise RpcError(_VERSION, f"A2A-Version: expected {PROTOCOL}")
        if method not in _METHODS:
            raise RpcError(_METHOD, f"there is no method {method[:80]!r}; there are: {', '.join(_METHODS)}")
        if not isinstance(params, dict):
            raise RpcError(_PARAMS, "params: expected an object")
        return await _METHODS[method](serving, owner, request_id, params)
    except RpcError as error:
        told = {"code": error.code, "message": str(error)}
    except ApiError as error:
        if error.status not in (400, 404):
            raise
        told = {"code": _PARAMS, "message": str(error)}
    return JsonAnswer({"jsonrpc": "2.0", "id": request_id, "error": told})


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise RpcError(_PARSE, "the body is invalid JSON") from None


def _id_of(asked: Any) -> int | str | None:
    """The id of a request; None where none can be read."""
    found = asked.get("id") if isinstance(asked, dict) else None
    return found if type(found) in (int, str) else None


def _read(asked: Any) -> tuple[str, Any]:
    """The method and the parameters of a request."""
    match asked:
        case {"jsonrpc": "2.0", "method": str(method), "id": int() | str(), **more}:
            return method, more.get("params", {})
    raise RpcError(_REQUEST, "expected one request of JSON-RPC 2.0 with an id")


# -- methods -----------------------------------------------------------------------------------------------------------


async def _send(serving: Serving, owner: str, request_id: Any, params: dict[str, Any]) -> ASGIApp:
    options = params.get("configuration") or {}
    options = options if isinstance(options, dict) else {}
    at_once, history = options.get("returnImmediately") is True, read_history(options)
    run = await _begun(serving, owner, params, background=at_once)
    if at_once:
        return _result(request_id, {"task": task_now(run, history)}, run)

    async def whole() -> dict[str, Any]:
        moments = await run.moments()
        return _told(request_id, {"task": task_of(_fresh(serving, run), moments, over=True, history=history)})

    return LateAnswer(whole(), run_headers(run), partial(serving.hub.left, run))


async def _stream(serving: Serving, owner: str, request_id: Any, params: dict[str, Any]) -> ASGIApp:
    run = await _begun(serving, owner, params, streams=True)
    return EventStream(_frames(serving, run, request_id), run_headers(run), partial(serving.hub.left, run))


async def _subscribe(serving: Serving, owner: str, request_id: Any, params: dict[str, Any]) -> ASGIApp:
    run = _found(serving, owner, params)
    if run.over:
        raise RpcError(_UNSUPPORTED, "the task has ended; get it")
    return EventStream(_frames(serving, run, request_id), run_headers(run), partial(serving.hub.left, run))


async def _get(serving: Serving, owner: str, request_id: Any, params: dict[str, Any]) -> ASGIApp:
    run = _found(serving, owner, params)
    return _result(request_id, task_now(run, read_history(params)), run)


async def _list(serving: Serving, owner: str, request_id: Any, params: dict[str, Any]) -> ASGIApp:
    return JsonAnswer(_told(request_id, await list_tasks(serving, owner, TaskQuery.read(params))))


async def _cancel(serving: Serving, owner: str, request_id: Any, params: dict[str, Any]) -> ASGIApp:
    run = _found(serving, owner, params)
    if run.over:
        raise RpcError(_NOT_CANCELABLE, "the task has ended")
    await serving.hub.cancel(run)
    run = _found(serving, owner, params)
    return _result(request_id, task_now(run), run)


_METHODS: dict[str, Method] = {
    "SendMessage": _send,
    "SendStreamingMessage": _stream,
    "GetTask": _get,
    "ListTasks": _list,
    "CancelTask": _cancel,
    "SubscribeToTask": _subscribe,
}


# -- runs --------------------------------------------------------------------------------------------------------------


async def _begun(serving: Serving, owner: str, params: dict[str, Any], **fields: Any) -> ServedRun:
    """The run of a message: a new one, or the one that the same message began before."""
    message = params.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("messageId"), str) or not message["messageId"]:
        raise RpcError(_PARAMS, "message: expected an object with messageId, role and parts")
    context = message.get("contextId") or ""
    if not isinstance(context, str) or len(context) > _LONGEST:
        raise RpcError(_PARAMS, f"contextId: expected a text of at most {_LONGEST} characters")
    if message.get("taskId"):
        _refuse_more(serving, owner, message["taskId"], context)
    preset = serving.preset(params.get("tenant") or next(iter(serving.settings.presets)))
    asked = _question(message, turns_before(serving, owner, context) if context else [])
    body = digest_of(owner, "a2a", preset.name, json.dumps(message, sort_keys=True))
    record = RequestRecord(
        owner=owner,
        preset=preset.name,
        protocol="a2a",
        digest=digest_of(owner, "a2a", "key", message["messageId"]),
        body_digest=body,
        created=int(time.time()),
        input=[{"type": "message", "role": "user", "content": "\n".join(map(str, asked.question))}],
        metadata={MESSAGE: message["messageId"][:_LONGEST], **({CONTEXT: context} if context else {})},
        **fields,
    )
    try:
        run = await serving.hub.join_or_begin(record, asked)
    except ApiError as error:
        if error.code == "conflict":
            raise RpcError(_PARAMS, "this messageId came with another message before; give another one") from None
        raise
    add_to_context(serving, run)
    return run


def _refuse_more(serving: Serving, owner: str, task_id: Any, context: str) -> NoReturn:
    """Say why a message for a task is refused."""
    run = _found(serving, owner, {"id": task_id})
    if context and context != context_of(run):
        raise RpcError(_PARAMS, "contextId: the task belongs to another context")
    raise RpcError(_UNSUPPORTED, "a task takes no further messages; send one with its contextId and without taskId")


def _question(message: dict[str, Any], earlier: list[dict[str, Any]]) -> Conversation:
    parts = message.get("parts")
    if message.get("role") != "ROLE_USER" or not isinstance(parts, list):
        raise RpcError(_PARAMS, "message: expected the role ROLE_USER and a list of parts")
    return read_messages([*earlier, {"role": "user", "content": [_part(part) for part in parts]}], "message")


def _part(part: Any) -> dict[str, Any]:
    """A part in the form that the reader of requests knows."""
    match part:
        case {"text": str(text)}:
            return {"type": "text", "text": text}
        case {"data": data}:
            return {"type": "text", "text": json.dumps(data, ensure_ascii=False)}
        case {"raw": str(raw), "mediaType": str(kind)} if kind.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{raw}"}}
        case {"raw": str(raw), **more}:
            kind = str(more.get("mediaType") or "application/octet-stream")
            name = str(more.get("filename", ""))
            return {"type": "file", "file": {"file_data": f"data:{kind};base64,{raw}", "filename": name}}
        case {"url": str(url), "mediaType": str(kind)} if kind.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": url}}
    raise RpcError(_PARAMS, "message.parts: expected text, data, raw, or the url of an image")


def _found(serving: Serving, owner: str, params: dict[str, Any]) -> ServedRun:
    try:
        run = serving.hub.get(str(params.get("id")), owner)
    except ApiError:
        run = None
    if run is None or run.request.protocol != "a2a":
        raise RpcError(_NO_TASK, f"there is no task {str(params.get('id'))[:80]!r}")
    return run


def _fresh(serving: Serving, run: ServedRun) -> ServedRun:
    """A run with what has become of its request meanwhile."""
    return serving.hub.get(run.id, run.request.owner)


async def _frames(serving: Serving, run: ServedRun, request_id: Any) -> AsyncIterator[bytes]:
    stream = TaskStream(run, request_id)
    async for moments in run.follow():
        yield stream.frames(moments) if moments else PING
    run.request = _fresh(serving, run).request
    yield stream.last_frames()


def _result(request_id: Any, result: dict[str, Any], run: ServedRun) -> ASGIApp:
    return JsonAnswer(_told(request_id, result), headers=run_headers(run))


def _told(request_id: Any, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}
