"""The scripted experts, really run: they answer, keep to the format, recover, slip where they are told to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from concertino import Executor, Orchestrator, ParallelRounds, Run, Status, Strategy
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.serial_calls import SerialCalls
from concertino_bench.environments import tasks as environment_tasks
from concertino_bench.environments import world_of
from concertino_bench.graders import MultiAnswer
from concertino_toy.practice import Faults, practice_pool, workflow_pool
from concertino_toy.practice.experts import Habits
from concertino_toy.practice.experts.calls import RoundsExpert, SerialExpert
from concertino_toy.practice.experts.expert import Expert
from concertino_toy.practice.experts.plans import GraphExpert, PlanExpert
from concertino_toy.practice.experts.roles import RoleExpert
from concertino_toy.practice.words import WISHES
from concertino_train.practice import practice_workflow, tasks

STRATEGIES: dict[str, tuple[type[Expert], Strategy]] = {
    "rounds": (RoundsExpert, ParallelRounds(prompt="brief", references=True)),
    "serial": (SerialExpert, SerialCalls(prompt="brief", references=True)),
    "plan": (PlanExpert, DependencyPlan(prompt="brief")),
    "graph": (GraphExpert, AgentGraph(prompt="brief", max_unreadable_replies=4)),
}


def lead(which: str, count: int = 48, habits: Habits | None = None, wish: str = "none", **options: Any) -> list[Any]:
    """Runs of an expert, each with its task and its grade."""
    expert, strategy = STRATEGIES[which]

    async def run_all() -> list[Any]:
        found = []
        async with Executor() as executor:
            for number, task in enumerate(tasks("mixed", count, split="train")):
                pool = practice_pool(names_seed=number % 5, combiner=which == "graph", **options)
                leader = Orchestrator(expert(pool, habits), strategy, executor=executor)
                run = await leader.run(f"{task.question}\n\n{WISHES[wish]}".rstrip(), pool=pool)
                found.append((run, MultiAnswer().judge(task, run.answer or "").score))
        return found

    return asyncio.run(run_all())


def share(runs: list[Any]) -> float:
    return sum(score for _, score in runs) / len(runs)


def called(runs: list[Any]) -> list[Any]:
    return [seen for run, _ in runs for seen in run.observations]


@pytest.mark.parametrize("which", STRATEGIES)
def test_without_faults_an_expert_is_always_right_and_in_form(which: str) -> None:
    runs = lead(which, faults=Faults(scale=0))
    assert share(runs) == 1.0
    assert not [each.issues for run, _ in runs for each in run.rounds if each.issues]
    assert all(seen.status is Status.OK for seen in called(runs))


@pytest.mark.parametrize("which", STRATEGIES)
def test_an_expert_recovers_from_what_goes_wrong(which: str) -> None:
    runs = lead(which)
    failed = [(run, score) for run, score in runs if not all(seen.ok for seen in run.observations)]
    assert len(failed) >= 10
    assert share(failed) >= (0.55 if which == "graph" else 0.9)


@pytest.mark.parametrize("which", STRATEGIES)
def test_a_slip_is_told_and_the_next_turn_mends_it(which: str) -> None:
    runs = lead(which, 24, Habits(slips=1.0), faults=Faults(scale=0))
    told = [
        message.text
        for run, _ in runs
        for event in run.events
        if hasattr(event, "messages")
        for message in event.messages
    ]
    flawed = [each for run, _ in runs for each in run.rounds if each.issues]
    assert flawed or any("PARSE_ERR" in text for text in told)
    assert share(runs) >= 0.75


@pytest.mark.parametrize("which", ["rounds", "plan"])
def test_a_serial_expert_makes_one_call_at_a_time(which: str) -> None:
    serial, parallel = lead(which, 12, Habits(serial=1.0)), lead(which, 12)
    assert {len(each.observations) for run, _ in serial for each in run.rounds} == {1}
    assert max(len(each.observations) for run, _ in parallel for each in run.rounds) == 3


def test_a_careless_expert_leaves_something_to_learn() -> None:
    assert 0.2 <= share(lead("rounds", habits=Habits(careless=0.5))) <= 0.8


def test_an_expert_does_what_the_user_prefers() -> None:
    manners = ("cheap", "sure", "quick")
    runs = {wish: lead("rounds", 24, wish=wish, manners=manners) for wish in WISHES}
    units = {wish: sum(seen.usage.units for seen in called(runs[wish])) for wish in WISHES}
    assert units["cheap"] < units["fast"] < units["sure"]


def test_an_expert_that_ignores_wishes_spends_alike_under_all() -> None:
    def units(wish: str) -> float:
        return sum(seen.usage.units for seen in called(lead("rounds", 24, Habits(ignores=1.0), wish=wish)))

    assert abs(units("cheap") - units("sure")) < 0.1 * units("cheap")


def test_the_same_habits_give_the_same_runs() -> None:
    habits = Habits(serial=0.5, slips=0.2, careless=0.3)
    texts = [[each.text for run, _ in lead("rounds", 12, habits) for each in run.rounds] for _ in range(2)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("place", "options", "settings"),
    [
        ("plan-path", {"walls": 0.2}, {}),
        ("plan-path", {"walls": 0.2, "at_once": 1}, {"stepwise": True, "turns": 10}),
        ("sudoku", {"blanks": 4}, {}),
    ],
)
def test_the_roles_reach_their_goal_and_err_when_careless(
    place: Any, options: dict[str, Any], settings: dict[str, Any]
) -> None:
    async def reached(habits: Habits) -> tuple[int, list[Run]]:
        runs, count = [], 0
        async with Executor() as executor:
            for task in environment_tasks(place, 12, level=4, split="train", **options):
                world = world_of(task)
                pool = workflow_pool().adding(*world.members())
                leader = Orchestrator(RoleExpert(habits), practice_workflow(place, **settings), executor=executor)
                runs.append(await leader.run(task.question, pool=pool))
                count += world.state()["reached"]
        return count, runs

    right, runs = asyncio.run(reached(Habits()))
    assert right == 12
    assert not [each.issues for run in runs for each in run.rounds if each.issues]
    assert asyncio.run(reached(Habits(careless=1.0)))[0] < 12


def test_a_script_that_does_more_than_print_is_not_run() -> None:
    from concertino import CallFailed
    from concertino_toy.practice.scripts import run_print

    assert run_print('print([1, 2], "U")')["stdout"] == "[1, 2] U"
    for code in ("print(open('x'))", "import os", "print(1, sep='')", "1 + 1", "print(" + "[" * 900, "x" * 3000):
        with pytest.raises(CallFailed):
            run_print(code)
