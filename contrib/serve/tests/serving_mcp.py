"""A pool with all sorts of members, served to MCP clients, and the official client of either revision."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import concertino as ct
import httpx2
from concertino_serve.serve_settings import McpOffer, Preset, ServeSettings
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from .serving_here import Here, Scripted, calls_then

REVISIONS = {"2025-11-25": "legacy", "2026-07-28": "2026-07-28"}
"""How the official client is told which revision to speak."""
ANSWER = "It costs $4."
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)


@dataclass
class Sum:
    """What `add` returns."""

    sum: int


@dataclass
class Members:
    """What happened in the members of a pool.

    Attributes:
        running: calls of `wait` under way.
    """

    calls: list[str] = field(default_factory=list)
    running: int = 0
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    def pool(self, model: ct.Model) -> ct.Pool:
        @ct.tool(cost=ct.Cost(usd=0.01))
        async def price(fruit: str) -> str:
            """What a kilo costs."""
            self.calls.append("price")
            if fruit == "plum":
                raise ValueError("nobody sells plums")
            return "$4"

        @ct.tool
        async def add(a: int, b: int) -> Sum:
            """Add two numbers."""
            return Sum(a + b)

        @ct.tool
        async def count(upto: int) -> list[int]:
            """Count."""
            return list(range(upto))

        @ct.tool
        async def picture() -> ct.Result:
            """Draw."""
            return ct.Result("drawn", attachments=(ct.Image(PNG, name="dot.png"),))

        @ct.tool(cost=ct.Cost(usd=0.2), retry_safe=True)
        async def wait(ctx: ct.Context, steps: int = 0) -> str:
            """Wait until the test says so, and report steps."""
            self.running += 1
            try:
                for step in range(steps):
                    ctx.progress(step + 1, steps, f"step {step + 1}")
                    await asyncio.sleep(0.12)
                await self.go_on.wait()
            finally:
                self.running -= 1
            return "waited"

        @ct.tool(approval=True)
        async def pay(usd: float) -> str:
            """Pay."""
            self.calls.append("pay")
            return "paid"

        @ct.agent
        async def buyer(ctx: ct.Context, fruit: str) -> str:
            """Ask for a price, and pay."""
            found = await ctx.call("price", {"fruit": fruit})
            return f"bought for {found}"

        spec = ct.ModelSpec("m/lead", lambda: model, prices=ct.Prices(1.0, 10.0))
        return ct.Pool.of(price, add, count, picture, wait, pay, buyer, spec).bind(orchestrator="m/lead")


def mcp_settings(folder: Path, members: Members, offer: McpOffer | None = None, **changes: Any) -> ServeSettings:
    preset = {"strategy": ct.ParallelRounds(), **changes.pop("preset", {})}
    made = Preset("helper", members.pool(Scripted(calls_then(ANSWER))), **preset)
    return replace(ServeSettings({"helper": made}, traces=folder, mcp=offer or McpOffer()), **changes)


@contextlib.asynccontextmanager
async def connected(here: Here, revision: str, key: str = "", **options: Any) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    # Without certificates: reading them takes longer than most of these tests.
    async with httpx2.AsyncClient(headers=headers, verify=False, timeout=30) as web:
        transport = streamable_http_client(f"{here.url}/mcp", http_client=web)
        async with Client(transport, mode=REVISIONS[revision], **options) as client:
            yield client


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPT = "application/json, text/event-stream"


def posted(message: Any, **headers: str) -> bytes:
    body = json.dumps(message).encode() if not isinstance(message, bytes) else message
    given = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "content-length": str(len(body)),
        "accept": ACCEPT,
        "connection": "close",
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


async def opened(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))


async def answered(url: str, text: bytes) -> tuple[int, dict[str, str], bytes]:
    reader, writer = await opened(url)
    writer.write(text)
    head, _, body = (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n\r\n")
    writer.close()
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(first.split(" ")[1]), headers, body


async def begun_by_hand(url: str, revision: str, tool: str) -> asyncio.StreamWriter:
    """A call whose connection the test holds."""
    call: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {}},
    }
    if revision == "2026-07-28":
        call["params"]["_meta"] = META
        asked = posted(call, mcp_protocol_version=revision, mcp_method="tools/call", mcp_name=tool)
    else:
        about = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
        _, headers, _ = await answered(url, posted(hello))
        session = {"mcp_session_id": headers["mcp-session-id"], "mcp_protocol_version": revision}
        await answered(url, posted({"jsonrpc": "2.0", "method": "notifications/initialized"}, **session))
        asked = posted(call, **session)
    _, writer = await opened(url)
    writer.write(asked)
    return writer


def call_of(tool: str, arguments: Any, **params: Any) -> dict[str, Any]:
    """A call of a tool, in the form of 2026-07-28."""
    return request_of("tools/call", name=tool, arguments=arguments, **params)


def request_of(method: str, *, extensions: Sequence[str] = (), **params: Any) -> dict[str, Any]:
    """A request in the form of 2026-07-28."""
    able = {"extensions": {name: {} for name in extensions}}
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": able}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}


async def asked(url: str, request: dict[str, Any], **headers: str) -> dict[str, Any]:
    """What the server answers to such a request."""
    given = {"mcp_protocol_version": "2026-07-28", "mcp_method": request["method"], **headers}
    if "name" in request["params"]:
        given["mcp_name"] = request["params"]["name"]
    _, _, body = await answered(url, posted(request, **given))
    found: dict[str, Any] = json.loads(body)
    return found


def text_of(result: Any) -> str:
    """The text of a result."""
    return str(result.content[0].text)


__all__ = [
    "ANSWER",
    "PNG",
    "REVISIONS",
    "Members",
    "answered",
    "asked",
    "begun_by_hand",
    "call_of",
    "connected",
    "mcp_settings",
    "posted",
    "request_of",
    "text_of",
]
