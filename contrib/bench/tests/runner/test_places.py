"""Where an evaluation runs changes nothing in its results file but the times."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from click.testing import CliRunner
from concertino.rollouts import Processes, Rollouts
from concertino_bench import Grade, Grader, GraderServices, Submission, System, Task, TaskSet, installed_graders
from concertino_bench.baselines.lineup import experts
from concertino_bench.cli import bench
from concertino_bench.environments import task_sets as environments
from concertino_bench.masbench import task_sets
from concertino_bench.runner import Evaluation, Outcome, Progress, Selection, evaluate, evaluator
from concertino_bench.tasks.named_change import change_from_json, change_to_json
from plain_results import plain_results

DEPTH = next(each for each in task_sets() if each.name == "masbench/depth")
SUDOKU = next(each for each in environments() if each.name == "environments/sudoku")
POOL = ct.Pool.installed("toy/*").bind(orchestrator="toy/leader")


def asked(*systems: System, **options: Any) -> Evaluation:
    chosen = [Selection(DEPTH, {"level": 3}, limit=8), Selection(SUDOKU, limit=2)]
    named = systems or (
        System("rounds", ct.ParallelRounds(max_rounds=5), sampling=ct.Sampling(temperature=0.5, stop=("END",))),
        System("graph", "agent-graph", only=("toy/*",)),
        System("reversed", change="order reversed"),
    )
    return Evaluation(chosen, named, seed=3, unseen=("names",), **options)


def done(evaluation: Evaluation, out: Path, **options: Any) -> Outcome:
    given: dict[str, Any] = {"graders": installed_graders(), **options}
    return asyncio.run(evaluate(evaluation, POOL, out, **given))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of this process."""
    out = tmp_path_factory.mktemp("here") / "r.jsonl"
    done(asked(samples=2), out)
    return out


@pytest.mark.slow
def test_processes_give_the_same_file_as_this_process(tmp_path: Path, here: Path) -> None:
    outcome = done(asked(samples=2), tmp_path / "there.jsonl", on="local:2")
    assert not outcome.missing
    assert {item.error for item in outcome.items} == {""}
    assert plain_results(tmp_path / "there.jsonl") == plain_results(here)
    for item in outcome.items:
        assert ct.Trace.load(tmp_path / item.trace).finished


