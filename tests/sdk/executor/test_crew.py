"""Threads for synchronous functions: one per call under way, kept for the next, never waited for when given up."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from concertino.executor.isolation.threads import Crew, abandoned
from waiting import until


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("concertino:")]


def run(work: Callable[[Crew], Any]) -> Any:
    async def main() -> Any:
        crew = Crew()
        try:
            return await work(crew)
        finally:
            crew.close()

    return asyncio.run(main())


def test_a_burst_of_blocking_calls_runs_side_by_side() -> None:
    everybody = threading.Barrier(40, timeout=60)  # breaks unless all forty are there at once

    async def work(crew: Crew) -> list[int]:
        return await asyncio.gather(*[crew.run("t", everybody.wait) for _ in range(40)])

    assert sorted(run(work)) == list(range(40))


def test_an_idle_thread_serves_the_next_call() -> None:
    async def work(crew: Crew) -> list[int]:
        return [await crew.run("t", threading.get_ident) for _ in range(20)]

    # The next call may come before the thread of the last one is idle again; then one more is started.
    assert len(set(run(work))) <= 10


def test_idle_threads_leave_when_the_crew_closes() -> None:
    before = set(ours())  # of earlier tests, on their way out

    async def work(crew: Crew) -> None:
        await asyncio.gather(*[crew.run("t", lambda: time.sleep(0.01)) for _ in range(10)])

    run(work)
    until(lambda: not set(ours()) - before)


def test_a_cancelled_call_is_named_until_its_thread_has_ended() -> None:
    release, running = threading.Event(), threading.Event()

    async def work(crew: Crew) -> None:
        task = asyncio.ensure_future(crew.run("stubborn", lambda: (running.set(), release.wait(60))))
        await asyncio.to_thread(running.wait, 60)
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        assert task.cancelled()
        assert "concertino:stubborn" in abandoned()

    run(work)
    release.set()
    until(lambda: "concertino:stubborn" not in abandoned())


def test_a_call_cancelled_before_a_thread_took_it_never_runs() -> None:
    ran: list[int] = []

    async def work(crew: Crew) -> None:
        task = asyncio.ensure_future(crew.run("t", lambda: ran.append(1)))
        await asyncio.sleep(0)  # queued; the thread is only started in the loop's next turn
        task.cancel()
        await asyncio.wait({task})
        assert await crew.run("t", lambda: "next") == "next"

    run(work)
    assert ran == []


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration(1), ValueError("no")])
def test_whatever_a_function_raises_reaches_the_caller_as_an_exception(error: BaseException) -> None:
    def fail() -> None:
        raise error

    async def work(crew: Crew) -> None:
        with pytest.raises(Exception, match=type(error).__name__ if not isinstance(error, ValueError) else "no"):
            await crew.run("t", fail)

    run(work)


def test_a_function_sees_the_context_variables_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    async def work(crew: Crew) -> str:
        variable.set("mine")
        found: str = await crew.run("t", variable.get)
        return found

    assert run(work) == "mine"
