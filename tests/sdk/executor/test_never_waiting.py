"""Calls that never wait. From Python 3.12 on they meet no event loop; whatever a program can see is as on 3.11."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable

import concertino as ct
import pytest
from concertino.core.events import CallEnded, CallStarted, Event
from concertino.executor import Executor, Limits, turns
from concertino.testing import ScriptedModel

SEEN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    SEEN.clear()
    monkeypatch.setattr(turns, "SLICE", 60.0)  # on a busy machine, calls that are late let others have a turn


@ct.tool
async def quick(name: str) -> str:
    """Answer at once."""
    SEEN.append(name)
    return name


@ct.tool
async def slow(name: str) -> str:
    """Let the others run once before the answer."""
    SEEN.append(f"{name} begins")
    await asyncio.sleep(0)
    SEEN.append(f"{name} ends")
    return name


@ct.tool
async def who(name: str) -> bool:
    """Whether this runs in a task of its own, where a time limit can be set."""
    async with asyncio.timeout(5):
        task = asyncio.current_task()
        if name == "never":
            await asyncio.sleep(0)
    SEEN.append(str(id(task)))
    return task is not None


@ct.agent
async def asks(question: str, ctx: ct.Context) -> str:
    """Call two tools."""
    seen = [(await ctx.call("quick", {"name": f"{question}{n}"})).content for n in range(2)]
    return " ".join(map(str, seen))


POOL = ct.Pool.of(quick, slow, who, asks)


def calls(tool: str, *names: str) -> list[ct.Call]:
    return [ct.Call(tool, {"name": name}, name) for name in names]


def chain(count: int) -> ct.Plan:
    return ct.Plan(
        tuple(ct.Call("quick", {"name": str(n)}, f"c{n}", after=(f"c{n - 1}",) if n else ()) for n in range(count))
    )


async def passes_of_the_loop(work: Awaitable[object]) -> int:
    """How often the event loop went round while something was awaited."""
    count = 0

    def another() -> None:
        nonlocal count, handle
        count += 1
        handle = loop.call_soon(another)

    loop = asyncio.get_running_loop()
    handle = loop.call_soon(another)
    try:
        await work
    finally:
        handle.cancel()
    return count


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 has no eager tasks")
@pytest.mark.parametrize("plan", [ct.Plan(tuple(calls("quick", *map(str, range(10))))), chain(10)], ids=["10", "chain"])
async def test_a_plan_whose_calls_never_wait_never_waits(plan: ct.Plan) -> None:
    async with Executor() as executor:
        assert await passes_of_the_loop(executor.run(plan, POOL)) == 0


async def test_calls_run_in_the_order_of_the_plan_and_only_when_all_of_it_was_submitted() -> None:
    events: list[Event] = []
    async with Executor() as executor:
        plan = [*calls("slow", "a", "b"), *calls("quick", "c"), ct.Call("nobody", {}, "d"), *calls("quick", "e")]
        seen = await executor.run(plan, POOL, listeners=[events.append])
    assert [each.content for each in seen] == ["a", "b", "c", None, "e"]
    assert SEEN == ["a begins", "b begins", "c", "e", "a ends", "b ends"]
    told = [
        (type(event).__name__, event.call_id if isinstance(event, CallStarted) else event.observation.call_id)
        for event in events
        if isinstance(event, CallStarted | CallEnded)
    ]
    began, ended = "CallStarted", "CallEnded"
    both = [(began, "c"), (ended, "c"), (began, "e"), (ended, "e")]
    assert told == [(ended, "d"), (began, "a"), (began, "b"), *both, (ended, "a"), (ended, "b")]


async def test_what_is_written_twice_in_one_plan_is_no_repetition_of_a_call_that_has_ended() -> None:
    async with Executor() as executor:
        twice = [ct.Call("quick", {"name": "x"}, "first"), ct.Call("quick", {"name": "x"}, "second")]
        seen = await executor.run(twice, POOL, duplicates="reuse")
    assert [each.replayed for each in seen] == [False, False]


async def test_calls_that_never_wait_fill_gates_and_queue_like_others() -> None:
    async with Executor(Limits(calls=1, queue=1)) as executor:
        seen = await executor.run(calls("quick", "a", "b", "c"), POOL)
    assert [each.ok for each in seen] == [True, True, False]
    assert seen[2].error is not None
    assert seen[2].error.code == "overloaded"


async def test_each_call_has_a_task_of_its_own_and_the_context_of_who_asked() -> None:
    async with Executor() as executor:
        seen = await executor.run(calls("who", "a", "b"), POOL)
    assert [each.content for each in seen] == [True, True]
    assert len(SEEN) == 2
    assert str(id(asyncio.current_task())) not in SEEN


async def test_a_chain_of_thousands_is_no_recursion() -> None:
    async with Executor() as executor:
        seen = await executor.run(chain(3000), POOL)
    assert all(each.ok for each in seen)
    assert [str(n) for n in range(3000)] == SEEN


async def test_a_queue_of_thousands_behind_one_place_is_no_recursion() -> None:
    async with Executor(Limits(calls=1, queue=5000)) as executor:
        seen = await executor.run(calls("quick", *map(str, range(3000))), POOL)
    assert all(each.ok for each in seen)
    assert [str(n) for n in range(3000)] == SEEN


async def test_a_plan_that_is_given_up_before_its_calls_run_gives_their_places_back() -> None:
    async with Executor(Limits(calls=2)) as executor:
        running = asyncio.ensure_future(executor.run(calls("slow", "a", "b", "c"), POOL))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        seen = await executor.run(calls("slow", "d", "e", "f"), POOL)
    assert all(each.ok for each in seen)


async def test_an_agent_and_a_model_that_answer_at_once_are_no_different() -> None:
    model = ScriptedModel("<answer>it is 4</answer>")
    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("asks", {"question": "q"}, "a")], POOL)
    assert seen.content == "q0 q1"
    assert SEEN == ["q0", "q1"]
    run = await ct.Orchestrator(model).run("2 + 2?", pool=POOL)
    assert run.answer == "it is 4"
