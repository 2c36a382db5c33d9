"""The way to a server over HTTP, with everything that can go wrong on it; the server is in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import concertino_mcp
import pytest
from aiohttp import web
from concertino import Status
from concertino_mcp.transport.messages import MESSAGE_BYTES
from waiting import wait_until

from .conftest import code, open_members

Answer = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]
TOOL = {"name": "go", "description": "Go.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
WRITER = {"name": "write", "description": "Write.", "inputSchema": {"type": "object"}}


class Faulty:
    """A server over HTTP that answers calls of tools as a test says."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.calls = 0
        self.sessions = 0
        self.cancelled: list[Any] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        method = message.get("method")
        if "id" not in message:
            if method == "notifications/cancelled":
                self.cancelled.append(message["params"]["requestId"])
            return web.Response(status=202)
        if method == "initialize":
            self.sessions += 1
            result: dict[str, Any] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "f", "version": "1"},
            }
            return self.reply(message, result, {"mcp-session-id": f"s{self.sessions}"})
        if method == "tools/list":
            return self.reply(message, {"tools": [TOOL, WRITER]})
        if method == "tools/call":
            self.calls += 1
            assert self.answer is not None
            return await self.answer(request, message)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})

    def reply(self, message: Any, result: Any, headers: dict[str, str] | None = None) -> web.Response:
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)

    def ok(self, message: Any, text: str = "fine") -> web.Response:
        return self.reply(message, {"content": [{"type": "text", "text": text}]})


@pytest.fixture
async def faulty() -> AsyncIterator[Faulty]:
    server = Faulty()
    app = web.Application()
    app.router.add_route("*", "/mcp", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    yield server
    await asyncio.to_thread(concertino_mcp.close)
    await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "tool", "expected", "calls"),
    [
        (401, "go", "rejected", 1),
        (403, "write", "rejected", 1),
        (500, "write", "unknown_outcome", 1),
        (500, "go", "unavailable", 3),
        (429, "write", "unavailable", 3),
        (404, "write", "unknown_outcome", 1),
    ],
)
async def test_a_status_is_an_outcome(faulty: Faulty, status: int, tool: str, expected: str, calls: int) -> None:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(status=status, text="not today", headers={"Retry-After": "0"})

    faulty.answer = answer
    members = await open_members(url=faulty.url)
    seen = await members.call(tool)
    assert (seen.status, code(seen), faulty.calls) == (Status.EXEC_ERR, expected, calls)
    assert f"HTTP {status}" in str(seen.content or seen.error)
    assert "not today" in str(seen.content or seen.error)


async def test_a_failed_call_leaves_the_others_of_its_session_alone(faulty: Faulty) -> None:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if message["params"]["name"] == "write":
            assert request.transport is not None
            request.transport.abort()  # the connection breaks
            return web.Response()
        await asyncio.sleep(0.5)
        return faulty.ok(message)

    faulty.answer = answer
    members = await open_members(url=faulty.url)
    first, second = await members.call_all(("go", {}), ("write", {}))
    assert first.content == "fine"
    assert (second.status, code(second)) == (Status.EXEC_ERR, "unknown_outcome")
    assert faulty.sessions == 1


async def test_a_forgotten_session_is_opened_again_and_the_call_repeated(faulty: Faulty) -> None:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if request.headers["mcp-session-id"] == "s1":
            return web.json_response({"error": "session not found"}, status=404)
        return faulty.ok(message)

    faulty.answer = answer
    members = await open_members(url=faulty.url)
    assert (await members.call("write")).content == "fine"
    assert faulty.sessions == 2


@pytest.mark.parametrize("form", ["json", "events"])
async def test_a_body_that_is_too_large_fails_its_call_alone(faulty: Faulty, form: str) -> None:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        if message["params"]["arguments"]:
            return faulty.ok(message)
        kind = "application/json" if form == "json" else "text/event-stream"
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        head = json.dumps(
            {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "X"}]}}
        )
        before, after = head.split("X")
        await response.write((before if form == "json" else f"event: message\ndata: {before}").encode())
        for _ in range(20):
            await response.write(b"x" * 2**20)
        await response.write(f"{after}\n\n".encode())
        return response

    faulty.answer = answer
    members = await open_members(url=faulty.url)
    seen = await members.call("write")
    assert seen.status is Status.EXEC_ERR
    assert code(seen) == ("bad_result" if form == "json" else "mcp_error")
    assert f"{MESSAGE_BYTES:,}" in str(seen.error) or str(MESSAGE_BYTES) in str(seen.error) or form == "events"
    assert (await members.call("go", x=1)).content == "fine"


async def test_an_answer_that_is_no_mcp_is_a_reason(faulty: Faulty) -> None:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(text="<html>hello</html>", content_type="text/html")

    faulty.answer = answer
    members = await open_members(url=faulty.url)
    seen = await members.call("go")
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "mcp_error")
    assert "text/html" in str(seen.error)


async def test_a_call_that_is_cut_off_is_told_to_the_server(faulty: Faulty) -> None:
    async def answer(request: web.Request, message: Any) -> web.StreamResponse:
        await asyncio.sleep(30)
        return faulty.ok(message)

    faulty.answer = answer
    members = await open_members(url=faulty.url, timeout=0.5)
    assert (await members.call("go")).status is Status.TIMEOUT
    await wait_until(lambda: faulty.cancelled)
    assert len(faulty.cancelled) == 1
