"""Who reaches the pool over MCP, with how much, what is refused, and what nobody is told."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.known_secrets import Secret, keep_secret
from concertino_serve.serve_settings import ClientKey, Limits

from .serving_here import served
from .serving_mcp import (
    Members,
    answered,
    asked,
    call_of,
    connected,
    mcp_settings,
    posted,
    request_of,
    text_of,
)

both = pytest.mark.parametrize("revision", [pytest.param("2025-11-25", marks=pytest.mark.slow), "2026-07-28"])
ADA, BOB = Secret("ada-canary-0123456789"), Secret("bob-canary-0123456789")

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


MALFORMED = [
    b"{",
    b"[]",
    b"null",
    b"[" * 50_000,
    b"\xff\xfe",
    b'{"jsonrpc": "2.0", "id": 1, "method": 7}',
    b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}',
    json.dumps(request_of("tools/call", name=7)).encode(),
    json.dumps(call_of("price", [1])).encode(),
    json.dumps(call_of("../../etc/passwd", {})).encode(),
    json.dumps(call_of("x" * 100_000, {})).encode(),
    b'{"jsonrpc": "2.0", "id": 1' + b"0" * 5000 + b', "method": "tools/list"}',
]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28", "1999-01-01", "x" * 5000], ids=lambda each: each[:12])
async def test_what_is_malformed_is_refused_and_the_server_goes_on(revision: str, tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here:
        for body in MALFORMED:
            status, _, said = await answered(here.url, posted(body, mcp_protocol_version=revision))
            assert 400 <= status < 500, body[:80]
            assert b"Traceback" not in said
            assert str(tmp_path).encode() not in said
        assert not here.app.serving.hub.runs.list()
        assert "result" in await asked(here.url, request_of("tools/list"))


async def test_half_a_letter_in_an_argument_breaks_nothing(tmp_path: Path) -> None:
    async with served(mcp_settings(tmp_path, Members())) as here:
        told = await asked(here.url, call_of("price", {"fruit": "kiwi \ud800"}))
    assert told["result"]["content"]


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
            given = ({"text": "fail"}, {"text": "say"}, {"text": f"{canary} {key}"}, {"none": canary})
            done = [await client.call_tool("leak", arguments) for arguments in given]
            done.append(await client.call_tool("ask", {"question": f"Is it {canary}?"}))
    seen = "".join(each.model_dump_json() for each in done)
    assert len(list_of(tmp_path)) >= 10
    kept = b"".join(map(Path.read_bytes, list_of(tmp_path)))
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("concertino", "mcp.server"))]
    assert canary not in seen
    assert canary.encode() not in kept
    assert canary not in "".join(ours)
    assert key not in "".join(ours)
