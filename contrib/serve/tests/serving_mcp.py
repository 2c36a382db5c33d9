"""A pool with all sorts of members, served to MCP clients, and the official client of either revision."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
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

        @ct.tool(cost=ct.Cost(usd=0.2))
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


__all__ = ["ANSWER", "PNG", "REVISIONS", "Members", "connected", "mcp_settings"]
