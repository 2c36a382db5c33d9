"""Calls of a real server, over stdio and over HTTP: results, failures, deadlines, notifications."""

from __future__ import annotations

import asyncio
import logging
import mimetypes
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import concertino as ct
import concertino_mcp
import pytest
from concertino import Status
from concertino.core.events import Progressed
from concertino.testing import ScriptedModel
from concertino_mcp.members.content import to_content
from concertino_mcp.members.tool import PROGRESS_CHARS

from .conftest import HttpServer, Members, bare, code, open_members, read

IMAGE = ct.Image(b"\x89PNG" + bytes(96), name="image.png", media_type="image/png")
"""What the server shows, with the two below."""
SUFFIX = mimetypes.guess_extension("audio/wav") or ""
AUDIO = ct.Audio(b"RIFF" + bytes(96), name=f"audio{SUFFIX}", media_type="audio/wav")
FILE = ct.File(b"blob" + bytes(96), name="b.bin", media_type="application/octet-stream")
SHOW = '<reasoning>look</reasoning>\n<tool_call>{"name": "s_show", "arguments": {}}</tool_call>'
FINAL = '<reasoning>done</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'


@pytest.fixture(params=["stdio", "http"])
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The same server over both transports."""
    if request.param == "stdio":
        return dict(request.getfixturevalue("full"))
    return {"url": request.getfixturevalue("http_server").url, "start_timeout": 60.0}


@pytest.fixture
def heard(request: pytest.FixtureRequest, options: dict[str, Any], notes: Path) -> Path:
    """What the server noted."""
    return request.getfixturevalue("http_server").notes if "url" in options else notes


async def _until(condition: Any, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


async def test_results_failures_and_contents_go_through(options: dict[str, Any]) -> None:
    members = await open_members(**options)
    seen = await members.call("echo", text="grüße")
    assert (seen.status, seen.content) == (Status.OK, "grüße")
    seen = await members.call("add", a=2, b=3)
    assert (seen.status, seen.content) == (Status.OK, {"result": 5})
    assert (await members.call("show")).content == (
        f"Look:\n\n{IMAGE.mark}\n\n{AUDIO.mark}\n\n[resource: file:///a.txt, text/plain]\ninside\n\n"
        f"[resource: file:///b.bin]\n{FILE.mark}\n\n[link: file:///c.txt (The third), text/plain, 1,200 bytes]"
    )
    seen = await members.call("refuse", why="it rains")
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "tool_error")
    assert "it cannot be done: it rains" in (seen.error.message if seen.error else "")
    assert seen.content == "it cannot be done: it rains"
    seen = await members.call("object_to")
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "mcp_error")
    assert "MCP error -32050: no such record" in (seen.error.message if seen.error else "")
    seen = await members.call("add", a=2, b="three")
    assert (seen.status, code(seen), seen.attempts) == (Status.PARSE_ERR, "invalid_arguments", 0)


async def test_a_model_is_shown_the_images_audio_and_files_of_an_answer(full: dict[str, Any]) -> None:
    members = await open_members(**full)
    leader = ScriptedModel(SHOW, FINAL, "<answer>seen</answer>")
    run = await ct.Orchestrator(leader).run("What is there?", pool=members.pool)
    assert run.answer == "seen"
    (shown,) = [message for message in leader.requests[1].messages if IMAGE.mark in message.text]
    assert list(shown.attachments) == [IMAGE, AUDIO, FILE]
    assert [(each.kind, each.name, each.media_type) for each in shown.attachments] == [
        ("image", "image.png", "image/png"),
        ("audio", AUDIO.name, "audio/wav"),
        ("file", "b.bin", "application/octet-stream"),
    ]
    assert shown.attachments[0].data == IMAGE.data
    assert run.attachments == [IMAGE, AUDIO, FILE]


async def test_an_image_beside_data_with_a_schema_is_shown_with_the_data(full: dict[str, Any]) -> None:
    members = await open_members(**full)
    ask = '<reasoning>look</reasoning>\n<tool_call>{"name": "s_measure", "arguments": {}}</tool_call>'
    leader = ScriptedModel(ask, FINAL, "<answer>seen</answer>")
    run = await ct.Orchestrator(leader).run("How cold is it?", pool=members.pool)
    assert members.pool["mcp/s.measure"].output_schema["additionalProperties"] is False
    assert run.observations[0].content == {"celsius": 4.5, "attachments": IMAGE.mark}
    (shown,) = [message for message in leader.requests[1].messages if IMAGE.mark in message.text]
    assert list(shown.attachments) == [IMAGE]
    described = await (await open_members(**full, binary="describe")).call("measure")
    assert described.content == {"celsius": 4.5}


async def test_binary_parts_are_described_where_that_is_asked_for(options: dict[str, Any]) -> None:
    members = await open_members(**options, binary="describe")
    assert (await members.call("show")).content == (
        "Look:\n\n[image: image/png, 100 bytes]\n\n[audio: audio/wav, 100 bytes]\n\n"
        "[resource: file:///a.txt, text/plain]\ninside\n\n[resource: file:///b.bin, 100 bytes]\n\n"
        "[link: file:///c.txt (The third), text/plain, 1,200 bytes]"
    )


@pytest.mark.parametrize(
    ("data", "mime_type", "text"),
    [
        ("", "image/png", "[image: image/png, 0 bytes]"),
        ("no base64!", "image/png", "[image: image/png, 7 bytes]"),
        ("AAAA", "text/strange", "[file file "),
        ("AAAA", "", "[file file "),
    ],
)
def test_an_image_that_is_none_is_described_or_is_a_file(data: str, mime_type: str, text: str) -> None:
    block = SimpleNamespace(type="image", data=data, mime_type=mime_type)
    answer: Any = SimpleNamespace(structured_content=None, content=[block])
    content = to_content(answer, structured=False, binary="attach")
    assert (content.content if isinstance(content, ct.Result) else content).startswith(text)


async def test_binary_data_is_kept_where_it_is_asked_for(options: dict[str, Any]) -> None:
    members = await open_members(**options, binary="data")
    content = (await members.call("show")).content
    assert content["text"].startswith("Look:")
    assert [(part["type"], part["mime_type"], len(part["data"])) for part in content["parts"]] == [
        ("image", "image/png", 136),
        ("audio", "audio/wav", 136),
        ("resource", "", 136),
    ]
    assert (await members.call("echo", text="plain")).content == "plain"


async def test_a_deadline_is_a_timeout_and_the_server_hears_of_it(options: dict[str, Any], heard: Path) -> None:
    members = await open_members(**options)
    before = read(heard).count("wait was cancelled")
    short = Members([spec.with_(timeout=0.6) for spec in members.specs.values()])
    seen = await short.call("wait", seconds=30)
    assert (seen.status, code(seen)) == (Status.TIMEOUT, "deadline")
    await _until(lambda: read(heard).count("wait was cancelled") == before + 1)
    assert (await members.call("echo", text="still there")).content == "still there"


async def test_cancelling_the_run_reaches_the_server(options: dict[str, Any], heard: Path) -> None:
    members = await open_members(**options)
    counts = [read(heard).count(word) for word in ("wait began", "wait was cancelled")]
    task = asyncio.create_task(members.call("wait", seconds=30))
    await _until(lambda: read(heard).count("wait began") > counts[0])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _until(lambda: read(heard).count("wait was cancelled") == counts[1] + 1)


async def test_progress_and_log_messages_are_logged(options: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    members = await open_members(**options)
    with caplog.at_level(logging.DEBUG, "concertino.mcp"):
        assert (await members.call("wait", seconds=0.3)).content == "waited"
        await _until(lambda: "s.wait: progress 3 of 3" in caplog.text)
        assert (await members.call("log", text="watch out")).content == "logged"
        await _until(lambda: "s/inner: watch out" in caplog.text)
    assert [r.levelname for r in caplog.records if "watch out" in r.getMessage()] == ["WARNING"]


async def test_whoever_watches_a_run_is_told_of_progress(options: dict[str, Any]) -> None:
    members = await open_members(**options)
    told: list[Progressed] = []

    def listen(event: Any) -> None:
        if isinstance(event, Progressed):
            told.append(event)

    async with ct.Executor() as executor:
        plan = [ct.Call("mcp/s.wait", {"seconds": 0.5})]
        (seen,) = await executor.run(plan, members.pool, listeners=[listen])
        await _until(lambda: told and told[-1].done == 5)
    assert seen.ok
    assert {(event.call_id, event.name, event.total) for event in told} == {(seen.call_id, "mcp/s.wait", 5)}
    assert [event.done for event in told] == sorted({event.done for event in told})
    assert told[-1].message == "step 5"
    assert len(told) >= 2


async def test_progress_that_is_no_number_or_never_ends_is_not_passed_on_as_it_is() -> None:
    members = await open_members(**bare())
    told: list[Progressed] = []
    async with ct.Executor() as executor:
        listeners = [lambda event: told.append(event) if isinstance(event, Progressed) else None]
        (seen,) = await executor.run([ct.Call("mcp/s.boast", {})], members.pool, listeners=listeners)
        await _until(lambda: told)
    assert seen.content == "boasted"
    assert [(event.done, event.total, len(event.message)) for event in told] == [(1, 1, PROGRESS_CHARS)]


async def test_annotations_decide_on_writing_and_repeating(options: dict[str, Any]) -> None:
    members = await open_members(**options)
    effects = {name: (spec.writes, spec.retry_safe) for name, spec in members.specs.items()}
    assert effects["echo"] == (False, True)
    assert effects["put"] == (True, True)
    assert effects["append"] == (True, False)
    members = await open_members(**options, writes={"append": False, "e*": True})
    assert (members["append"].writes, members["echo"].writes, members["put"].writes) == (False, True, True)


async def test_writing_calls_of_a_plan_run_in_their_order(options: dict[str, Any], heard: Path) -> None:
    members = await open_members(**options)
    lines = [f"{options.get('url', '')}{number}" for number in range(20)]
    await members.call_all(*(("append", {"text": line}) for line in lines))
    assert [line for line in read(heard).splitlines() if line in lines] == lines


async def test_a_changed_list_of_tools_is_seen_by_a_later_pool(options: dict[str, Any]) -> None:
    members = await open_members(**options)
    if "grown" in members.specs:
        pytest.fail("the server was to be fresh")
    await members.call("grow")

    async def grown() -> bool:
        return "grown" in (await open_members(**options)).specs

    for _ in range(100):
        if await grown():
            break
        await asyncio.sleep(0.05)
    assert (await (await open_members(**options)).call("grown")).content == "grown"


async def test_calls_come_from_any_event_loop_and_any_thread(options: dict[str, Any]) -> None:
    members = await open_members(**options)

    def elsewhere(number: int) -> Any:
        return asyncio.run(members.call("echo", text=str(number))).content

    found = await asyncio.gather(*(asyncio.to_thread(elsewhere, number) for number in range(8)))
    assert found == [str(number) for number in range(8)]


async def test_many_calls_at_once_are_all_answered(options: dict[str, Any]) -> None:
    members = await open_members(**options)
    count = 64
    found = await members.call_all(*(("echo", {"text": str(number)}) for number in range(count)))
    assert [seen.content for seen in found] == [str(number) for number in range(count)]


async def test_concurrency_bounds_the_calls_at_the_server(full: dict[str, Any]) -> None:
    members = await open_members(**full, concurrency=2)
    began = time.monotonic()
    found = await members.call_all(*(("wait", {"seconds": 0.3}) for _ in range(6)))
    assert all(seen.ok for seen in found)
    assert time.monotonic() - began >= 0.85


# -- HTTP alone --------------------------------------------------------------------------------------------------------


async def test_headers_come_from_the_environment(http_server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"url": http_server.url, "headers_env": {"Authorization": "MCP_TEST_TOKEN"}}
    monkeypatch.delenv("MCP_TEST_TOKEN", raising=False)
    with pytest.raises(concertino_mcp.McpServerError, match=r"MCP_TEST_TOKEN \(headers_env.Authorization\) is not set"):
        await open_members(**options)
    monkeypatch.setenv("MCP_TEST_TOKEN", "secret")
    assert (await (await open_members(**options)).call("echo", text="in")).ok


async def test_nobody_at_the_address_is_a_reason_within_bounded_time() -> None:
    with pytest.raises(concertino_mcp.McpServerError, match="ConnectError"):
        await open_members(url="http://127.0.0.1:9/mcp")


async def test_an_address_without_mcp_is_a_reason(http_server: HttpServer) -> None:
    with pytest.raises(concertino_mcp.McpServerError, match="HTTP 404"):
        await open_members(url=http_server.url + "/nothing")


@pytest.mark.slow
async def test_a_restarted_http_server_is_found_again(tmp_path: Path) -> None:
    from .conftest import free_port

    server = HttpServer(tmp_path / "notes.txt", free_port())
    server.start()
    try:
        members = await open_members(url=server.url, start_timeout=60.0)
        assert (await members.call("append", text="one")).ok
        server.stop()
        seen = await members.call("append", text="two")
        assert (seen.status, code(seen)) == (Status.EXEC_ERR, "unavailable")
        server.start()
        seen = await members.call("append", text="three")
        assert seen.ok, seen.error
    finally:
        server.stop()
    assert read(server.notes).split() == ["one", "three"]


async def test_an_http_server_that_dies_in_a_call_is_an_unknown_outcome_for_a_writing_tool(tmp_path: Path) -> None:
    from .conftest import free_port

    server = HttpServer(tmp_path / "notes.txt", free_port())
    server.start()
    try:
        members = await open_members(url=server.url, start_timeout=60.0, writes=True, include=["wait"])
        task = asyncio.create_task(members.call("wait", seconds=20))
        await _until(lambda: "wait began" in read(server.notes))
        server.stop()
        seen = await asyncio.wait_for(task, 30)
        assert seen.status is Status.EXEC_ERR
        assert code(seen) in ("unknown_outcome", "mcp_error")
    finally:
        server.stop()
    assert isinstance(seen, ct.Observation)
