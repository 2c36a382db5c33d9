"""The served pool with other clients: the members of another pool, the official client over stdio, and the example."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import concertino as ct
import concertino_mcp
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from waiting import wait_until

from .serving_example import EXAMPLES, copy_example, example_served
from .serving_here import served
from .serving_mcp import ANSWER, REVISIONS, Members, mcp_settings, text_of

SCRIPT = Path(__file__).with_name("stdio_server.py")


async def test_a_served_pool_is_the_members_of_another_pool(tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here:
        try:
            members = await concertino_mcp.server_async("other", url=f"{here.url}/mcp")
            pool = ct.Pool.of(*members)
            calls = [
                ct.Call("mcp/other.add", {"a": 2, "b": 3}),
                ct.Call("mcp/other.price", {"fruit": "kiwi"}),
                ct.Call("mcp/other.price", {"fruit": "plum"}),
                ct.Call("mcp/other.ask", {"question": "What does it cost?"}),
                ct.Call("mcp/other.picture", {}),
            ]
            async with ct.Executor() as executor:
                seen = await executor.run(calls, pool)
        finally:
            await asyncio.to_thread(concertino_mcp.close)
    assert [spec.name for spec in members][:3] == ["mcp/other.ask", "mcp/other.price", "mcp/other.add"]
    assert seen[0].content == {"sum": 5}
    assert seen[1].content == "$4"
    assert (seen[2].status, "nobody sells plums" in str(seen[2].error)) == (ct.Status.EXEC_ERR, True)
    assert seen[3].content["answer"] == ANSWER
    assert "[image " in seen[4].content


# -- over stdio --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("revision", REVISIONS)
async def test_over_stdio_calls_are_made_cancelled_and_on_record(revision: str, tmp_path: Path) -> None:
    running = tmp_path / "running"
    command = StdioServerParameters(command=sys.executable, args=[str(SCRIPT), str(tmp_path)])
    async with Client(command, mode=REVISIONS[revision]) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        added = await client.call_tool("add", {"a": 2, "b": 3})
        told = await client.call_tool("ask", {"question": "How much is it?"})
        waiting = asyncio.create_task(client.call_tool("wait", {}))
        await wait_until(running.exists)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await wait_until(lambda: not running.exists())
        left = asyncio.create_task(client.call_tool("wait", {}))
        await wait_until(running.exists)
    await asyncio.gather(left, return_exceptions=True)
    await wait_until(lambda: not running.exists())
    assert names == ["ask", "wait", "add"]
    assert added.structured_content == {"sum": 5}
    assert text_of(told) == "It is 5."
    stops = Counter(run.stop for run in ct.Runs(tmp_path / "runs").list())
    assert stops == {"answered": 2, "cancelled": 2}


@pytest.mark.slow
async def test_the_command_serves_a_client_that_starts_it(tmp_path: Path) -> None:
    copy_example(tmp_path)
    command = ["-m", "concertino", "serve", "serve.toml", "--stdio"]
    async with Client(StdioServerParameters(command=sys.executable, args=command, cwd=tmp_path)) as client:
        done = await client.call_tool("calculate", {"expression": "6*3"})
    assert text_of(done) == "18"
    assert len(ct.Runs(tmp_path / "runs").list()) == 1


# -- the example of the page -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_example_of_the_page_asks_a_pool_over_mcp(tmp_path: Path) -> None:
    with example_served(tmp_path) as told:
        asked = [sys.executable, EXAMPLES / "use_mcp.py", f"{told['address']}/mcp"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("tools: ask, "), done.stderr
    assert lines[1] == "calculate: 18"
    assert any(line.startswith("progress: ") for line in lines)
    assert lines[-1].startswith("answer: ")