@pytest.mark.slow
def test_killed_workers_leave_the_same_file(tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[Processes] = []
    opened = evaluator.open_rollouts

    def noting(*arguments: Any, **options: Any) -> Rollouts:
        place = opened(*arguments, **options)
        assert isinstance(place, Processes)
        places.append(place)
        return place

    monkeypatch.setattr(evaluator, "open_rollouts", noting)
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        if progress.fresh in (3, 11) and (pids := places[0].pids):
            with contextlib.suppress(ProcessLookupError):  # the last one has just ended
                os.kill(pids[0], signal.SIGKILL)
            killed.append(pids[0])

    done(asked(samples=2), tmp_path / "killed.jsonl", on="local:2", on_progress=kill)
    assert killed
    assert plain_results(tmp_path / "killed.jsonl") == plain_results(here)


@pytest.mark.slow
def test_what_one_place_left_another_continues(tmp_path: Path, here: Path) -> None:
    out = tmp_path / "r.jsonl"
    out.write_bytes(b"".join(here.read_bytes().splitlines(keepends=True)[:40]))
    done(asked(samples=2), out, on="local:1")
    assert plain_results(out) == plain_results(here)


@pytest.mark.slow
def test_the_command_takes_a_place(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    rounds, tasks = "rounds=parallel-rounds,model=toy/leader", "masbench/depth,level=3,limit=4"
    given = ["run", "--tasks", tasks, "--system", rounds, "--out", str(out), "--on", "local:1", "--json"]
    told = CliRunner().invoke(bench, given)
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["systems"] == {"rounds": {"right": 4, "done": 4}}


def test_a_place_that_is_not_known_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ct.UsageError, match=r"on='mars': expected where runs happen: local \(in this process\)"):
        done(asked(), tmp_path / "r.jsonl", on="mars")
    assert not (tmp_path / "r.jsonl").exists()


def test_a_system_goes_through_json_and_back() -> None:
    shortlist = ct.Shortlist("scorer/best", most=3)
    system = System(
        "s", ct.ParallelRounds(max_rounds=5), "toy/leader", ["toy/*"], ["toy/*"], {"judge": "toy/steady"},
        ct.Sampling(temperature=0.5, stop=("END",)), True, shortlist, change="cards permuted",
    )  # fmt: skip
    assert System.from_json(json.loads(json.dumps(system.to_json()))) == system
    assert not system.own_objects()


class OwnGrader(Grader):
    """Of this program."""

    name = "own"
    kinds = ("masbench",)

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        raise NotImplementedError


class OwnModel(ct.Model):
    """Of this program."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        raise NotImplementedError


class OwnStrategy(ct.ParallelRounds):
    """Of this program."""


@pytest.mark.parametrize(
    ("system", "what"),
    [
        (System("s", model=OwnModel()), "the model of the system s"),
        (System("s", OwnStrategy()), "the strategy of the system s"),
        (System("s", prepare=lambda pool: pool), r"the change of the pool \(prepare\) of the system s"),
    ],
)
def test_an_object_of_this_program_is_refused_before_it_is_sent(tmp_path: Path, system: System, what: str) -> None:
    with pytest.raises(ct.UsageError, match=f"{what} is an object of this program, which worker processes cannot"):
        done(asked(system), tmp_path / "r.jsonl", on="local:2")
    assert not (tmp_path / "r.jsonl").exists()


def test_changes_of_a_pool_that_this_package_makes_are_found_by_name_elsewhere() -> None:
    change = partial(experts, models=("toy/swift",))
    assert change_from_json(change_to_json(change) or {})(POOL).id == change(POOL).id
    assert change_to_json(partial(experts, ["toy/swift"])) is None  # which argument that is cannot be said
    assert change_to_json(partial(experts, models=POOL)) is None
    assert change_to_json(lambda pool: pool) is None
    for module, function in (("os", "system"), ("concertino_bench.baselines.members", "nothing")):
        with pytest.raises(ct.UsageError, match="no change"):
            change_from_json({"module": module, "function": function, "arguments": {}})


def test_a_system_of_copies_answers_in_worker_processes_as_here(tmp_path: Path) -> None:
    one = System("one", "agent-graph", prepare=partial(experts, models=("toy/swift",)))
    systems = [System("copies", "agent-graph", copies="toy/steady"), one]
    here = done(asked(*systems), tmp_path / "here.jsonl")
    there = done(asked(*systems), tmp_path / "there.jsonl", on="local:2")
    assert {(item.key, item.answer, item.pool) for item in there.items} == {
        (item.key, item.answer, item.pool) for item in here.items
    }


def test_a_grader_and_a_task_set_of_this_program_are_refused_as_well(tmp_path: Path) -> None:
    evaluation = Evaluation([Selection(DEPTH, {"level": 3}, limit=2)], [System("rounds")])
    with pytest.raises(ct.UsageError, match="the grader own is an object of this program"):
        done(evaluation, tmp_path / "r.jsonl", on="local:2", graders=[OwnGrader()])
    home = TaskSet("mine", "Mine.", lambda: iter(DEPTH.load(level=3, count=1)), SUDOKU.world)
    with pytest.raises(ct.UsageError, match="the task set mine is an object of this program"):
        done(Evaluation([Selection(home)], [System("rounds")]), tmp_path / "r.jsonl", on="local:2")


def test_an_executor_is_not_shared_with_other_processes(tmp_path: Path) -> None:
    with pytest.raises(ct.UsageError, match="executor: it cannot be shared with other processes"):
        done(asked(), tmp_path / "r.jsonl", on="local:2", executor=ct.Executor())
