"""Runs by id: started, followed, cancelled, resumed and listed, from other tasks, threads and processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.runs.orchestrator import new_run_id
from concertino.testing import ScriptedModel

FINAL: list[tuple[str, dict[str, Any]]] = [("final_answer", {})]

PROGRAM = """
import asyncio, sys
import concertino as ct
from concertino.testing import ScriptedModel

@ct.tool
async def quick() -> str:
    '''Be quick.'''
    return "done"

@ct.tool(timeout=None)
async def wait() -> str:
    '''Wait.'''
    await asyncio.sleep(float(sys.argv[2]))
    return "waited"

async def main():
    model = ScriptedModel([("quick", {})], [("wait", {})], [("final_answer", {})], "<answer>over</answer>")
    handle = ct.Runs(sys.argv[1]).start(ct.Orchestrator(model), "q", pool=ct.Pool.of(quick, wait), run_id="other")
    print(handle.id, flush=True)
    print((await handle).stop, flush=True)

asyncio.run(main())
"""


@ct.tool
async def quick() -> str:
    """Be quick."""
    return "done"


@ct.tool(timeout=None)
async def wait() -> str:
    """Wait."""
    await asyncio.sleep(30)
    return "waited"


POOL = ct.Pool.of(quick, wait)


def leader(*turns: Any) -> ct.Orchestrator:
    return ct.Orchestrator(ScriptedModel(*turns, FINAL, "<answer>over</answer>", strict=False))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Any]:
    """Begins the run `other` in another process, with a tool that takes so many seconds."""
    started: list[subprocess.Popen[str]] = []

    def begin(seconds: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(seconds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "other\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def reached(runs: ct.Runs, run_id: str, name: str) -> None:
    """Return when a call of a member has begun."""
    async for record in runs.follow(run_id):
        if record["t"] == "intent" and record["name"] == name:
            return
    raise AssertionError(f"{name} was never called")


# -- in this process ---------------------------------------------------------------------------------------------------


async def test_a_run_is_known_by_its_id_from_its_start_to_its_end(tmp_path: Path) -> None:
    runs = ct.Runs(tmp_path)
    handle = runs.start(leader([("quick", {})]), "q", pool=POOL)
    await asyncio.sleep(0)
    assert runs.get(handle.id).state == "running"
    assert [info.id for info in runs.list(state="running")] == [handle.id]
    run = await handle
    info = runs.get(handle.id)
    assert (info.state, info.stop, info.answer, info.question) == ("ended", "answered", "over", "q")
    assert info.usage["calls"] == run.usage.calls == 1
    assert runs.list(state="running") == []


async def test_followers_of_any_moment_get_the_same_records(tmp_path: Path) -> None:
    runs = ct.Runs(tmp_path)
    handle = runs.start(leader([("quick", {})], [("quick", {})]), "q", pool=POOL)
    early = [record async for record in runs.follow(handle.id)]
    await handle
    late = [record async for record in runs.follow(handle.id)]
    assert early == late
    assert [record["n"] for record in late] == list(range(1, len(late) + 1))
    assert [record["t"] for record in late][0::20] == ["run"]
    assert late[-1]["t"] == "end"
    assert [record async for record in runs.follow(handle.id, after=3)] == late[3:]


async def test_text_comes_between_the_records_to_whoever_wants_it(tmp_path: Path) -> None:
    runs = ct.Runs(tmp_path)
    handle = runs.start(leader(), "q", pool=POOL, stream_text=True)
    seen = [record async for record in runs.follow(handle.id, text=True)]
    answer = "".join(record["text"] for record in seen if record["t"] == "text" and record["kind"] == "answer")
    assert answer == "over"
    reply = max(place for place, record in enumerate(seen) if record["t"] == "reply")
    assert all(record["t"] != "text" for record in seen[reply:])
    assert [r async for r in runs.follow(handle.id, text=True)] == [r for r in seen if r["t"] != "text"]


async def test_a_follower_that_leaves_stops_nothing(tmp_path: Path) -> None:
    runs = ct.Runs(tmp_path)
    handle = runs.start(leader([("quick", {})]), "q", pool=POOL)
    async for _ in runs.follow(handle.id):
        break
    assert (await handle).ok


async def test_a_cancelled_run_is_interrupted_and_can_be_resumed_by_its_id(tmp_path: Path) -> None:
    runs = ct.Runs(tmp_path)
    handle = runs.start(leader([("quick", {})], [("wait", {})]), "q", pool=POOL)
    await reached(runs, handle.id, "wait")
    info = await runs.cancel(handle.id)
    assert (info.state, info.stop) == ("interrupted", "cancelled")
    resumed = await runs.resume(handle.id, leader(), pool=POOL)
    follower = asyncio.create_task(_all(runs, handle.id))
    run = await resumed
    assert (run.answer, runs.get(handle.id).state) == ("over", "ended")
    assert (await follower)[-1]["t"] == "end"
    with pytest.raises(ct.TraceError, match="is finished"):
        await runs.resume(handle.id, leader(), pool=POOL)
    assert (await runs.cancel(handle.id)).state == "ended"


async def _all(runs: ct.Runs, run_id: str) -> list[dict[str, Any]]:
    return [record async for record in runs.follow(run_id)]


async def test_a_suspended_run_says_what_it_waits_for_and_goes_on_with_the_decision(tmp_path: Path) -> None:
    @ct.tool(approval=True)
    async def pay(amount: float) -> str:
        """Pay."""
        return f"paid {amount:g}"

    runs, pool = ct.Runs(tmp_path), ct.Pool.of(pay)
    handle = runs.start(leader([("pay", {"amount": 5})]), "q", pool=pool)
    await handle
    info = runs.get(handle.id)
    assert info.state == "suspended"
    assert info.pending["1.1"]["arguments"] == {"amount": 5}
    assert [each.id for each in runs.list(state="suspended")] == [handle.id]
    run = await (await runs.resume(handle.id, leader(), pool=pool, decisions={"1.1": True}))
    assert run.observations[0].content == "paid 5"


async def test_an_id_names_a_run_of_the_folder_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    runs = ct.Runs(tmp_path / "inside")
    (tmp_path / "x.trace.jsonl").write_text("secret")
    for name in ("none", "", "../x", "/etc/passwd", ".."):
        with pytest.raises(ct.TraceError, match="there is no run"):
            runs.get(name)
        with pytest.raises(ct.TraceError, match="there is no run"):
            await runs.cancel(name)
        with pytest.raises(ct.TraceError, match="there is no run"):
            runs.delete(name)


async def test_an_id_is_given_once(tmp_path: Path) -> None:
    runs = ct.Runs(tmp_path)
    await runs.start(leader(), "q", pool=POOL, run_id="a")
    with pytest.raises(ct.UsageError, match="this run exists; follow it, resume it"):
        runs.start(leader(), "q", pool=POOL, run_id="a")


async def test_a_deleted_run_leaves_nothing_and_a_running_one_cannot_be_deleted(tmp_path: Path) -> None:
    runs = ct.Runs(tmp_path)
    handle = runs.start(
        leader([("wait", {})]), ["q", ct.File(b"x" * 10, media_type="text/plain", name="a.txt")], pool=POOL
    )
    await reached(runs, handle.id, "wait")
    with pytest.raises(ct.TraceError, match="cancel it before"):
        runs.delete(handle.id)
    await runs.cancel(handle.id)
    runs.delete(handle.id)
    assert names(tmp_path) == []


async def test_another_thread_follows_and_cancels(tmp_path: Path) -> None:
    runs = ct.Runs(tmp_path)
    handle = runs.start(leader([("wait", {})]), "q", pool=POOL)
    seen: list[str] = []

    def other() -> None:
        async def follow() -> None:
            async for record in runs.follow(handle.id):
                seen.append(record["t"])
                if record["t"] == "intent":
                    await runs.cancel(handle.id)

        asyncio.run(follow())

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(asyncio.CancelledError):
        await handle
    await asyncio.to_thread(thread.join)
    assert seen[-1] == "end"
    assert runs.get(handle.id).stop == "cancelled"


# -- in another process ------------------------------------------------------------------------------------------------


async def test_a_run_of_another_process_is_followed_and_cancelled(tmp_path: Path, elsewhere: Any) -> None:
    process = elsewhere(60)
    runs = ct.Runs(tmp_path)
    await reached(runs, "other", "wait")
    assert runs.get("other").state == "running"
    with pytest.raises(ct.TraceError, match="still under way after"):
        await runs.wait("other", timeout=0.1)
    with pytest.raises(ct.TraceError, match="already open for writing"):
        await runs.resume("other", leader(), pool=POOL)
    started = time.perf_counter()
    info = await runs.cancel("other")
    assert (info.state, info.stop) == ("interrupted", "cancelled")
    assert time.perf_counter() - started < 5
    process.wait(10)
    assert names(tmp_path) == ["other.trace.jsonl"]


async def test_a_run_of_another_process_is_followed_to_its_end(tmp_path: Path, elsewhere: Any) -> None:
    process = elsewhere(0.3)
    runs = ct.Runs(tmp_path)
    records = await _all(runs, "other")
    assert records[-1]["t"] == "end"
    assert (await runs.wait("other")).answer == "over"
    assert process.stdout.readline() == "answered\n"


async def test_a_killed_run_is_interrupted_and_resumed_here_without_repeating_a_call(
    tmp_path: Path, elsewhere: Any
) -> None:
    process = elsewhere(60)
    runs = ct.Runs(tmp_path)
    await reached(runs, "other", "wait")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    (tmp_path / "other.trace.jsonl.cancel").touch()  # a request that nobody followed
    info = await runs.wait("other")
    assert (info.state, info.stop) == ("interrupted", "unfinished")
    made: list[str] = []

    @ct.tool
    async def quick() -> str:
        """Be quick."""
        made.append("quick")
        return "again"

    @ct.tool(timeout=None)
    async def wait() -> str:
        """Wait."""
        made.append("wait")
        await asyncio.sleep(0.6)
        return "waited"

    run = await (await runs.resume("other", leader(), pool=ct.Pool.of(quick, wait)))
    assert (run.answer, run.stop) == ("over", "answered")
    assert "quick" not in made
    assert run.observations[0].content == "done"


def _files(folder: Path) -> list[Path]:
    return list(folder.rglob("*.jsonl"))


async def test_the_id_of_a_new_run_leads_to_no_file_outside_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    leader = ct.Orchestrator(ScriptedModel())
    for run_id in ("../stolen", str(tmp_path / "stolen"), "/"):
        with pytest.raises(ct.UsageError, match=r"run_id=.*: expected a text that can name a file of"):
            ct.Runs(folder).start(leader, "q", run_id=run_id)
        with pytest.raises(ct.UsageError, match="run_id="):
            await leader.run("q", trace=folder, run_id=run_id)
    assert _files(tmp_path) == []


async def test_a_run_by_id_needs_no_pool(tmp_path: Path) -> None:
    handle = ct.Runs(tmp_path).start(ct.Orchestrator(ScriptedModel("Paris.")), "The capital?")
    assert (await handle).answer == "Paris."
    assert ct.Runs(tmp_path).get(handle.id).answer == "Paris."


def test_as_many_runs_as_a_server_begins_in_a_minute_have_ids_of_their_own() -> None:
    many = 60_000
    assert len({new_run_id() for _ in range(many)}) == many
