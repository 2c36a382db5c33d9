"""A server that does what the API's documentation warns of, and what servers and proxies do besides.

The first part of the path names the fault: `http://127.0.0.1:PORT/<fault>`. It counts the requests for each, as the
server sees them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

from aiohttp import web

from .stand_in import events, serving, sse, text

Fault = Callable[["FaultServer", web.Request], Awaitable[web.StreamResponse]]
FAULTS: dict[str, Fault] = {}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5-5",
    "content": [text("Hello")],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "stop_details": None,
    "usage": {"input_tokens": 9, "output_tokens": 2, "output_tokens_details": {"thinking_tokens": 0}},
}
EVENTS = [*map(sse, events(MESSAGE))]
GOOD = b"".join(EVENTS)
START = b"".join(EVENTS[:3])
"""Up to the first text."""
DOCUMENTED = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Types of errors and their statuses, from https://platform.claude.com/docs/en/api/errors."""


def fault(function: Fault) -> Fault:
    FAULTS[function.__name__] = function
    return function


def error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}


class FaultServer:
    """The server, while it runs."""

    def __init__(self) -> None:
        self.address = ""
        self.seen: Counter[str] = Counter()
        self.headers: list[Mapping[str, str]] = []
        self.asked = asyncio.Event()
        self.cancelled = asyncio.Event()

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["fault"]
        self.seen[name] += 1
        self.headers.append(request.headers)
        await request.read()
        self.asked.set()
        if name in DOCUMENTED:
            return web.json_response(error(name, f"This is a {name}."), status=DOCUMENTED[name])
        return await FAULTS[name](self, request)


@asynccontextmanager
async def fault_server() -> AsyncIterator[FaultServer]:
    """Run one for as long as the block lasts."""
    server = FaultServer()
    async with serving(web.route("*", "/{fault}/v1/messages", server.handle)) as url:
        server.address = url
        yield server


async def stream(request: web.Request, *pieces: bytes, **headers: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **headers})
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
    return response


async def ended(request: web.Request, *pieces: bytes) -> web.StreamResponse:
    response = await stream(request, *pieces)
    await response.write_eof()
    return response


async def hanging(server: FaultServer) -> None:
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        server.cancelled.set()
        raise


def reset(request: web.Request) -> None:
    """Drop the connection without a farewell."""
    assert request.transport is not None
    request.transport.abort()


# -- what works in spite of everything ---------------------------------------------------------------------------------


@fault
async def good(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, GOOD)


@fault
async def one_message(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.json_response(MESSAGE)


@fault
async def event_of_600_kb(server: FaultServer, request: web.Request) -> web.StreamResponse:
    long = {**MESSAGE, "content": [text("x" * 600_000)]}
    return await ended(request, *map(sse, events(long)))


@fault
async def hang_after_the_end(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, GOOD)
    await hanging(server)
    return response


@fault
async def reset_after_the_stop_reason(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, *EVENTS[:-1])
    await asyncio.sleep(0.02)
    reset(request)
    return response


@fault
async def overloaded_twice(server: FaultServer, request: web.Request) -> web.StreamResponse:
    if server.seen["overloaded_twice"] < 3:
        return web.json_response(error("overloaded_error", "Overloaded"), status=529)
    return await ended(request, GOOD)


# -- refusals ----------------------------------------------------------------------------------------------------------


@fault
async def slow_down_for_an_hour(server: FaultServer, request: web.Request) -> web.StreamResponse:
    answer = error("rate_limit_error", "This request would exceed your organization's rate limit.")
    return web.json_response(answer, status=429, headers={"retry-after": "3600"})


@fault
async def slow_down_until(server: FaultServer, request: web.Request) -> web.StreamResponse:
    headers = {"retry-after": formatdate(time.time() - 5, usegmt=True)}
    return web.json_response(error("rate_limit_error", "Later."), status=429, headers=headers)


@fault
async def no_credit(server: FaultServer, request: web.Request) -> web.StreamResponse:
    said = "Your credit balance is too low to access the Anthropic API."
    return web.json_response(error("invalid_request_error", said), status=400)


@fault
async def spend_limit(server: FaultServer, request: web.Request) -> web.StreamResponse:
    said = "You have reached your specified API usage limits."
    return web.json_response(error("invalid_request_error", said), status=400)


@fault
async def prompt_too_long(server: FaultServer, request: web.Request) -> web.StreamResponse:
    said = "prompt is too long: 1000250 tokens > 1000000 maximum"
    return web.json_response(error("invalid_request_error", said), status=400)


@fault
async def conflict(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.json_response(error("conflict_error", "Modified concurrently."), status=409)


@fault
async def unavailable(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(text="upstream connect error", status=503)


@fault
async def unavailable_for_now(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(text="busy", status=503, headers={"retry-after-ms": "1"})


@fault
async def html_502(server: FaultServer, request: web.Request) -> web.StreamResponse:
    page = "<html><title>502 Bad Gateway</title></html>"
    return web.Response(text=page, status=502, content_type="text/html")


@fault
async def html(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html><title>Welcome</title>It works!</html>", content_type="text/html")


@fault
async def redirect(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": f"{server.address}/stolen/v1/messages"})


@fault
async def other_json(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.json_response({"choices": [{"message": {"content": "Hello"}}]})


# -- silence -----------------------------------------------------------------------------------------------------------


@fault
async def hang(server: FaultServer, request: web.Request) -> web.StreamResponse:
    await hanging(server)
    raise AssertionError


@fault
async def hang_midway(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, START)
    await hanging(server)
    return response


@fault
async def pings_for_ever(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request)
    try:
        while True:
            await response.write(sse({"type": "ping"}))
            await asyncio.sleep(0.02)
    except (asyncio.CancelledError, ConnectionError):
        server.cancelled.set()
        raise


@fault
async def drip(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, *EVENTS[:2])
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}
    try:
        while True:
            await response.write(sse(delta))
            await asyncio.sleep(0.02)
    except (asyncio.CancelledError, ConnectionError):
        server.cancelled.set()
        raise


# -- breaks ------------------------------------------------------------------------------------------------------------


@fault
async def reset_before_headers(server: FaultServer, request: web.Request) -> web.StreamResponse:
    reset(request)
    await asyncio.sleep(1)
    raise AssertionError


@fault
async def closed_without_a_word(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request)


@fault
async def reset_before_the_first_token(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, EVENTS[0])
    await asyncio.sleep(0.02)
    reset(request)
    return response


@fault
async def reset_midway(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, START)
    await asyncio.sleep(0.02)
    reset(request)
    return response


@fault
async def closed_without_a_stop_reason(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, START)


@fault
async def empty(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"", content_type="application/json")


@fault
async def half_a_message(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(text='{"id": "msg_1", "content": [{"type": "te', content_type="application/json")


# -- errors after a 200, and rubbish -----------------------------------------------------------------------------------


@fault
async def overloaded_event(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, EVENTS[0], sse(error("overloaded_error", "Overloaded")))


@fault
async def refused_event(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, sse(error("invalid_request_error", "No.")))


@fault
async def error_event(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, sse(error("a_newer_error", "Odd.")))


@fault
async def overloaded_event_midway(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, START, sse(error("overloaded_error", "Overloaded")))


@fault
async def no_json_event(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, b"event: message_start\ndata: {oh\n\n")


@fault
async def no_json_event_midway(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, START, b"event: content_block_delta\ndata: {oh\n\n")


@fault
async def odd_event_midway(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(
        request, START, sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}})
    )
