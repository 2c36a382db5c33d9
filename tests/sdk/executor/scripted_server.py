"""A web server on the loopback that fails as it is told and counts what it executed."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import concertino as ct


@dataclass
class ScriptedServer:
    """`/status/CODE` answers so, `/after/SECONDS/CODE` adds Retry-After, `/reset` hangs up, `/heal/N/CODE` is well
    after N failures."""

    url: str = ""
    executed: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)

    def tool(self, **options: object) -> ct.ToolSpec:
        """A tool that asks this server."""

        async def fetch(path: str) -> str:
            """Ask the server."""
            import aiohttp

            where = path if path.startswith("http") else self.url + path
            async with aiohttp.ClientSession() as session, session.post(where) as response:
                response.raise_for_status()
                return await response.text()

        return ct.tool(**options)(fetch)  # type: ignore[call-overload,no-any-return]


@contextlib.asynccontextmanager
async def scripted_server() -> AsyncIterator[ScriptedServer]:
    """Start a server on a free port."""
    from aiohttp import web

    known = ScriptedServer()

    async def answer(request: web.Request) -> web.Response:
        known.executed[request.path] += 1
        known.times.append(asyncio.get_running_loop().time())
        kind, *rest = request.path.strip("/").split("/")
        headers = {"Retry-After": rest[0]} if kind == "after" else {}
        if kind == "reset":
            assert request.transport is not None
            request.transport.abort()
        if kind == "heal" and known.executed[request.path] > int(rest[0]):
            return web.Response(text="well")
        return web.Response(status=int(rest[-1]) if rest else 500, headers=headers)

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    known.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield known
    finally:
        await runner.cleanup()
