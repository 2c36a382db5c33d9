"""A plugin's fault stays the plugin's: one observation for it, and nothing changes for its neighbours (bar E5)."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import warnings
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.executor import Executor, Limits
from waiting import wait_until

from .faulty import FAULTS, NEIGHBOURS, POOL, Fault
from .lag import lag_of_the_loop


async def run_round(executor: Executor, calls: list[ct.Call]) -> list[ct.Observation]:
    return await asyncio.wait_for(executor.run(calls, POOL), 30)


def seen(observations: list[ct.Observation]) -> list[tuple[Any, ...]]:
    return [(o.name, o.status, o.content, o.error, o.attempts, o.repairs) for o in observations]


@pytest.mark.slow
@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row.name)
@pytest.mark.usefixtures("importable")
async def test_a_fault_gives_one_observation_and_leaves_its_neighbours_alone(row: Fault) -> None:
    loop_errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: loop_errors.append(context))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with Executor(Limits(grace=0.05, stall=5)) as executor, lag_of_the_loop() as lag:
            expected = seen(await run_round(executor, NEIGHBOURS))
            calls = [*NEIGHBOURS[:4], ct.Call(row.name), *NEIGHBOURS[4:]]
            for _ in range(2):
                observations = await run_round(executor, calls)
                faulty = observations.pop(4)
                assert seen(observations) == expected
                assert (faulty.status, faulty.error.code if faulty.error else "") == (row.status, row.code), faulty
                assert row.said in (faulty.error.message if faulty.error else str(faulty.content))
                assert faulty.error is None or len(faulty.error.message) <= 200
                assert "Foreign" not in str(faulty.error)
            assert asyncio.get_running_loop().is_running()
        await asyncio.sleep(0.05)
        gc.collect()
    assert lag[0] < 1.9  # those that block a loop do so for 2 s
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
    assert loop_errors == []
    assert [str(w.message) for w in caught] == []


@pytest.mark.parametrize("fault", ["swallows_cancellation_on_its_own_loop", "leaves_a_task_that_exits_on_its_own_loop"])
async def test_a_fault_on_a_provider_s_own_loop_does_not_take_that_loop_from_its_other_members(fault: str) -> None:
    faulty = next(row.tool for row in FAULTS if row.name == fault)
    assert await healthy_after(faulty) == "fine"


async def test_a_provider_s_own_loop_that_is_blocked_is_replaced_for_its_other_members() -> None:
    release = threading.Event()

    @ct.tool(isolation="thread", timeout=0.3)
    async def blocks() -> None:
        """Block the loop until the test has ended."""
        release.wait()

    try:
        assert await healthy_after(blocks, release) == "fine"
    finally:
        release.set()


async def healthy_after(faulty: ct.ToolSpec, release: threading.Event | None = None) -> object:
    """What a member of the same provider gives after a fault; the fault may last until `release`."""

    @ct.tool(name="acme/healthy", isolation="thread", timeout=10)
    async def healthy() -> str:
        """Just work."""
        await asyncio.sleep(0.01)
        return "fine"

    async with Executor(Limits(grace=0.05)) as executor:
        pool = ct.Pool.of(healthy, faulty.with_(name="acme/faulty"))
        await executor.run([ct.Call("faulty")], pool)
        (after,) = await executor.run([ct.Call("healthy")], pool)
        if release is not None:
            release.set()
        return after.content


async def test_a_task_that_is_left_on_a_provider_s_own_loop_ends_with_its_call() -> None:
    left: list[asyncio.Task[None]] = []

    @ct.tool(isolation="thread")
    async def leaves() -> str:
        """Leave a task behind."""
        left.append(asyncio.get_running_loop().create_task(asyncio.sleep(3600)))
        return "left"

    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("leaves")], ct.Pool.of(leaves))
        assert seen.ok
        await wait_until(lambda: left[0].done())
        assert left[0].cancelled()


# -- hooks and listeners ----------------------------------------------------------------------------------------------


async def run_with(**options: Any) -> list[ct.Observation]:
    async with Executor(Limits(grace=0.05)) as executor:
        calls = [ct.Call("add", {"a": 1, "b": 2}), ct.Call("add", {"a": 1, "b": 3})]
        return await asyncio.wait_for(executor.run(calls, POOL, **options), 10)


def raiser(error: BaseException) -> Any:
    def hook(**_: Any) -> None:
        raise error

    return hook


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_a_hook_that_raises_before_a_call_is_that_call_s_failure(error: BaseException) -> None:
    first_only = [lambda call_id, **_: (_ for _ in ()).throw(error) if call_id == "1" else None]
    first, second = await run_with(before=first_only)
    assert first.status == "EXEC_ERR"
    assert first.attempts == 0
    assert second.content == 4


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_a_hook_that_raises_after_a_call_loses_nothing(error: BaseException) -> None:
    observations = await run_with(after=[raiser(error)])
    assert [o.content for o in observations] == [3, 4]
    assert all("after_call hook failed" in o.note for o in observations)


async def test_a_hook_that_hangs_after_a_call_is_stopped_by_the_deadline_and_the_result_counts() -> None:
    async def hang(**_: Any) -> None:
        await asyncio.sleep(3600)

    observations = await run_with(after=[hang], budget=ct.Budget(seconds=0.3))
    assert [o.content for o in observations] == [3, 4]


async def test_a_hook_may_refuse_a_call_and_says_why() -> None:
    first, _ = await run_with(before=[raiser(PermissionError("ask Ada first"))])
    assert first.error is not None
    assert (first.error.code, first.error.message) == ("denied", "refused: ask Ada first")


async def test_a_hook_may_answer_many_calls_with_one_object() -> None:
    cached = ct.Observation("", "add", ct.Status.OK, 42)
    observations = await run_with(before=[lambda **_: cached])
    assert [(o.call_id, o.content, o.replayed, o.attempts) for o in observations] == [
        ("1", 42, True, 0),
        ("2", 42, True, 0),
    ]


async def test_a_listener_that_raises_does_not_stop_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def listener(event: object) -> None:
        raise ValueError("cannot look at this")

    observations = await run_with(listeners=[listener])
    assert [o.content for o in observations] == [3, 4]
    assert "a listener failed on CallStarted" in caplog.text


# -- the process of the caller ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("importable")
async def test_nothing_that_happens_in_a_worker_process_reaches_the_caller_s_process() -> None:
    def state() -> tuple[Any, ...]:
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        return Path.cwd(), dict(os.environ), handlers

    before = state()
    names = [row.name for row in FAULTS if row.tool.isolation == "process" and row.name != "computes_for_ever"]
    async with Executor() as executor:
        await run_round(executor, [ct.Call(name) for name in names])
    assert state() == before
