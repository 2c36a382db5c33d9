"""Nothing outlives a run: no task, thread, process, file, and no complaint of the event loop (bar E6)."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys

import concertino as ct
import pytest
from concertino.executor import Executor, Limits

from .orphan_trials import left_behind


@pytest.mark.slow
def test_random_scenes_leave_nothing_behind() -> None:
    assert left_behind(range(80)) == []


async def test_tasks_that_a_call_started_end_with_it_and_those_of_the_caller_do_not() -> None:
    left: list[asyncio.Task[None]] = []

    @ct.tool
    async def leaves() -> str:
        """Leave a task, and one below that."""

        async def below() -> None:
            left.append(asyncio.create_task(asyncio.sleep(3600)))
            await asyncio.sleep(3600)

        left.append(asyncio.create_task(below()))
        await asyncio.sleep(0.01)
        return "left"

    mine = asyncio.create_task(asyncio.sleep(3600))
    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("leaves")], ct.Pool.of(leaves))
        assert seen.ok
        await asyncio.wait(left, timeout=60)
        assert [task.cancelled() for task in left] == [True, True]
        assert not mine.done()
    mine.cancel()


async def test_the_loop_gets_its_own_task_factory_back() -> None:
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    first, second = Executor(), Executor()
    for executor in (first, second):
        executor.open(ct.Pool())
    assert loop.get_task_factory() is not before
    await first.aclose()
    assert loop.get_task_factory() is not before
    await second.aclose()
    assert loop.get_task_factory() is before


async def test_a_task_that_is_cancelled_before_its_first_step_leaves_no_warning(recwarn: object) -> None:
    @ct.tool
    async def leaves() -> str:
        """Leave a task that has not begun."""
        asyncio.create_task(asyncio.sleep(3600))  # noqa: RUF006
        return "left"

    async with Executor() as executor:
        assert (await executor.run([ct.Call("leaves")] * 10, ct.Pool.of(leaves)))[0].ok
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


IMMORTAL = """
import asyncio
import concertino as ct
from concertino.executor import Executor, Limits

@ct.tool(timeout=0.1)
async def immortal() -> str:
    "Swallow cancellations, and being closed."
    while True:
        try:
            await asyncio.sleep(3600)
        except (asyncio.CancelledError, GeneratorExit):
            pass

async def main():
    async with Executor(Limits(grace=0.02, abandoned=3)) as executor:
        await executor.run([ct.Call("immortal")] * 4, ct.Pool.of(immortal))
        (seen,) = await executor.run([ct.Call("immortal")], ct.Pool.of(immortal))
        print(seen.error.code, executor.health()["abandoned_calls"], flush=True)

asyncio.run(main())
print("over", flush=True)
"""


def test_a_call_that_nothing_can_end_is_counted_quarantined_and_does_not_keep_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", IMMORTAL], capture_output=True, text=True, timeout=20, check=False)
    assert done.stdout == "quarantined 4\nover\n"
    assert done.returncode == 0
    assert "never retrieved" not in done.stderr
    assert "destroyed" not in done.stderr


async def test_calls_that_end_when_they_are_closed_are_not_held_against_their_member() -> None:
    @ct.tool(timeout=0.1)
    async def stubborn() -> str:
        """Swallow cancellations."""
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

    async with Executor(Limits(grace=0.02, abandoned=3)) as executor:
        for _ in range(2):
            observations = await executor.run([ct.Call("stubborn")] * 6, ct.Pool.of(stubborn))
            assert {o.status for o in observations} == {"TIMEOUT"}
        assert executor.health()["quarantined"] == {}
        assert executor.health()["abandoned_calls"] == 0
