"""Long calls as tasks: they outlive their connection and a stop of the server, and nobody else sees them."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from concertino.core.known_secrets import Secret
from concertino_serve.mcp_server import McpService
from concertino_serve.mcp_tasks import TASKS
from concertino_serve.request_record import RequestRecord
from concertino_serve.serve_settings import ClientKey, McpOffer
from concertino_serve.web_app import serving_of
from mcp.client.client import Client
from waiting import wait_until

from .serving_here import served
from .serving_mcp import ANSWER, Members, asked, begun_by_hand, call_of, connected, mcp_settings, request_of
from .test_serve_killed import WORDS, Killed

AT_ONCE = McpOffer(task_seconds=0.0)
ADA, BOB = Secret("ada-canary-0123456789"), Secret("bob-canary-0123456789")


async def begun(url: str, tool: str = "wait", arguments: Any = None, **headers: str) -> dict[str, Any]:
    told = await asked(url, call_of(tool, arguments or {}, extensions=[TASKS]), **headers)
    found: dict[str, Any] = told["result"]
    return found


async def got(url: str, task: str, method: str = "tasks/get", **headers: str) -> dict[str, Any]:
    found: dict[str, Any] = await asked(url, request_of(method, extensions=[TASKS], taskId=task), **headers)
    return found


async def test_a_long_call_becomes_a_task_whose_result_is_read_later(tmp_path: Path) -> None:
    members = Members()
    async with served(mcp_settings(tmp_path, members, AT_ONCE)) as here:
        task = await begun(here.url)
        assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", None)
        assert (await got(here.url, task["taskId"]))["result"]["status"] == "working"
        members.go_on.set()
        await wait_until(lambda: not here.app.serving.hub.active)
        found = (await got(here.url, task["taskId"]))["result"]
    assert (found["resultType"], found["status"]) == ("complete", "completed")
    assert found["result"]["content"] == [{"type": "text", "text": "waited"}]


async def test_a_quick_call_and_a_client_that_reads_no_tasks_get_the_result_itself(tmp_path: Path) -> None:
    members = Members()
    members.go_on.set()
    async with served(mcp_settings(tmp_path, members)) as here:
        assert (await begun(here.url))["resultType"] == "complete"
    async with served(mcp_settings(tmp_path, members, AT_ONCE)) as here, connected(here, "2026-07-28") as client:
        assert not (await client.call_tool("wait", {})).is_error


async def test_that_tasks_can_be_read_is_said(tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here:
        told = await asked(here.url, request_of("server/discover"))
    assert TASKS in told["result"]["capabilities"]["extensions"]


async def test_a_cancelled_task_stops(tmp_path: Path) -> None:
    members = Members()
    async with served(mcp_settings(tmp_path, members, AT_ONCE)) as here:
        task = (await begun(here.url))["taskId"]
        await wait_until(lambda: members.running)
        assert "error" not in await got(here.url, task, "tasks/cancel")
        await wait_until(lambda: not members.running)
        assert (await got(here.url, task))["result"]["status"] == "cancelled"
        assert "error" not in await got(here.url, task, "tasks/cancel")


async def test_a_task_is_there_for_its_own_key_alone(tmp_path: Path) -> None:
    keys = (ClientKey("ada", ADA), ClientKey("bob", BOB))
    async with served(mcp_settings(tmp_path, Members(), AT_ONCE, keys=keys)) as here:
        task = (await begun(here.url, authorization=f"Bearer {str.__str__(ADA)}"))["taskId"]
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            refused = await got(here.url, task, method, authorization=f"Bearer {str.__str__(BOB)}")
            assert refused["error"]["code"] == -32602
        assert (await got(here.url, task, authorization=f"Bearer {str.__str__(ADA)}"))["result"]["status"] == "working"


@pytest.mark.parametrize("name", ["none", "../../etc/passwd", "", "x" * 100_000])
async def test_a_task_that_is_not_there_is_an_error(name: str, tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here:
        assert (await got(here.url, name))["error"]["code"] == -32602


async def test_a_task_goes_on_at_the_next_start_and_a_call_without_one_does_not(tmp_path: Path) -> None:
    members = Members()
    settings = mcp_settings(tmp_path, members, AT_ONCE)
    async with served(settings, drain=0) as here:
        task = (await begun(here.url))["taskId"]
        writer = await begun_by_hand(here.url, "2026-07-28", "wait")
        await wait_until(lambda: members.running == 2)
    writer.close()
    async with served(replace(settings)) as here:
        await wait_until(lambda: members.running)
        assert here.app.serving.hub.active == 1
        members.go_on.set()
        await wait_until(lambda: not here.app.serving.hub.active)
        found = (await got(here.url, task))["result"]
        assert found["result"]["content"][0]["text"] == "waited"
        async with here.client() as client:
            (call, _) = (await client.responses.retrieve(task)).output
            assert (call.type, call.error, call.output) == ("mcp_call", None, "waited")
        runs = {run.id == task: run.state for run in here.app.serving.hub.runs.list()}
    assert runs == {True: "ended", False: "interrupted"}


@pytest.mark.slow
async def test_a_task_outlives_a_kill_and_pays_nothing_twice(tmp_path: Path) -> None:
    server = Killed(tmp_path)
    await server.start()
    task = (await begun(server.url, "ask", {"question": "I am client-1."}))["taskId"]
    await wait_until(server.paid)
    server.stop(signal.SIGKILL)
    await server.start()
    try:
        found = (await got(server.url, task))["result"]
        while found["status"] == "working":
            found = (await got(server.url, task))["result"]
    finally:
        server.stop(signal.SIGTERM)
    assert found["result"]["structuredContent"]["answer"] == f"client-1: {WORDS}"
    assert server.calls() == ["client-1 begins", "client-1 ends"]


async def test_a_server_of_one_client_leaves_no_run_to_later_starts(tmp_path: Path) -> None:
    members = Members()
    serving = serving_of(mcp_settings(tmp_path, members, AT_ONCE))
    async with Client(McpService(serving).server) as client:
        call = asyncio.create_task(client.call_tool("wait", {}))
        await wait_until(lambda: members.running)
        (run,) = serving.hub.runs.list()
        await serving.hub.close(for_good=True)
        await asyncio.gather(call, return_exceptions=True)
    assert not RequestRecord.read(run.path).goes_on
    assert RequestRecord.read(run.path).closed


async def test_a_question_may_be_a_task_too(tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members(), AT_ONCE)) as here:
        task = (await begun(here.url, "ask", {"question": "What does it cost?"}))["taskId"]
        await wait_until(lambda: not here.app.serving.hub.active)
        found = (await got(here.url, task))["result"]
    assert found["result"]["structuredContent"]["answer"] == ANSWER
