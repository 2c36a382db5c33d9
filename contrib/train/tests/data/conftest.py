"""Runs to learn from: simulated models over simulated questions, kept as traces, some of them with failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.serial_calls import SerialCalls
from concertino_bench import System
from concertino_bench.runner import Selection
from concertino_train.data.collecting import Collection, collect

STRATEGIES: dict[str, ct.Strategy] = {
    "rounds": ParallelRounds(),
    "single": ParallelRounds(max_parallel=1),
    "brief": ParallelRounds(max_parallel=1, history_tokens=4200),
    "native": ParallelRounds(native=True),
    "serial": SerialCalls(),
    "stateless": SerialCalls(form="qa", answer_tool="combine"),
    "graph": AgentGraph(),
    "plan": DependencyPlan(tools={"solve": "toy/solve"}),
}


def _slipping(slip: bool = True) -> ct.ModelSpec:
    from concertino_toy.leader import ScriptedLeader

    return ct.ModelSpec("practice/slipping", lambda: ScriptedLeader("practice/slipping", slip=slip))


@pytest.fixture(scope="session")
def sim_pool() -> ct.Pool:
    """The published simulated members; the one that leads misspells an argument of its first round."""
    pytest.importorskip("concertino_toy", reason="concertino-toy, whose models make the runs, is absent")
    return ct.Pool.installed("toy/*").adding(_slipping()).bind(orchestrator="practice/slipping")


@pytest.fixture(scope="session")
def questions() -> Callable[..., Selection]:
    """Some generated questions: `questions(count=4, level=3)`."""
    from concertino_bench.masbench import task_sets

    sets = {each.name: each for each in task_sets()}

    def chosen(count: int = 3, kind: str = "parallel", **options: Any) -> Selection:
        return Selection(sets[f"masbench/{kind}"], {"level": 3, **options}, limit=count)

    return chosen


@pytest.fixture(scope="session")
def collected(
    tmp_path_factory: pytest.TempPathFactory, sim_pool: ct.Pool, questions: Callable[..., Selection]
) -> Collection:
    """Runs of every strategy on three questions."""
    systems = [System(name, strategy) for name, strategy in STRATEGIES.items()]
    folder = tmp_path_factory.mktemp("collected")
    return asyncio.run(
        collect(systems, questions(3), sim_pool, folder, samples=1, budget=ct.Budget(rounds=16, units=40))
    )


@pytest.fixture(scope="session")
def traces(collected: Collection) -> dict[str, list[ct.Trace]]:
    """Their traces, by strategy."""
    found: dict[str, list[ct.Trace]] = {}
    for item in sorted(collected.outcome.items, key=lambda item: item.key):
        found.setdefault(item.key.system, []).append(ct.Trace.load(collected.folder / item.trace))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "set"
