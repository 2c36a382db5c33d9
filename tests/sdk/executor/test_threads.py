"""Threads for synchronous tools: daemon, counted when given up, never in each other's way."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Iterator

import concertino as ct
import pytest
from concertino.executor import Executor, Limits
from concertino.executor.isolation.threads import abandoned
from waiting import until, wait_until


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Set at the end of the test, so that hanging threads end with it, and are gone when the next one begins."""
    event = threading.Event()
    yield event
    event.set()
    until(lambda: not abandoned())


def hanging(release: threading.Event, name: str = "hangs") -> ct.ToolSpec:
    @ct.tool(name=name, timeout=0.2)
    def hangs() -> str:
        """Hang in a thread."""
        release.wait(60)
        return "released"

    return hangs


@ct.tool(timeout=20)
def healthy(number: int) -> int:
    """Work in a thread."""
    time.sleep(0.01)
    return number


async def test_hung_functions_do_not_keep_healthy_ones_waiting(release: threading.Event) -> None:
    async with Executor() as executor:
        calls = [ct.Call("hangs")] * 40 + [ct.Call("healthy", {"number": n}) for n in range(40)]
        observations = await executor.run(calls, ct.Pool.of(hanging(release), healthy))
    assert {o.status for o in observations[:40]} == {"TIMEOUT"}
    assert [o.content for o in observations[40:]] == list(range(40))


async def test_a_call_that_was_given_up_is_named_until_it_ends(release: threading.Event) -> None:
    async with Executor() as executor:
        await executor.run([ct.Call("hangs")], ct.Pool.of(hanging(release)))
        assert executor.health()["abandoned_threads"] == ["concertino:hangs"]
        release.set()
        await wait_until(lambda: not executor.health()["abandoned_threads"])


async def test_a_member_with_too_many_calls_left_running_is_refused_until_they_end(release: threading.Event) -> None:
    async with Executor(Limits(abandoned=3)) as executor:
        pool = ct.Pool.of(hanging(release, "stuck"), healthy)
        await executor.run([ct.Call("stuck")] * 4, pool)
        refused, fine = await executor.run([ct.Call("stuck"), ct.Call("healthy", {"number": 1})], pool)
        assert refused.error is not None
        assert (refused.status, refused.error.code, refused.attempts) == ("EXEC_ERR", "quarantined", 0)
        assert "4 of its calls" in refused.error.message
        assert fine.content == 1
        release.set()
        await wait_until(lambda: not executor.health()["abandoned_threads"])
        (again,) = await executor.run([ct.Call("stuck")], pool)
        assert again.content == "released"


async def test_a_synchronous_function_sees_the_context_variables_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="nobody")

    @ct.tool
    def who() -> str:
        """Say who calls."""
        return variable.get()

    async with Executor() as executor:
        variable.set("Ada")
        (seen,) = await executor.run([ct.Call("who")], ct.Pool.of(who))
    assert seen.content == "Ada"


async def test_a_synchronous_agent_may_wait_for_synchronous_tools_with_a_single_thread_allowed() -> None:
    @ct.agent(timeout=30)
    def boss(ctx: ct.Context) -> int:
        """Ask a synchronous tool."""
        return int(ctx.wait(ctx.call("healthy", {"number": 7})).content)

    async with Executor(Limits(threads=1)) as executor:
        (seen,) = await executor.run([ct.Call("boss")], ct.Pool.of(boss, healthy))
    assert seen.content == 7


async def test_no_thread_of_an_executor_is_left_when_it_closes() -> None:
    before = set(threading.enumerate())

    @ct.tool(isolation="thread")
    async def apart() -> str:
        """Run on a loop of its own."""
        return threading.current_thread().name

    async with Executor() as executor:
        calls = [ct.Call("apart"), *(ct.Call("healthy", {"number": n}) for n in range(20))]
        observations = await executor.run(calls, ct.Pool.of(apart, healthy))
        assert observations[0].content == "concertino:loop:apart"
        assert set(threading.enumerate()) - before
    await wait_until(lambda: set(threading.enumerate()) <= before)
