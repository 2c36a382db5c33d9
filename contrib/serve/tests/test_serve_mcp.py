"""The pool as an MCP server over HTTP, with the official client of both revisions."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.known_secrets import keep_secret
from concertino_serve.serve_settings import ClientKey, Limits, McpOffer, Secret
from mcp.shared.exceptions import MCPError
from waiting import wait_until

from .serving_here import served
from .serving_mcp import ANSWER, PNG, REVISIONS, Members, connected, mcp_settings

both = pytest.mark.parametrize("revision", REVISIONS)
ADA, BOB = Secret("ada-canary-0123456789"), Secret("bob-canary-0123456789")


def text_of(result: Any) -> str:
    return str(result.content[0].text)


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


# -- who gets in -------------------------------------------------------------------------------------------------------


async def test_without_the_table_there_is_no_mcp(tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members(), mcp=None)) as here:
        assert (await answered(here.url, posted({})))[0] == 404


async def test_without_a_right_key_nothing_is_answered(tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members(), keys=(ClientKey("ada", ADA),))) as here:
        for given in ({}, {"authorization": "Bearer wrong"}):
            status, _, body = await answered(here.url, posted({}, **given))
            assert status == 401
            assert ADA.encode() not in body
        async with connected(here, "2026-07-28", ADA) as client:
            assert text_of(await client.call_tool("price", {"fruit": "kiwi"})) == "$4"


async def test_a_session_belongs_to_the_key_that_began_it(tmp_path: Path) -> None:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    keys = (ClientKey("ada", ADA), ClientKey("bob", BOB))
    async with served(mcp_settings(tmp_path, Members(), keys=keys)) as here:
        _, headers, _ = await answered(here.url, posted(hello, authorization=f"Bearer {ADA}"))
        session = {"mcp_session_id": headers["mcp-session-id"], "mcp_protocol_version": "2025-11-25"}
        assert (await answered(here.url, posted(listed, authorization=f"Bearer {BOB}", **session)))[0] == 404
        assert (await answered(here.url, posted(listed, authorization=f"Bearer {ADA}", **session)))[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_length": "99999"}, 408),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
async def test_the_gate_of_the_server_holds_for_mcp(headers: Any, status: int, tmp_path: Path) -> None:
    settings = mcp_settings(tmp_path, Members(), limits=Limits(body_seconds=0.2))
    async with served(settings) as here:
        assert (await answered(here.url, posted({}, **headers)))[0] == status


async def test_a_body_that_is_too_long_is_refused(tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members(), limits=Limits(body_bytes=2000))) as here:
        assert (await answered(here.url, posted(b" " * 5000)))[0] == 413


@both
async def test_limits_of_a_key_hold_for_calls_of_tools(revision: str, tmp_path: Path) -> None:
    members = Members()
    keys = (ClientKey("ada", ADA, per_minute=1),)
    async with served(mcp_settings(tmp_path, members, keys=keys)) as here, connected(here, revision, ADA) as client:
        assert not (await client.call_tool("price", {"fruit": "kiwi"})).is_error
        refused = await client.call_tool("price", {"fruit": "kiwi"})
    assert refused.is_error
    assert refused.meta is not None
    assert refused.meta["concertino/code"] == "rate_limit_exceeded"
    assert 50 < refused.meta["concertino/retry-after"] <= 60
    assert members.calls == ["price"]


async def test_a_call_spends_no_more_than_the_budget_of_its_preset(tmp_path: Path) -> None:
    settings = mcp_settings(tmp_path, Members(), preset={"budget": ct.Budget(usd=0.1)})
    async with served(settings) as here, connected(here, "2026-07-28") as client:
        done = await client.call_tool("wait", {})
    assert done.is_error
    assert "budget" in text_of(done)


# -- malformed ---------------------------------------------------------------------------------------------------------


def call_of(**params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": META, **params}}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28", "1999-01-01", "x" * 5000])
@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b"[" * 50_000,
        b"\xff\xfe",
        b'{"jsonrpc": "2.0", "id": 1, "method": 7}',
        b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}',
        json.dumps(call_of(name=7)).encode(),
        json.dumps(call_of(name="price", arguments=[1])).encode(),
        json.dumps(call_of(name="../../etc/passwd", arguments={})).encode(),
        json.dumps(call_of(name="x" * 100_000, arguments={})).encode(),
        b'{"jsonrpc": "2.0", "id": 1' + b"0" * 5000 + b', "method": "tools/list"}',
    ],
    ids=range(13),
)
async def test_what_is_malformed_is_refused_and_the_server_goes_on(body: bytes, revision: str, tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here:
        status, _, said = await answered(here.url, posted(body, mcp_protocol_version=revision))
        assert 400 <= status < 500
        assert b"Traceback" not in said
        assert str(tmp_path).encode() not in said
        assert not here.app.serving.hub.runs.list()
        assert (await answered(here.url, b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"))[
            0
        ] == 200


async def test_half_a_letter_in_an_argument_breaks_nothing(tmp_path: Path) -> None:
    asked = posted(
        call_of(name="price", arguments={"fruit": "kiwi \ud800"}),
        mcp_protocol_version="2026-07-28",
        mcp_method="tools/call",
        mcp_name="price",
    )
    async with served(mcp_settings(tmp_path, Members())) as here:
        status, _, body = await answered(here.url, asked)
    assert status == 200
    assert json.loads(body)["result"]["content"]


# -- secrets -----------------------------------------------------------------------------------------------------------


def list_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@both
async def test_no_secret_is_in_an_answer_a_log_or_a_file(
    revision: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    canary, key = "mcp-canary-7Qx42-Yb93", "ada-canary-0123456789"
    keep_secret(canary)
    keep_secret(key)

    @ct.tool
    async def leak(text: str) -> dict[str, str]:
        """Say a secret, or fail with it."""
        if text == "fail":
            raise ValueError(f"bad key {canary}")
        return {"said": f"the key is {canary}"}

    settings = mcp_settings(tmp_path, Members(), keys=(ClientKey("ada", ADA),))
    preset = settings.presets["helper"]
    object.__setattr__(preset, "pool", preset.pool.adding(leak))
    with caplog.at_level(logging.DEBUG):
        async with served(settings) as here, connected(here, revision, ADA) as client:
            asked = ({"text": "fail"}, {"text": "say"}, {"text": f"{canary} {key}"}, {"none": canary})
            done = [await client.call_tool("leak", arguments) for arguments in asked]
            done.append(await client.call_tool("ask", {"question": f"Is it {canary}?"}))
    seen = "".join(each.model_dump_json() for each in done)
    assert len(list_of(tmp_path)) >= 10
    kept = b"".join(map(Path.read_bytes, list_of(tmp_path)))
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("concertino", "mcp.server"))]
    assert canary not in seen
    assert canary.encode() not in kept
    assert canary not in "".join(ours)
    assert key not in "".join(ours)
