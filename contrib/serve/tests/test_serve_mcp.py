"""The pool as an MCP server over HTTP, with the official client of both revisions."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.events import CallStarted, Event, Progressed
from concertino.core.known_secrets import Secret
from concertino_serve.mcp_progress import ProgressWatch
from concertino_serve.serve_settings import ClientKey, McpOffer
from mcp.shared.exceptions import MCPError
from waiting import wait_until

from .serving_here import served
from .serving_mcp import ANSWER, PNG, REVISIONS, Members, begun_by_hand, connected, mcp_settings, text_of

both = pytest.mark.parametrize("revision", [pytest.param("2025-11-25", marks=pytest.mark.slow), "2026-07-28"])
ADA = Secret("ada-canary-0123456789")


# -- what is there -----------------------------------------------------------------------------------------------------


@both
async def test_every_member_is_a_tool_with_its_schema_and_ask_stands_first(revision: str, tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here, connected(here, revision) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert client.protocol_version == revision
    assert list(tools) == ["ask", "price", "add", "count", "picture", "wait", "buyer"]
    assert tools["price"].input_schema["properties"]["fruit"]["type"] == "string"
    assert tools["price"].description == "What a kilo costs."
    assert tools["add"].output_schema is not None
    assert tools["add"].output_schema["properties"]["sum"]["type"] == "integer"


async def test_a_schema_of_results_that_is_no_object_is_told_to_those_who_may_read_it(tmp_path: Path) -> None:
    told = {}
    async with served(mcp_settings(tmp_path, Members())) as here:
        for revision in REVISIONS:
            async with connected(here, revision) as client:
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
                done = await client.call_tool("count", {"upto": 3})
                told[revision] = tools["count"].output_schema, done.structured_content, text_of(done)
    assert told["2025-11-25"] == (None, None, "[0, 1, 2]")
    assert told["2026-07-28"][0]["type"] == "array"
    assert told["2026-07-28"][1:] == ([0, 1, 2], "[0, 1, 2]")


async def test_only_the_chosen_members_are_tools(tmp_path: Path) -> None:
    settings = mcp_settings(tmp_path, Members(), McpOffer(members=("add", "pay")))
    async with served(settings) as here, connected(here, "2026-07-28") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask", "add"]
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("price", {"fruit": "kiwi"})


# -- calls -------------------------------------------------------------------------------------------------------------


@both
async def test_a_call_gives_its_result_as_data_and_as_text(revision: str, tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here, connected(here, revision) as client:
        added = await client.call_tool("add", {"a": 2, "b": 3})
        priced = await client.call_tool("price", {"fruit": "kiwi"})
        drawn = await client.call_tool("picture", {})
    assert (added.structured_content, json.loads(text_of(added))) == ({"sum": 5}, {"sum": 5})
    assert (priced.structured_content, text_of(priced), priced.is_error) == (None, "$4", False)
    assert drawn.content[1].type == "image"
    assert base64.b64decode(drawn.content[1].data) == PNG


@both
async def test_a_question_is_answered_by_the_whole_pool(revision: str, tmp_path: Path) -> None:
    members = Members()
    async with served(mcp_settings(tmp_path, members)) as here, connected(here, revision) as client:
        done = await client.call_tool("ask", {"question": "What does it cost?"})
    assert text_of(done) == ANSWER
    assert done.structured_content is not None
    assert done.structured_content | {"usd": 0} == {"answer": ANSWER, "stop": "answered", "calls": 1, "usd": 0}
    assert done.structured_content["usd"] > 0.01
    assert members.calls == ["price"]


@both
@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("price", {"fruit": "plum"}, "raised"),
        ("price", {"fruits": "kiwi"}, "invalid_arguments"),
        ("ask", {}, "invalid_value"),
        ("ask", {"question": " "}, "invalid_value"),
        ("ask", {"question": "?", "model": "none"}, "model_not_found"),
        ("ask", {"question": "?", "more": 1}, "invalid_value"),
    ],
)
async def test_a_failure_is_told_to_the_model_that_called(
    revision: str, name: str, arguments: dict[str, Any], code: str, tmp_path: Path
) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here, connected(here, revision) as client:
        done = await client.call_tool(name, arguments)
    assert done.is_error
    assert done.meta is not None
    assert done.meta["concertino/code"] == code, text_of(done)


@both
async def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(revision: str, tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here, connected(here, revision) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("none", {})
    assert refused.value.error.code == -32602


@both
async def test_every_call_is_a_run_on_record(revision: str, tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here, connected(here, revision) as client:
        done = await client.call_tool("price", {"fruit": "kiwi"})
        assert done.meta is not None
        run = here.app.serving.hub.runs.get(done.meta["concertino/run"])
        async with here.client() as other:
            read = await other.responses.retrieve(run.id)
    assert (run.state, run.answer, run.usage["usd"]) == ("ended", "$4", 0.01)
    assert json.loads(run.question) == {"name": "price", "arguments": {"fruit": "kiwi"}}
    assert [item.type for item in read.output] == ["mcp_call", "message"]


@pytest.mark.slow
@both
async def test_fifty_calls_at_once_get_each_its_own_result(revision: str, tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here, connected(here, revision) as client:
        done = await asyncio.gather(*(client.call_tool("add", {"a": each, "b": 1}) for each in range(50)))
        assert here.app.serving.ring.running == 0
    assert [each.structured_content for each in done] == [{"sum": each + 1} for each in range(50)]


# -- approval ----------------------------------------------------------------------------------------------------------


@both
async def test_a_member_that_needs_approval_is_open_only_where_the_settings_say_so(
    revision: str, tmp_path: Path
) -> None:
    members = Members()
    async with served(mcp_settings(tmp_path / "a", members)) as here, connected(here, revision) as client:
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("pay", {"usd": 1.0})
    assert members.calls == []
    settings = mcp_settings(tmp_path / "b", members, McpOffer(approved=("pay",)))
    async with served(settings) as here, connected(here, revision) as client:
        assert text_of(await client.call_tool("pay", {"usd": 1.0})) == "paid"


# -- progress ----------------------------------------------------------------------------------------------------------


@both
async def test_progress_of_a_tool_is_told_while_it_works(revision: str, tmp_path: Path) -> None:
    members, told = Members(), []
    members.go_on.set()

    async def hear(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    async with served(mcp_settings(tmp_path, members)) as here, connected(here, revision) as client:
        await client.call_tool("wait", {"steps": 3}, progress_callback=hear)
    assert told == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@both
async def test_steps_of_a_question_are_its_progress(revision: str, tmp_path: Path) -> None:
    told: list[tuple[float, str | None]] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        told.append((done, message))

    async with served(mcp_settings(tmp_path, Members())) as here, connected(here, revision) as client:
        await client.call_tool("ask", {"question": "?"}, progress_callback=hear)
    numbers = [done for done, _ in told]
    assert numbers == sorted(set(numbers))
    assert told[-1][1] in ("price: OK", "price began")


# -- clients that cancel, and clients that go --------------------------------------------------------------------------


@both
async def test_a_cancelled_call_stops_and_gives_back_what_it_held(revision: str, tmp_path: Path) -> None:
    members = Members()
    key = ClientKey("ada", ADA, usd_per_day=1.0)
    settings = mcp_settings(tmp_path, members, keys=(key,), preset={"budget": ct.Budget(usd=0.9)})
    async with served(settings) as here, connected(here, revision, ADA) as client:
        call = asyncio.create_task(client.call_tool("wait", {}))
        await wait_until(lambda: members.running)
        ring = here.app.serving.ring
        assert ring.admit("ada", settings.presets["helper"]).budget.usd == pytest.approx(0.1)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await wait_until(lambda: not members.running and not here.app.serving.hub.active)
        (run,) = here.app.serving.hub.runs.list()
        assert run.stop == "cancelled"
        assert ring.running == 1
        assert not (await client.call_tool("price", {"fruit": "kiwi"})).is_error


@both
async def test_a_client_that_goes_stops_its_calls(revision: str, tmp_path: Path) -> None:
    members = Members()
    async with served(mcp_settings(tmp_path, members)) as here:
        writer = await begun_by_hand(here.url, revision, "wait")
        await wait_until(lambda: members.running)
        writer.close()
        await wait_until(lambda: not members.running and not here.app.serving.hub.active)
        assert [run.stop for run in here.app.serving.hub.runs.list()] == ["cancelled"]


@both
async def test_a_client_that_goes_leaves_its_call_where_the_preset_says_so(revision: str, tmp_path: Path) -> None:
    members = Members()
    settings = mcp_settings(tmp_path, members, preset={"on_disconnect": "continue"})
    async with served(settings) as here:
        writer = await begun_by_hand(here.url, revision, "wait")
        await wait_until(lambda: members.running)
        writer.close()
        await asyncio.sleep(0.1)
        assert members.running == 1
        members.go_on.set()
        await wait_until(lambda: not here.app.serving.hub.active)
        assert [run.stop for run in here.app.serving.hub.runs.list()] == ["answered"]


async def told_of(watch: ProgressWatch, *events: Event) -> list[tuple[float, str]]:
    """What is told of each event, where it is taken at once."""
    found = []
    for event in events:
        watch.hear(event)
        with contextlib.suppress(TimeoutError):
            news = await asyncio.wait_for(watch.next(), 0.01)
            found.append((news.done, news.message))
    return found


def reported(done: float) -> Progressed:
    return Progressed("1.1", "wait", done, None, f"at {done:g}", 0.0)


async def test_the_number_of_a_progress_only_grows() -> None:
    own = await told_of(ProgressWatch(by_steps=False), *map(reported, (1, 3, 2, 3, 4)))
    assert own == [(1, "at 1"), (3, "at 3"), (4, "at 4")]
    began = CallStarted("r", "1.1", "", "price", "tool", {}, 0.0)
    asked = CallStarted("r", "ask.1", "", "m/lead", "model", {}, 0.0)
    steps = await told_of(ProgressWatch(by_steps=True), asked, began, reported(0.5), began)
    assert steps == [(1, "price began"), (2, "wait: at 0.5"), (3, "price began")]


async def test_progress_that_comes_faster_than_it_is_read_is_left_out() -> None:
    watch = ProgressWatch(by_steps=False)
    for done in range(1, 1000):
        watch.hear(reported(done))
    assert (await watch.next()).done == 999
