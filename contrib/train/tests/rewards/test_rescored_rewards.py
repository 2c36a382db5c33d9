"""Rewards of recorded runs are those that the runs had when they ended, for random runs and every installed reward."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Act
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.serial_calls import SerialCalls
from concertino.testing import fake_tool
from concertino_bench import Grade, Item, Key, Task, TaskSet, Verdict
from concertino_bench.environments import oracle_of, tasks, workflow_for, world_of
from concertino_bench.rescoring.rescore import Rescored, Rescoring, rescore
from concertino_bench.rescoring.rewarding import GradedRun, choose_rewards, installed_run_rewards
from concertino_bench.runner import ResultsFile
from concertino_train.episodes import Episode
from concertino_train.policies import ScriptedPolicy
from concertino_train.rewards import PRESETS, Reward, Scored
from concertino_train.role_turns import RoleTurns, Scripts
from concertino_train.rollouts import Assignment, RolloutEngine, TokenLimits

WRITTEN = Reward.from_json(
    {"name": "written", "terms": {"tokens": {"term": "shared/spending", "of": "policy_tokens", "limit": 90_000}}}
)
REWARDS = {**PRESETS, WRITTEN.name: WRITTEN}
"""All that are installed, and one that counts every token of the policy."""
RUNS = int(os.environ.get("CONCERTINO_RESCORED_RUNS", "1000"))
SAMPLES = 4
QUESTION = Task("q", "What is 1 + 2?", ("3",), "text")
GRADES = (
    Grade(Verdict.RIGHT, "it is right", ("3",), ("3",)),
    Grade(Verdict.WRONG, "it is wrong", ("3",), ("4",)),
    Grade(Verdict.UNPARSABLE, "nothing could be read", ("3",)),
)


class Rambler(ct.Model):
    """Writes calls, faults and answers at random; tokens and prices differ from text to text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """A random text."""
        await asyncio.sleep(self.random.choice((0, 0, 0.0003)))
        usage = ct.Usage(input_tokens=self.random.randint(10, 9000), output_tokens=self.random.randint(1, 9000))
        finish = self.random.choice(("stop", "stop", "length"))
        return ct.Reply(self.text(), usage=usage, finish_reason=finish)

    def text(self) -> str:
        """A call, a fault or an answer."""
        draw = self.random.random()
        if draw < 0.1:
            return "Hm."
        if draw < 0.25:
            return "<answer>3</answer>"
        thought = "<reasoning>I call.</reasoning>\n" if self.random.random() < 0.8 else ""
        if draw < 0.4:
            return thought + _call("final_answer", {})
        return thought + "\n".join(self._call() for _ in range(self.random.randint(1, 4)))

    def _call(self) -> str:
        a, b = self.random.choice((1, "one")), self.random.randint(0, 3)
        given: dict[str, dict[str, Any]] = {"add": {"a": a, "b": b}, "ask": {"question": "?"}, "fail": {}, "nobody": {}}
        name = self.random.choice([*given, "add", "ask"])
        return _call(name, given[name])


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


@ct.tool(cost=ct.Cost(units=2, usd=0.01))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@ct.agent(cost=ct.Cost(units=1))
async def ask(ctx: ct.Context, question: str) -> str:
    """Ask a model."""
    return (await ctx.model("worker").chat(question)).text


def pool_of(seed: int) -> ct.Pool:
    """Two members that work, one that fails, a leader and a worker with prices."""
    models = [
        ct.ModelSpec(name, partial(Rambler, seed + place), "", ct.Prices(3.0, 7.0))
        for place, name in enumerate(("leader", "helper"), 1)
    ]
    fails = fake_tool("fail", raises=ValueError("no"))
    return ct.Pool.of(add, ask, fails, *models, orchestrator="leader", worker="helper")


