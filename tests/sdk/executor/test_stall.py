"""A blocked event loop is noticed while it is blocked, and only who blocks it is blamed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.executor import Executor, Limits, call
from concertino.executor.isolation import stall
from concertino.executor.isolation.stall import THREAD_NAME, WATCHER
from concertino.executor.turns import CALL, Turns
from waiting import wait_until

from .lag import lag_of_the_loop


@ct.tool
async def quick() -> str:
    """Return at once."""
    return "done"


async def test_a_loop_that_a_tool_blocks_is_noticed_named_and_not_blocked_again() -> None:
    @ct.tool(timeout=5)
    async def careless() -> str:
        """Block the loop."""
        time.sleep(2)  # noqa: ASYNC251 - the fault itself
        return "done"

    async with Executor(Limits(stall=0.1)) as executor:
        first = (await executor.run([ct.Call("careless")], ct.Pool.of(careless)))[0]
        await wait_until(lambda: executor.health()["stalls"])
        (noticed,) = executor.health()["stalls"]
        assert noticed["name"] == "careless"
        assert f"{Path(__file__).name}:" in noticed["where"]
        assert "careless" in noticed["where"]
        async with lag_of_the_loop() as lag:
            second = (await executor.run([ct.Call("careless")], ct.Pool.of(careless)))[0]
        assert (first.content, second.content) == ("done", "done")
        assert lag[0] < 1.9
        assert len(executor.health()["stalls"]) == 1


async def test_a_loop_that_waits_for_a_processor_is_blamed_on_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    @ct.tool(timeout=5)
    async def starved() -> str:
        """Stand still, as a thread does whose machine is busy."""
        time.sleep(0.5)  # noqa: ASYNC251 - stands for the time in which other processes run
        return "done"

    # All time that passes is time in the queue for a processor.
    monkeypatch.setattr(stall, "seconds_without_processor", lambda thread: time.monotonic())
    async with Executor(Limits(stall=0.1)) as executor:
        observation = (await executor.run([ct.Call("starved")], ct.Pool.of(starved)))[0]
        await asyncio.sleep(0.3)
        assert observation.content == "done"
        assert executor.health()["stalls"] == []


def test_the_system_says_how_long_a_thread_had_no_processor() -> None:
    thread = threading.get_native_id()
    file = Path(f"/proc/self/task/{thread}/schedstat")
    queued = int(file.read_text(encoding="ascii").split()[1]) / 1e9 if file.exists() else 0.0
    assert queued <= stall.seconds_without_processor(thread) < queued + 5
    assert stall.seconds_without_processor(-1) == 0


async def test_a_blocked_loop_is_blamed_on_the_call_whose_background_task_blocks_it() -> None:
    @ct.agent(timeout=5)
    async def spreads(ctx: ct.Context) -> list[None]:
        """Block the loop from a task of its own."""

        async def block() -> None:
            time.sleep(0.5)  # noqa: ASYNC251 - the fault itself

        return await ctx.gather(asyncio.sleep(0), block())

    async with Executor(Limits(stall=0.1)) as executor:
        await executor.run([ct.Call("spreads")], ct.Pool.of(spreads))
        await wait_until(lambda: executor.health()["stalls"])
        assert [noticed["name"] for noticed in executor.health()["stalls"]] == ["spreads"]


async def test_what_the_last_call_of_an_executor_blocked_is_told_when_it_closes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @ct.tool(timeout=5)
    async def careless() -> str:
        """Block the loop."""
        time.sleep(1)  # noqa: ASYNC251 - the fault itself; long, since a busy machine wakes the watch late
        return "done"

    async with Executor(Limits(stall=0.1)) as executor:
        await executor.run([ct.Call("careless")], ct.Pool.of(careless))
    await wait_until(lambda: any("careless blocked the event loop" in line for line in caplog.messages))


def slow_at(file: str, before: Any) -> Any:
    """A function that takes 0.6 s and then does what another one does; its code says that it stands in that file."""
    scope: dict[str, Any] = {"time": time, "before": before}
    source = "def slow(*given):\n    time.sleep(0.6)\n    return before(*given)\n"
    exec(compile(source, file, "exec"), scope)
    return scope["slow"]


@pytest.mark.parametrize("ours", [True, False], ids=["concertino", "a plugin"])
async def test_a_call_is_blamed_for_the_work_of_its_plugin_and_not_for_that_of_concertino(
    monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    file = f"{Path(ct.__file__).parent}/executor/content.py" if ours else "/plugins/acme.py"
    monkeypatch.setattr(call, "to_content", slow_at(file, call.to_content))
    async with Executor(Limits(stall=0.1)) as executor:
        (seen,) = await executor.run([ct.Call("quick")], ct.Pool.of(quick))
        assert seen.content == "done"
        await asyncio.sleep(0.3)
        assert [noticed["name"] for noticed in executor.health()["stalls"]] == ([] if ours else ["quick"])


async def test_the_time_of_the_garbage_collector_is_blamed_on_nobody() -> None:
    @ct.tool(timeout=5)
    async def collects() -> str:
        """Stand still, as a thread does while objects are collected."""
        WATCHER._collects("start", {"generation": 2})
        time.sleep(0.6)  # noqa: ASYNC251 - stands for the collection
        WATCHER._collects("stop", {"generation": 2})
        return "done"

    async with Executor(Limits(stall=0.1)) as executor:
        await executor.run([ct.Call("collects")], ct.Pool.of(collects))
        await asyncio.sleep(0.3)
        assert executor.health()["stalls"] == []


async def test_one_thread_watches_for_all_executors_and_leaves_when_there_is_none() -> None:
    def watches() -> int:
        return sum(thread.name == THREAD_NAME for thread in threading.enumerate())

    async with contextlib.AsyncExitStack() as open_ones:
        for _ in range(50):
            executor = await open_ones.enter_async_context(Executor())
            await executor.run([ct.Call("quick")], ct.Pool.of(quick))
        assert watches() == 1
    await wait_until(lambda: watches() == 0)


async def test_an_executor_with_little_patience_is_watched_from_its_beginning_beside_one_with_much() -> None:
    @ct.tool(timeout=5)
    async def careless() -> str:
        """Block the loop."""
        time.sleep(1)  # noqa: ASYNC251 - the fault itself; long, since a busy machine wakes the watch late
        return "done"

    async with Executor(Limits(stall=60)) as patient, Executor(Limits(stall=0.1)) as impatient:
        await patient.run([ct.Call("quick")], ct.Pool.of(quick))
        await asyncio.sleep(0.2)  # the thread sleeps as long as the patient one lets it
        await impatient.run([ct.Call("careless")], ct.Pool.of(careless))
        await wait_until(lambda: impatient.health()["stalls"])


async def test_a_loop_that_never_waits_leaves_the_interpreter_to_the_watch_when_it_is_due() -> None:
    async with Executor() as executor:
        await executor.run([ct.Call("quick")], ct.Pool.of(quick))
        turns, waits = Turns.of(asyncio.get_running_loop()), []

        def make_room() -> None:
            began = time.monotonic()
            stall._Watcher.make_room(WATCHER)
            waits.append(time.monotonic() - began)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(WATCHER, "make_room", make_room)
            until = time.monotonic() + 0.4
            while time.monotonic() < until:
                turns.ask(CALL)
                await asyncio.sleep(0)
        # One for each look, about every 50 ms; a machine with other work may miss some.
        assert 1 <= len(waits) <= 10


def test_waiting_for_the_watch_ends_although_it_does_not_come() -> None:
    watcher = stall._Watcher()  # without a thread
    watcher.due = 0.0
    began = time.monotonic()
    watcher.make_room()
    assert time.monotonic() - began < 2
    assert watcher.due == float("inf")  # and is not waited for again before the thread has said when it is due
