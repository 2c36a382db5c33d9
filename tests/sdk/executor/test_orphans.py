"""Nothing outlives a run: no task, thread, process, file, and no complaint of the event loop (bar E6)."""

from __future__ import annotations

import asyncio

import concertino as ct
import pytest
from concertino.executor import Executor

from .orphan_trials import left_behind


@pytest.mark.slow
def test_two_hundred_random_scenes_leave_nothing_behind() -> None:
    assert left_behind(range(200)) == []


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
        await asyncio.wait(left, timeout=5)
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