class Recorded:
    """Runs with their traces and results file, and the rewards that they had when they ended."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.results = folder, folder / "r.jsonl"
        self.online: dict[Key, dict[str, Scored]] = {}
        self.items: list[Item] = []

    def add(self, group: Sequence[tuple[Item, Episode]]) -> None:
        """A group of runs that are compared with each other."""
        self.items += [item for item, _ in group]
        for name, reward in REWARDS.items():
            try:
                scores = reward.score([episode for _, episode in group])
            except ct.UsageError:
                continue
            for (item, _), scored in zip(group, scores, strict=True):
                self.online.setdefault(item.key, {})[name] = scored

    def written(self) -> Path:
        """The results file."""
        with ResultsFile(self.results, {"fingerprint": "x", "systems": [], "sets": []}) as file:
            for item in self.items:
                file.append(item)
        return self.results


def random_runs(folder: Path, count: int) -> Recorded:
    """Runs of two strategies that ramble, in groups of four."""
    recorded = Recorded(folder)
    for place in range(count // SAMPLES):
        system = ("parallel-rounds", "serial-calls")[place % 2]
        group = []
        for sample in range(SAMPLES):
            pool, key = pool_of(place * 10 + sample), Key(system, f"q{place}", sample)
            path = folder / "t" / f"{place}-{sample}.trace.jsonl"
            leader = ct.Orchestrator("orchestrator", system)
            run = leader.run_sync(QUESTION.question, pool=pool, trace=path, budget=ct.Budget(rounds=4))
            grade = GRADES[(place + sample) % 3]
            others = [role for role in pool.roles if role != "orchestrator"]
            episode = Episode.of_run(run, grade, group=str(place), sample=sample, pool=pool, others=others)
            trace = path.relative_to(folder).as_posix()
            group.append((Item.of_run(key, replace(QUESTION, id=key.task), grade, run, pool, trace=trace), episode))
        recorded.add(group)
    return recorded


def graded_anew(recorded: Recorded, tasks: Mapping[str, tuple[Task, TaskSet]] | None = None) -> Rescored:
    """The results with all installed rewards."""
    known = tasks or {
        item.key.task: (replace(QUESTION, id=item.key.task), TaskSet("own", "", lambda: iter(())))
        for item in recorded.items
    }
    rewards = [*choose_rewards(["all"], installed_run_rewards()), WRITTEN]
    how = Rescoring(rewards=rewards, tasks=known)
    return asyncio.run(rescore(recorded.results, recorded.folder / "new.jsonl", how))


def same(found: Rescored, recorded: Recorded) -> int:
    """How many rewards there are; all are those that the runs had when they ended."""
    count = 0
    for key, rewards in recorded.online.items():
        for name, scored in rewards.items():
            values = found.items[key].values
            assert values[f"reward {name}"] == pytest.approx(scored.total, abs=1e-9, rel=0)
            for part, value in scored.components.items() if len(scored.components) > 1 else ():
                assert values[f"reward {name}: {part}"] == pytest.approx(value, abs=1e-9, rel=0)
            count += 1
    return count


def test_a_recorded_run_has_every_reward_that_it_had_when_it_ended(tmp_path: Path) -> None:
    recorded = random_runs(tmp_path, 40)
    recorded.written()
    found = graded_anew(recorded)
    assert not found.left_out
    assert same(found, recorded) == 40 * (len(REWARDS) - 3)
    # AT-GRPO's read turns of roles, and these runs have none.
    assert found.lacking.keys() == {"at-grpo", "at-grpo-lambda", "at-grpo-as-released"}


@pytest.mark.soak
def test_a_thousand_random_runs_have_their_rewards_within_a_minute_of_cpu(tmp_path: Path) -> None:
    recorded = random_runs(tmp_path, RUNS)
    recorded.written()
    began = time.process_time()
    found = graded_anew(recorded)
    seconds = time.process_time() - began
    assert not found.left_out
    assert same(found, recorded) == RUNS // SAMPLES * SAMPLES * (len(REWARDS) - 3)
    assert len(found.items) / seconds >= 1000 / 60


@pytest.mark.parametrize("bound", [{}, {"summariser": "helper"}], ids=["unbound", "a summariser"])
def test_rollouts_of_a_training_have_the_rewards_that_they_were_trained_with(
    tmp_path: Path, bound: dict[str, str]
) -> None:
    rambler = Rambler(7)
    engine = RolloutEngine(ScriptedPolicy(lambda context, prompt: rambler.text()), limits=TokenLimits(400, 20_000))
    helper = ct.ModelSpec("helper", partial(Rambler, 3), "", ct.Prices(3.0, 7.0))
    pool = ct.Pool.of(add, ask, fake_tool("fail", raises=ValueError("no")), helper, worker="helper", **bound)
    asked = [
        Assignment(replace(QUESTION, id=f"q{place}"), pool, strategy, budget=ct.Budget(rounds=4))
        for place, strategy in enumerate((ParallelRounds(), ParallelRounds(summariser="summariser"), SerialCalls()))
    ]
    recorded = Recorded(tmp_path)
    rollouts = engine.run_sync(asked, group_size=SAMPLES)
    engine.close()
    for place in range(0, len(rollouts), SAMPLES):
        group = rollouts[place : place + SAMPLES]
        for each in group:
            each.run.write_trace(tmp_path / f"{each.id}.trace.jsonl")
        items = [
            Item.of_run(
                Key("policy", each.assignment.task.id, each.sample),
                each.assignment.task,
                each.grade,
                each.run,
                pool,
                trace=f"{each.id}.trace.jsonl",
            )
            for each in group
        ]
        recorded.add([(item, each.episode) for item, each in zip(items, group, strict=True)])
    recorded.written()
    found = graded_anew(recorded)
    assert not found.left_out
    assert same(found, recorded) >= len(rollouts) * 6


class Rightly(ct.Model):
    """Plays both roles of a plan-path workflow: the way to the goal, or a step of it, or none."""

    def __init__(self, moves: str, seed: int) -> None:
        self.moves, self.random = moves, random.Random(seed)

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """Some of the moves."""
        moves = self.moves[: self.random.randint(0, len(self.moves))]
        return ct.Reply(f"#### {json.dumps(list(moves))}", usage=ct.Usage(input_tokens=5, output_tokens=5))


def test_turns_of_roles_are_judged_again_as_in_the_run(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path)
    known: dict[str, tuple[Task, TaskSet]] = {}
    workflow = workflow_for("plan-path", python="plan_path", turns=3)
    workflow = replace(workflow, roles=tuple(replace(role, tools=()) for role in workflow.roles))
    grade = Grade(Verdict.RIGHT, "the goal is reached")
    home = TaskSet("environment/plan-path", "", lambda: iter(()), world_of)
    scripts = Scripts()
    for task in tasks("plan-path", count=3):
        group = []
        for sample in range(SAMPLES):
            pool = ct.Pool([ct.ModelSpec("m", partial(Rightly, oracle_of(task)["moves"], sample))])
            pool = pool.adding(*world_of(task).members())
            path = tmp_path / f"{task.id.replace('/', '-')}-{sample}.trace.jsonl"
            run, watch = asyncio.run(watched(workflow, task, pool, path, scripts))
            key = Key("roles", task.id, sample)
            item = Item.of_run(key, task, grade, run, pool, trace=path.name)
            episode = Episode.of_run(
                run, grade, group=task.id, sample=sample, pool=pool, turns=watch.turns, domain=watch.domain
            )
            group.append((item, episode))
            assert watch.turns
        recorded.add(group)
        known[task.id] = (task, home)
    scripts.close()
    recorded.written()
    found = graded_anew(recorded, known)
    assert not found.left_out
    assert {"at-grpo", "at-grpo-lambda"} <= recorded.online[recorded.items[0].key].keys()
    assert same(found, recorded)
    assert len({item.values["reward at-grpo"] for item in found.items.values()}) > 1


async def watched(
    strategy: ct.Strategy, task: Task, pool: ct.Pool, path: Path, scripts: Scripts
) -> tuple[ct.Run, RoleTurns]:
    """A run whose turns are looked at as the rollout engine does."""
    watch = RoleTurns(task, scripts)
    async with ct.Executor() as executor:
        run = ct.Orchestrator("m", strategy, executor=executor).stepped(task.question, pool=pool)
        watch.look(run.machine)
        while not run.done:
            await (run.act() if isinstance(run.step, Act) else run.ask())
            if run.done or not isinstance(run.step, Act):
                watch.look(run.machine)
        done = await run.close()
    done.write_trace(path)
    return done, watch


def test_a_reward_that_compares_is_not_given_half_of_a_group(tmp_path: Path) -> None:
    recorded = random_runs(tmp_path, 8)
    recorded.written()
    trace = tmp_path / recorded.items[1].trace
    trace.write_bytes(trace.read_bytes()[:-200])
    found = graded_anew(recorded)
    assert {each.reason for each in found.left_out} == {"unreadable trace", "group"}
    assert {each.key.task for each in found.left_out} == {"q0"}
    assert {key.task for key in found.items} == {"q1"}


def test_a_reward_of_a_file_is_scored_and_an_unknown_one_is_told_with_near_names(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"name": "mine", "terms": {"ok": {"term": "shared/ok-calls"}}}')
    (reward,) = choose_rewards([str(file)], installed_run_rewards())
    assert reward.name == "mine"
    with pytest.raises(ct.UsageError, match="there is no reward 'paramanger'; did you mean 'paramanager'"):
        choose_rewards(["paramanger"], installed_run_rewards())
    with pytest.raises(ct.UsageError, match="two rewards are called 'gap'"):
        choose_rewards(["gap", "all"], installed_run_rewards())


def test_scoring_nothing_gives_nothing() -> None:
    nothing: list[GradedRun] = []
    assert PRESETS["paramanager"].score_runs(nothing) == []
