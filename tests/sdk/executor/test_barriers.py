"""Calls that wait for others to end, whatever came of them: `Call.order_after`."""

from __future__ import annotations

import asyncio
import json

import concertino as ct
import pytest
from concertino.executor import Executor
from hypothesis import given
from hypothesis import strategies as st

from .virtual_clock import run_virtually


@ct.tool(timeout=None)
async def step(seconds: float, fails: bool = False) -> str:
    """Take some time."""
    await asyncio.sleep(seconds)
    if fails:
        raise ValueError("this one fails")
    return "done"


@ct.tool(timeout=None, writes=True)
async def write(seconds: float) -> str:
    """Change something, slowly."""
    await asyncio.sleep(seconds)
    return "written"


POOL = ct.Pool.of(step, write)


def observe(*calls: ct.Call) -> list[ct.Observation]:
    async def work() -> list[ct.Observation]:
        async with Executor() as executor:
            return await executor.run(ct.Plan(calls), POOL)

    return run_virtually(work())


def test_a_call_behind_others_starts_when_the_last_of_them_has_ended() -> None:
    slow = ct.Call("step", {"seconds": 5}, "slow")
    failed = ct.Call("step", {"seconds": 2, "fails": True}, "failed")
    last = ct.Call("step", {"seconds": 1}, "last", order_after=("slow", "failed", "slow"))
    observations = observe(slow, failed, last)
    assert [each.ok for each in observations] == [True, False, True]
    assert observations[2].started == pytest.approx(5)


def test_a_call_behind_one_that_cannot_be_read_runs() -> None:
    broken = ct.Call("step", {}, "a", error=("bad_format", "unreadable"))
    assert [each.ok for each in observe(broken, ct.Call("step", {"seconds": 1}, "b", order_after=("a",)))] == [
        False,
        True,
    ]


def test_an_edge_and_a_barrier_to_the_same_call_are_an_edge() -> None:
    first = ct.Call("step", {"seconds": 1, "fails": True}, "a")
    observations = observe(first, ct.Call("step", {"seconds": 1}, "b", after=("a",), order_after=("a",)))
    assert [each.error.code if each.error else "" for each in observations] == ["raised", "dependency_failed"]


def test_a_failed_edge_counts_more_than_a_barrier_that_is_still_open() -> None:
    calls = [
        ct.Call("step", {"seconds": 1, "fails": True}, "a"),
        ct.Call("step", {"seconds": 3}, "b"),
        ct.Call("step", {"seconds": 1}, "c", after=("a",), order_after=("b",)),
        ct.Call("step", {"seconds": 1}, "d", order_after=("c",)),
    ]
    observations = observe(*calls)
    assert [each.ok for each in observations] == [False, True, False, True]
    assert observations[3].started == pytest.approx(1)


def test_writing_calls_keep_an_order_that_agrees_with_the_barriers() -> None:
    first = ct.Call("write", {"seconds": 1}, "a", order_after=("b",))
    observations = observe(first, ct.Call("write", {"seconds": 1}, "b"))
    assert [each.started for each in observations] == [pytest.approx(1), pytest.approx(0)]


def test_a_cycle_through_a_barrier_is_refused() -> None:
    with pytest.raises(ct.PlanError, match="the plan has a cycle"):
        ct.Plan([ct.Call("step", id="a", after=("b",)), ct.Call("step", id="b", order_after=("a",))])
    with pytest.raises(ct.PlanError, match="depends on itself"):
        ct.Plan([ct.Call("step", id="a", order_after=("a",))])
    with pytest.raises(ct.PlanError, match="refers to 'z', which is not in the plan"):
        ct.Plan([ct.Call("step", id="a", order_after=("z",))])


def test_a_barrier_survives_a_round_trip_and_is_no_edge() -> None:
    plan = ct.Plan([ct.Call("step", {"seconds": 1}, "a"), ct.Call("step", {"seconds": 2}, "b", order_after=("a",))])
    again = ct.Plan(ct.Call.from_json(call) for call in json.loads(json.dumps(plan.to_json())))
    assert (again.calls, again.barriers, again.edges) == (plan.calls, {"b": ("a",)}, {})
    assert plan.levels() == [["a", "b"]]
    assert plan.critical_path({"a": 1, "b": 2})[0] == 2


@st.composite
def graphs(draw: st.DrawFn) -> list[ct.Call]:
    calls = []
    for place in range(draw(st.integers(1, 7))):
        before = st.sets(st.integers(0, place - 1), max_size=3) if place else st.just(set[int]())
        after, order_after = draw(before), draw(before)
        calls.append(
            ct.Call(
                "step",
                {"seconds": draw(st.integers(1, 9)), "fails": draw(st.integers(0, 4)) == 0},
                f"c{place}",
                tuple(f"c{other}" for other in after),
                order_after=tuple(f"c{other}" for other in order_after),
            )
        )
    return calls


@given(graphs())
def test_start_times_are_those_of_a_simulation(calls: list[ct.Call]) -> None:
    ends: dict[str, float] = {}
    good: dict[str, bool] = {}
    starts: dict[str, float] = {}
    for call in calls:
        arguments = call.arguments
        assert isinstance(arguments, dict)
        broken = [other for other in call.after if not good[other]]
        if broken:
            good[call.id], ends[call.id] = False, min(ends[other] for other in broken)
            continue
        starts[call.id] = max((ends[other] for other in (*call.after, *call.order_after)), default=0)
        good[call.id], ends[call.id] = not arguments["fails"], starts[call.id] + arguments["seconds"]
    observations = observe(*calls)
    assert [each.ok for each in observations] == [good[call.id] for call in calls]
    for call, each in zip(calls, observations, strict=True):
        if call.id in starts:
            assert each.started == pytest.approx(starts[call.id], abs=1e-3)
