"""The life of a server: deaths, restarts, rest, the end of its owner; and what bad manners cost."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import concertino_mcp
import pytest
from concertino import Status
from concertino_mcp.sessions import background as loop_module
from concertino_mcp.sessions import lifecycle as life_module
from concertino_mcp.transport.messages import MESSAGE_BYTES

from .conftest import alive, bare, code, guards, open_members, read

linux = pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc")


async def _gone(pid: int, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while alive(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        await asyncio.sleep(0.02)


async def _called(notes: Path, tool: str) -> None:
    """Wait until the server has got a call."""
    for _ in range(3000):
        if f"call {tool}" in read(notes):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"the server got no call of {tool}")


# -- deaths and restarts -----------------------------------------------------------------------------------------------


async def test_a_server_that_dies_in_a_call_fails_that_call_and_the_next_one_works(notes: Path) -> None:
    members = await open_members(**bare(file=notes))
    first = (await members.call("pid")).content
    seen = await members.call("die_writing", text="x")
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "unknown_outcome")
    assert "it ended with exit code 3; the end of its stderr: about to die" in str(seen.content or seen.error)
    assert read(notes).count("call die_writing") == 1, "it may have run, and was repeated"
    seen = await members.call("pid")
    assert seen.ok
    assert seen.content != first
    assert read(notes).count("start") == 2


async def test_only_a_tool_that_may_be_repeated_is_repeated(notes: Path) -> None:
    members = await open_members(**bare(file=notes))
    seen = await members.call("die", text="x")
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "unavailable")
    assert seen.error is not None
    assert seen.error.retryable
    assert read(notes).count("call die") == life_module.ATTEMPTS


async def test_a_killed_server_fails_the_calls_under_way_and_is_started_again(notes: Path) -> None:
    members = await open_members(**bare(file=notes, writes=True))
    pid = int((await members.call("pid")).content)
    waiting = asyncio.create_task(members.call("wait", text="30"))
    await _called(notes, "wait")
    os.kill(pid, signal.SIGKILL)
    seen = await asyncio.wait_for(waiting, 10)
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "unknown_outcome")
    assert "SIGKILL" in str(seen.content or seen.error)
    assert (await members.call("echo", text="again")).content == "again"


async def test_a_server_that_always_dies_is_started_more_and_more_rarely(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life_module, "FIRST_WAIT", 0.05)
    members = await open_members(**bare(file=notes))
    for _ in range(5):
        seen = await members.call("die", text="x")
        assert seen.status is Status.EXEC_ERR
    assert read(notes).count("start") <= life_module.STARTS
    seen = await members.call("echo", text="x")
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "unavailable")
    assert "the next start is tried in" in str(seen.content or seen.error)


@pytest.mark.slow
async def test_the_death_of_one_server_is_no_matter_of_another() -> None:
    bad = await open_members("bad", **bare())
    good = await open_members("good", **bare())
    for _ in range(8):
        await bad.call("die_writing", text="x")
    assert (await good.call("echo", text="fine")).content == "fine"


async def test_calls_that_arrive_together_share_one_start(notes: Path) -> None:
    members = await open_members(**bare(file=notes))
    concertino_mcp.close()
    found = await members.call_all(*(("echo", {"text": str(number)}) for number in range(40)))
    assert [seen.content for seen in found] == [str(number) for number in range(40)]
    assert read(notes).count("start") == 2


async def test_a_server_that_ends_at_an_unknown_method_is_greeted_in_the_old_way(notes: Path) -> None:
    members = await open_members(**bare("old", file=notes))
    assert (await members.call("echo", text="hello")).content == "hello"
    assert read(notes).count("start") == 2


async def test_a_session_without_calls_is_closed_after_a_while(notes: Path) -> None:
    members = await open_members(**bare(file=notes, idle_timeout=0.3))
    pid = int((await members.call("pid")).content)
    await _gone(pid)
    assert (await members.call("echo", text="awake")).content == "awake"
    assert read(notes).count("start") == 2
    assert read(notes).count("list") == 1, "a server that slept has not changed its tools"


async def test_a_changed_list_of_tools_is_read_again_for_a_later_pool(notes: Path) -> None:
    options = bare(file=notes)
    members = await open_members(**options)
    await open_members(**options)
    assert read(notes).count("list") == 1
    assert "grown" not in members.specs
    await members.call("grow", text="x")
    later = await open_members(**options)
    assert (await later.call("grown", text="up")).content == "up"
    assert read(notes).count("list") == 2
    assert read(notes).count("start") == 1


# -- the end -----------------------------------------------------------------------------------------------------------


@linux
async def test_closing_leaves_no_process_thread_or_task() -> None:
    before = set(threading.enumerate())
    members = await open_members(**bare())
    own, child = map(int, (await members.call("children")).content.split())
    assert alive(own)
    assert alive(child)
    concertino_mcp.close()
    assert not alive(own)
    assert not alive(child), "what the server started is left"
    assert guards() == []
    assert [t for t in threading.enumerate() if t not in before and "mcp" in t.name] == []
    concertino_mcp.close()


async def test_a_call_under_way_ends_when_the_sessions_are_closed(notes: Path) -> None:
    members = await open_members(**bare(file=notes, writes=True))
    waiting = asyncio.create_task(members.call("wait", text="30"))
    await _called(notes, "wait")
    await asyncio.to_thread(concertino_mcp.close)
    seen = await asyncio.wait_for(waiting, 10)
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "unknown_outcome")


async def test_a_server_that_does_not_end_with_its_input_is_ended(notes: Path) -> None:
    members = await open_members(**bare("deaf"))
    pid = int((await members.call("pid")).content)
    concertino_mcp.close()
    assert not alive(pid)


_OWNER = """
import asyncio, sys
import concertino_mcp, concertino as ct
specs = concertino_mcp.server("s", command=sys.argv[2:], start_timeout=30.0)
members = {spec.function.tool: spec for spec in specs}
print(asyncio.run(members["children"]({})), flush=True)
if sys.argv[1] == "stay":
    sys.stdin.read()  # until the test closes it
