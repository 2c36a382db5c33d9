"""Runs and calls of one event loop take turns, so that other tasks of the loop get theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import cast

import concertino as ct
import pytest
from concertino.executor import turns as turns_module
from concertino.executor.turns import CALL, NOT_BEGUN, RESULT, RUN_SLICE, SLICE, Turns
from concertino.strategies.parallel_rounds.format import write_round
from concertino.testing import ScriptedModel, fake_tool


class Loop:
    """An event loop on a clock of its own, as far as turns need one."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ready: list[Callable[[], None]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.ready.append(callback)

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.Future(loop=asyncio.get_running_loop())

    def next_pass(self, took: float = 0.0) -> None:
        self.now += took
        ready, self.ready = self.ready, []
        for callback in ready:
            callback()


@pytest.fixture
async def loop() -> Loop:
    return Loop()


@pytest.fixture
async def turns(loop: Loop) -> Turns:
    return Turns(cast("asyncio.AbstractEventLoop", loop))


def queue(turns: Turns, loop: Loop, *places: float) -> list[asyncio.Future[None]]:
    """Those who ask in a pass that is old, in the order of asking."""
    loop.now += 2 * SLICE
    assert turns.ask(0) is None  # from here on it is known when a pass ends
    loop.now += 2 * SLICE
    waiting = [turns.ask(place) for place in places]
    return [turn for turn in waiting if turn is not None]


def served(waiting: list[asyncio.Future[None]]) -> list[int]:
    return [number for number, turn in enumerate(waiting) if turn.done() and not turn.cancelled()]


async def test_a_young_pass_lets_everybody_through(turns: Turns, loop: Loop) -> None:
    for place in (0, 3, CALL, RESULT, NOT_BEGUN):
        assert turns.ask(place) is None
        loop.now += RUN_SLICE / 10


async def test_the_loop_is_not_asked_for_the_end_of_its_pass_before_a_slice_is_over(turns: Turns, loop: Loop) -> None:
    for _ in range(8):
        assert turns.ask(0) is None
        loop.next_pass(took=RUN_SLICE / 10)
    assert not loop.ready
    loop.now += 1.0  # the loop may have slept
    assert turns.ask(0) is None
    assert len(loop.ready) == 1
    loop.next_pass()
    assert not loop.ready


async def test_in_an_old_pass_a_run_waits_and_the_run_that_began_first_continues_first(
    turns: Turns, loop: Loop
) -> None:
    waiting = queue(turns, loop, NOT_BEGUN, 7, 2, 4)
    assert len(waiting) == 4
    order: list[int] = []
    for _ in range(4):
        # The pass before took very long, so one is served per pass.
        loop.next_pass(took=1.0)
        order += [number for number in served(waiting) if number not in order]
    assert order == [2, 3, 1, 0]


async def test_large_results_and_calls_that_begin_go_before_runs(turns: Turns, loop: Loop) -> None:
    waiting = queue(turns, loop, 1, CALL, 2, RESULT)
    loop.next_pass(took=1.0)
    assert served(waiting) == [0, 1, 3]


async def test_at_least_one_goes_on_in_every_pass_whatever_a_turn_takes(turns: Turns, loop: Loop) -> None:
    waiting = queue(turns, loop, *range(20))
    for number in range(20):
        loop.next_pass(took=5.0)
        assert len(served(waiting)) >= number + 1


async def test_as_many_go_on_as_a_pass_has_time_for(turns: Turns, loop: Loop) -> None:
    waiting = queue(turns, loop, *range(2_000))
    before, counts = 0, []
    for _ in range(30):
        done = len(served(waiting))
        counts.append(done - before)
        before = done
        loop.next_pass(took=counts[-1] * RUN_SLICE / 10)  # a turn takes a tenth of a slice
    assert 8 <= counts[-1] <= 12


async def test_who_was_cancelled_takes_nobodys_turn(turns: Turns, loop: Loop) -> None:
    waiting = queue(turns, loop, 1, 2, 3)
    waiting[0].cancel()
    loop.next_pass(took=5.0)
    assert served(waiting) == [1]


async def test_a_call_does_not_stand_behind_runs_while_the_pass_is_young(turns: Turns, loop: Loop) -> None:
    queue(turns, loop, *range(1_000))
    loop.next_pass(took=5.0)
    assert turns.ask(5) is not None
    assert turns.ask(CALL) is None


def busy(turn: int) -> Iterator[str]:
    for number in range(turn):
        yield write_round("Go.", [("look", {"n": number}), ("look", {"n": -number})])
    yield "<answer>done</answer>"


async def test_a_loop_waits_for_the_stall_watch_when_that_is_due_and_once(
    turns: Turns, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = []

    class Watch:
        due = 1.0

        def make_room(self) -> None:
            waited.append(loop.now)
            self.due = float("inf")

    monkeypatch.setattr(turns_module, "WATCHER", Watch())
    for now in (0.0, 0.999, 1.0, 1.001):
        loop.now = now
        turns.ask(0)
    assert waited == [1.0]


@pytest.mark.parametrize("shared", [False, True])
async def test_many_runs_at_once_all_end_on_one_thread_and_nobody_is_blamed(
    shared: bool, caplog: pytest.LogCaptureFixture
) -> None:
    look = fake_tool("look", returns="here", schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    pool = ct.Pool.of(look)
    executor = ct.Executor() if shared else None
    threads: set[str] = set()

    async def one() -> ct.Run:
        leader = ct.Orchestrator(ScriptedModel(*busy(3)), ct.ParallelRounds(), executor=executor)
        run = await leader.run("What?", pool=pool)
        threads.update(thread.name for thread in threading.enumerate())
        return run

    runs = await asyncio.gather(*(one() for _ in range(200)))
    if executor is not None:
        await executor.aclose()
    assert all(run.answer == "done" and len(run.observations) == 6 for run in runs)
    assert len(threads - {"MainThread"}) <= 1 + len([name for name in threads if "concertino" not in name])
    assert caplog.records == []


async def test_others_on_the_loop_get_their_turn_while_many_runs_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every pass is old at once: what counts is how many steps are made in one, and not how fast this machine is.
    monkeypatch.setattr(turns_module, "SLICE", 0.0)
    monkeypatch.setattr(turns_module, "RUN_SLICE", 0.0)
    look = fake_tool("look", returns="here", schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    passes = 0

    async def beat() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    async def one() -> ct.Run:
        return await ct.Orchestrator(ScriptedModel(*busy(3)), ct.ParallelRounds()).run("What?", pool=ct.Pool.of(look))

    beating = asyncio.create_task(beat())
    runs = await asyncio.gather(*(one() for _ in range(100)))
    beating.cancel()
    assert all(run.answer == "done" for run in runs)
    # A run makes seven steps. Without turns, all runs would make each of theirs in one and the same pass.
    assert passes > 100 * 7
