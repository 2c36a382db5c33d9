"""Plans run as data is ready: order, start times and failures equal those of an independent simulation (bar S5)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.executor import Executor
from hypothesis import given, settings
from hypothesis import strategies as st

from .virtual_clock import run_virtually


@ct.tool(timeout=None)
async def step(seconds: float) -> str:
    """Take some time."""
    await asyncio.sleep(seconds)
    return "done"


@ct.tool(timeout=None)
async def add_up(seconds: float, fails: bool, inputs: list[int]) -> int:
    """One more than the sum of the inputs."""
    await asyncio.sleep(seconds)
    if fails:
        raise ValueError("this one fails")
    return 1 + sum(inputs)


@ct.tool(timeout=None, writes=True)
async def write(seconds: float) -> str:
    """Change something, slowly."""
    await asyncio.sleep(seconds)
    return "written"


POOL = ct.Pool.of(step, add_up, write)


def observe(plan: ct.Plan) -> list[ct.Observation]:
    """Run a plan on the virtual clock."""

    async def work() -> list[ct.Observation]:
        async with Executor() as executor:
            return await executor.run(plan, POOL)

    return run_virtually(work())


# -- random graphs against a simulation ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """A call of a random graph: `before` are earlier nodes, by reference (a data edge) or by order only."""

    seconds: int
    fails: bool
    references: tuple[int, ...]
    after: tuple[int, ...]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Node], list[int]]:
    """Nodes in a topological order, and the order in which the plan lists them."""
    size = draw(st.integers(1, 12))
    nodes = []
    for index in range(size):
        earlier = st.lists(st.integers(0, index - 1), max_size=3, unique=True) if index else st.just([])
        references, after = draw(earlier), draw(earlier)
        fails = draw(st.integers(0, 7)) == 0
        nodes.append(Node(draw(st.integers(0, 9)), fails, tuple(references), tuple(after)))
    return nodes, draw(st.permutations(range(size)))


@dataclass
class Expected:
    status: str
    content: int | None
    started: float
    ended: float


def simulate(nodes: list[Node]) -> list[Expected]:
    """What must happen: a recurrence over the graph that shares nothing with the executor."""
    expected: list[Expected] = []
    for node in nodes:
        before = [expected[i] for i in {*node.references, *node.after}]
        broken = [e.ended for e in before if e.status != "OK"]
        if broken:
            expected.append(Expected("EXEC_ERR", None, min(broken), min(broken)))
            continue
        started = max((e.ended for e in before), default=0.0)
        value = None if node.fails else 1 + sum(expected[i].content or 0 for i in node.references)
        expected.append(Expected("EXEC_ERR" if node.fails else "OK", value, started, started + node.seconds))
    return expected


def as_plan(nodes: list[Node], order: list[int]) -> ct.Plan:
    calls = []
    for index in order:
        node = nodes[index]
        inputs = [f"${{n{i}}}" for i in node.references]
        arguments = {"seconds": node.seconds, "fails": node.fails, "inputs": inputs}
        calls.append(ct.Call("add_up", arguments, f"n{index}", tuple(f"n{i}" for i in node.after)))
    return ct.Plan.parse(calls)


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_random_graphs_run_exactly_as_the_simulation_says(graph: tuple[list[Node], list[int]]) -> None:
    nodes, order = graph
    expected = simulate(nodes)
    observations = observe(as_plan(nodes, order))
    assert [o.call_id for o in observations] == [f"n{index}" for index in order]
    for index, seen in zip(order, observations, strict=True):
        wanted = expected[index]
        assert (seen.status, seen.content) == (wanted.status, wanted.content)
        assert (seen.started, seen.ended) == (wanted.started, wanted.ended)
        if seen.attempts == 0:
            assert seen.error is not None
            assert seen.error.code == "dependency_failed"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=12))
def test_writing_calls_run_one_after_another_in_plan_order_and_others_beside_them(
    calls: list[tuple[bool, int]],
) -> None:
    plan = ct.Plan([ct.Call("write" if writes else "step", {"seconds": seconds}) for writes, seconds in calls])
    observations = observe(plan)
    writing = [o for o in observations if o.name == "write"]
    assert all(first.ended == second.started for first, second in pairwise(writing))
    assert all(o.started == 0 for o in observations if o.name == "step")


def test_a_failed_writing_call_does_not_stop_the_next_one() -> None:
    plan = ct.Plan([ct.Call("write", {"seconds": "x"}), ct.Call("write", {"seconds": 1}), ct.Call("write", {})])
    assert [o.status for o in observe(plan)] == ["PARSE_ERR", "OK", "PARSE_ERR"]


def test_a_long_chain_of_refused_calls_ends_without_a_recursion_error() -> None:
    refused = [ct.Call("write", {"seconds": "x"}) for _ in range(3000)]
    assert {o.status for o in observe(ct.Plan(refused))} == {"PARSE_ERR"}
    chain = [
        ct.Call("nobody", {}, "c0"),
        *(ct.Call("step", {"seconds": 0}, f"c{i}", (f"c{i - 1}",)) for i in range(1, 3000)),
    ]
    observations = observe(ct.Plan(chain))
    assert [o.error.code for o in observations if o.error][1:] == ["dependency_failed"] * 2999


def test_a_whole_reference_keeps_its_type_and_one_inside_a_text_becomes_text() -> None:
    @ct.tool
    async def same(value: Any) -> Any:
        """Give it back."""
        return value

    async def work() -> list[ct.Observation]:
        async with Executor() as executor:
            plan = ct.Plan.parse(
                [
                    ct.Call("same", {"value": {"n": [1, 2]}}, "a"),
                    ct.Call("same", {"value": "${a}"}, "b"),
                    ct.Call("same", {"value": "got ${a}, not $${a}"}, "c"),
                    ct.Call("same", '{"value": "raw ${a}"}', "d"),
                ]
            )
            return await executor.run(plan, ct.Pool.of(same))

    contents = [o.content for o in run_virtually(work())]
    assert contents == [{"n": [1, 2]}, {"n": [1, 2]}, 'got {"n": [1, 2]}, not ${a}', 'raw {"n": [1, 2]}']


def test_a_reference_sees_the_whole_result_though_the_model_sees_it_cut() -> None:
    @ct.tool(max_chars=100)
    async def long() -> str:
        """A long text."""
        return "x" * 1000

    @ct.tool
    async def length(text: str) -> int:
        """How long a text is."""
        return len(text)

    async def work() -> list[ct.Observation]:
        async with Executor() as executor:
            plan = ct.Plan.parse([ct.Call("long", {}, "a"), ct.Call("length", {"text": "${a}"})])
            return await executor.run(plan, ct.Pool.of(long, length))

    first, second = run_virtually(work())
    assert first.truncated > 0
    assert second.content == 1000


# -- everyday plans --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def everyday(shared_data: Path) -> list[dict[str, Any]]:
    """AsyncHow: everyday plans with durations and their shortest total time."""
    path = shared_data / "asynchow" / "plans.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def everyday_plan(row: dict[str, Any], which: int) -> ct.Plan:
    """The plan of a row with its shortest (0) or longest (1) durations."""
    before: dict[str, list[str]] = {number: [] for number in row["durations_s"]}
    for first, second in row["edges"]:
        if first in before and second in before:
            before[second].append(first)
    return ct.Plan(
        ct.Call("step", {"seconds": row["durations_s"][number][which]}, number, tuple(before[number]))
        for number in before
    )


@pytest.mark.parametrize("which", [0, 1], ids=["shortest", "longest"])
def test_everyday_plans_take_exactly_their_critical_path(everyday: list[dict[str, Any]], which: int) -> None:
    plans = [everyday_plan(row, which) for row in everyday]

    async def work() -> list[float]:
        loop = asyncio.get_running_loop()
        took = []
        async with Executor() as executor:
            for plan in plans:
                started = loop.time()
                await executor.run(plan, POOL)
                took.append(loop.time() - started)
        return took

    took = run_virtually(work())
    assert took == [row["makespan_s"][which] for row in everyday]
    durations = [{number: d[which] for number, d in row["durations_s"].items()} for row in everyday]
    assert took == [plan.critical_path(seconds)[0] for plan, seconds in zip(plans, durations, strict=True)]