"""


def _owner(how: str) -> tuple[subprocess.Popen[str], int, int]:
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, how, *bare()["command"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert owner.stdout is not None
    own, child = map(int, owner.stdout.readline().split())
    return owner, own, child


@pytest.mark.slow
@linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_a_killed_owner_leaves_no_server(number: signal.Signals) -> None:
    owner, own, child = _owner("stay")
    assert alive(own)
    assert alive(child)
    owner.send_signal(number)
    owner.wait(10)
    await _gone(own)
    await _gone(child)
    owner.communicate()


@linux
def test_an_owner_that_just_ends_leaves_no_server() -> None:
    owner, own, child = _owner("leave")
    assert owner.wait(20) == 0
    assert not alive(own)
    assert not alive(child)
    owner.communicate()


@linux
async def test_a_killed_guard_takes_the_server_with_it() -> None:
    members = await open_members(**bare())
    pid = int((await members.call("pid")).content)
    (guard,) = guards()
    os.kill(guard, signal.SIGKILL)
    await _gone(pid)
    assert (await members.call("echo", text="again")).content == "again"


@linux
@pytest.mark.alone  # a process with threads, as a worker of the test run is, must not fork
async def test_a_forked_child_has_servers_of_its_own(tmp_path: Path) -> None:
    members = await open_members(**bare())
    pid = int((await members.call("pid")).content)
    told = tmp_path / "child"
    child = os.fork()
    if child == 0:
        try:
            own = asyncio.run(members["pid"].function({}))
            told.write_text(str(own))
            concertino_mcp.close()
        finally:
            os._exit(0)
    await asyncio.to_thread(os.waitpid, child, 0)
    assert read(told).isdigit()
    assert int(read(told)) != pid
    await _gone(int(read(told)))
    assert int((await members.call("pid")).content) == pid, "the child's end was the end of the parent's server"


# -- bad manners -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("exit", "it ended with exit code 4; the end of its stderr: cannot open the database"),
        ("garbage", "its standard output is not MCP: it printed 'no JSON at all'"),
        ("endless", "without a line break"),
        ("silent", r"no answer to `initialize` within 2 s \(start_timeout\); the end of its stderr: thinking"),
    ],
)
async def test_a_server_that_is_no_server_is_a_reason_in_bounded_time_and_memory(mode: str, reason: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(concertino_mcp.McpServerError, match=reason):
        await open_members(**bare(mode, start_timeout=2.0 if mode == "silent" else 20.0))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000, "kilobytes"


@pytest.mark.slow
async def test_a_server_that_reads_no_more_ends_calls_at_their_deadline_and_is_closed() -> None:
    members = await open_members(**bare("blocked", timeout=1.0))
    seen = await members.call("echo", text="x" * 1_000_000)
    assert seen.status is Status.TIMEOUT
    assert (await members.call("echo", text="y")).status is Status.TIMEOUT
    concertino_mcp.close()


async def test_banners_and_a_flood_of_errors_do_not_matter() -> None:
    members = await open_members(**bare("noisy"))
    assert (await members.call("echo", text="x")).content == "x"


@pytest.mark.slow
async def test_a_result_that_is_too_large_fails_its_call_alone() -> None:
    members = await open_members(**bare())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    waiting = asyncio.create_task(members.call("wait", text="2"))
    seen = await members.call("large", bytes=20_000_000)
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "bad_result")
    assert f"at most {MESSAGE_BYTES:,} are taken" in (seen.error.message if seen.error else "")
    seen = await members.call("large", bytes=20_000_000, last=True)
    assert (seen.status, code(seen)) == (Status.EXEC_ERR, "bad_result")
    assert (await waiting).content == "waited"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000, "kilobytes"
    assert (await members.call("large", bytes=1_000_000)).truncated > 900_000


async def test_an_answer_that_is_no_answer_fails_its_call_alone() -> None:
    members = await open_members(**bare())
    for tool in ("garble", "nothing", "nested"):
        seen = await members.call(tool, text="x")
        assert (seen.status, code(seen)) == (Status.EXEC_ERR, "bad_result"), tool
    assert (await members.call("structured", text="x")).content == {"a": [1, 2]}


async def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(concertino_mcp.McpServerError, match="there is no program 'no-such-program' in PATH"):
        await open_members(command=["no-such-program"])
    with pytest.raises(concertino_mcp.McpServerError, match="its working directory /no/where does not exist"):
        await open_members(**bare(cwd="/no/where"))


async def test_only_named_variables_reach_the_server(full: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TEST_PASSED", "yes")
    monkeypatch.setenv("MCP_TEST_HIDDEN", "yes")
    members = await open_members(**full, env={"MCP_TEST_LITERAL": "text"}, env_from=["MCP_TEST_PASSED"])
    found = [
        (await members.call("environment", name=f"MCP_TEST_{name}")).content for name in ("PASSED", "HIDDEN", "LITERAL")
    ]
    assert found == ["yes", "(not set)", "text"]
    with pytest.raises(concertino_mcp.McpServerError, match=r"MCP_TEST_ABSENT \(env_from\) is not set"):
        await open_members(**full, env_from=["MCP_TEST_ABSENT"])


def test_plain_code_on_the_thread_of_the_sessions_is_refused() -> None:
    thread = loop_module.background()

    async def inside() -> Any:
        with pytest.raises(RuntimeError, match="would wait for itself"):
            thread.wait(lambda: asyncio.sleep(0), 1)

    thread.wait(inside, 10)
