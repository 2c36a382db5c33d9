"""Groups that are played ahead of their step: how old they get, what waits for what, and that 0 changes nothing."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from concertino import Pool, UsageError, tool
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino_bench import Task
from concertino_train.cli.dry_run import dry_run
from concertino_train.cli.options import TrainingOptions
from concertino_train.config import TrainConfig, load_config
from concertino_train.policies import Prompt, ScriptedPolicy
from concertino_train.rl import RlResult, run_rl, steps
from concertino_train.rl.training import algorithm_of, check_rl
from concertino_train.rollouts import Assignment, Rollout, RolloutEngine, TokenLimits
from concertino_train.rollouts.engine import Player
from concertino_train.rollouts.group_stream import GroupStream, StreamSettings

Settings = Callable[..., TrainConfig]
CALL = '<reasoning>r</reasoning>\n<tool_call>{"name": "look", "arguments": {}}</tool_call>'


class Bench:
    """A stream over questions whose calls end when the test says so."""

    def __init__(self, **settings: Any) -> None:
        self.held: dict[str, asyncio.Event] = {}
        self.calls: Counter[str] = Counter()
        self.policy = ScriptedPolicy(self.said)
        self.engine = RolloutEngine(self.policy, limits=TokenLimits(turn=2000, total=20_000), patience=0.01)
        self.asked = 0
        own = {"group_size": 2, "groups": 2, "steps": 5, **settings}
        self.stream = GroupStream(self.engine, self.numbers, self.assignment, StreamSettings(**own))
        self.taken: list[tuple[int, str, int]] = []

    def said(self, context: str, prompt: Prompt) -> str:
        return "<answer>8</answer>" if context.count("<|begin|>assistant") > 1 else CALL

    def numbers(self, count: int) -> list[int]:
        self.asked += count
        return list(range(self.asked - count, self.asked))

    def assignment(self, number: int) -> Assignment:
        name = f"q{number}"

        @tool
        async def look() -> str:
            """Look, for as long as the test says."""
            self.calls[name] += 1
            if name in self.held:
                await self.held[name].wait()
            return name

        return Assignment(Task(name, f"{name}?", ("8",), "text"), Pool.of(look), ParallelRounds())

    def step(self, step: int) -> list[list[Rollout]]:
        """A step of training: its groups, and an update."""
        self.engine.wait(self.stream.hold())
        self.policy.version = step - 1
        groups = self.engine.wait(asyncio.wait_for(self.stream.take(step), 20))
        for group in groups:
            for rollout in group:
                for turn in rollout.sequences[0].turns:
                    self.taken.append((step, rollout.assignment.task.id, step - 1 - turn.version))
        return groups

    def hold(self, *names: str) -> None:
        self.held = {name: asyncio.Event() for name in names}

    def free(self, name: str) -> None:
        self.engine.wait(self._set(name))

    async def _set(self, name: str) -> None:
        self.held[name].set()


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**settings: Any) -> Bench:
        made.append(Bench(**settings))
        return made[-1]

    yield make
    for each in made:
        each.engine.close()


def tasks(groups: list[list[Rollout]]) -> list[str]:
    return [group[0].assignment.task.id for group in groups]


@pytest.mark.parametrize("staleness", [0, 1, 2, 3])
def test_no_token_is_older_than_the_bound_and_every_question_is_taken_once(
    bench: Callable[..., Bench], staleness: int
) -> None:
    made = bench(staleness=staleness, steps=6)
    names = [name for step in range(1, 7) for name in tasks(made.step(step))]
    assert sorted(names) == sorted(f"q{number}" for number in range(12))
    assert {age for _, _, age in made.taken if age > staleness} == set()
    assert max(age for _, _, age in made.taken) == staleness
    assert set(made.calls.values()) == {2}


def test_a_slow_group_delays_no_step_until_it_may_not_get_older(bench: Callable[..., Bench]) -> None:
    made = bench(staleness=2)
    made.hold("q0")
    assert tasks(made.step(1)) == ["q1", "q2"]
    assert tasks(made.step(2)) == ["q3", "q4"]

    async def freed_later() -> None:
        await asyncio.sleep(0.05)
        made.held["q0"].set()

    made.engine.wait(_begun(freed_later()))
    assert tasks(made.step(3)) == ["q0", "q5"]  # it was waited for: one update more, and it would be too old
    assert max(age for _, _, age in made.taken) == 2


async def _begun(work: Any) -> None:
    KEPT.append(asyncio.create_task(work))


KEPT: list[Any] = []


def test_a_group_that_would_get_too_old_is_dropped_where_the_settings_say_so(bench: Callable[..., Bench]) -> None:
    made = bench(staleness=1, stale="drop", steps=3)
    made.hold("q0")
    assert tasks(made.step(1)) == ["q1", "q2"]
    assert tasks(made.step(2)) == ["q3", "q4"]
    assert made.stream.dropped == 1
    assert tasks(made.step(3)) == ["q5"]
    assert (made.stream.dropped, made.stream.open) == (0, 0)


def test_nothing_is_sampled_between_two_steps_and_calls_go_on(bench: Callable[..., Bench]) -> None:
    made = bench(staleness=1)
    made.hold("q2", "q3")
    made.step(1)
    batches = list(made.policy.batches)
    for name in ("q2", "q3"):
        made.free(name)
    made.engine.wait(asyncio.sleep(0.1))
    assert made.policy.batches == batches
    assert tasks(made.step(2)) == ["q2", "q3"]
    assert made.calls["q2"] == 2, "the call that was under way was made once in each rollout"


def test_what_was_open_at_a_checkpoint_is_played_on_under_the_same_names(bench: Callable[..., Bench]) -> None:
    one, two = bench(staleness=1), bench(staleness=1)
    one.hold("q0")
    one.step(1)
    state = json.loads(json.dumps(one.stream.state_dict()))
    two.asked = one.asked
    two.stream.load_state_dict(state)
    one.free("q0")
    first, second = one.step(2), two.step(2)
    assert [rollout.id for group in first for rollout in group] == [rollout.id for group in second for rollout in group]
    assert tasks(first) == tasks(second) == ["q0", "q3"]
    assert [group[0].sequences[0].ids for group in first] == [group[0].sequences[0].ids for group in second]


def test_an_error_in_one_group_ends_the_others_and_is_raised(bench: Callable[..., Bench]) -> None:
    made = bench(staleness=2)
    made.hold("q3")
    said = made.policy.script

    def broken(context: str, prompt: Prompt) -> Any:
        if "q1?" in context:
            raise UsageError("the logits are not finite")
        return said(context, prompt)

    made.policy.script = broken
    with pytest.raises(UsageError, match="not finite"):
        made.step(1)
    assert made.stream.open == 0


class Synchronous(steps.StepCollector):
    """Plays all rollouts of a step, and nothing else."""

    def _plainly(self, step: int) -> Any:
        numbers = self.questions.numbers(self._sampler.groups)
        asked = [self.questions.assignment(number) for number in numbers]
        size = self.config.rollout.group_size
        fresh = self.engine.run_sync(asked, group_size=size, seed=self._seed, step=step)
        rewards = self._rewards(fresh)
        return fresh, [steps._kept(each, reward) for each, reward in zip(fresh, rewards, strict=True)], {}


def weights(result: RlResult) -> dict[str, Any]:
    from safetensors.torch import load_file

    assert result.model is not None
    return dict(load_file(result.model / "model.safetensors"))


def trained(folder: Path, *more: str) -> RlResult:
    from .conftest import SETTINGS

    longer = ("rollout.turn_tokens=20", "rollout.total_tokens=60", "trainer.rl.steps=3")
    return run_rl(load_config(SETTINGS, [f"trainer.output={folder}", *longer, *more]))


@pytest.mark.slow
def test_with_a_staleness_of_0_the_weights_are_those_of_the_synchronous_loop_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = weights(trained(tmp_path / "ahead", "trainer.rl.max_staleness=0"))
    monkeypatch.setattr(steps, "StepCollector", Synchronous)
    plain = weights(trained(tmp_path / "plain"))
    assert ahead.keys() == plain.keys()
    assert all((ahead[name] == plain[name]).all() for name in ahead)


@pytest.mark.slow
def test_a_training_ahead_trains_no_token_that_is_too_old_and_corrects_for_their_age(tmp_path: Path) -> None:
    result = trained(tmp_path / "ahead", "trainer.rl.max_staleness=2", "trainer.rl.steps=5")
    lines = [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]
    ages = [line["ahead/staleness_max"] for line in lines]
    assert (len(ages), min(ages), max(ages)) == (5, 0, 2)
    assert all(line["ahead/stale"] == 0 and "sampling/weight_mean" in line for line in lines)


def test_rows_that_are_too_old_are_not_trained_whoever_let_them_through(bench: Callable[..., Bench]) -> None:
    from concertino_train.rewards.reward import Scored
    from concertino_train.rollouts import Batch

    made = bench(staleness=0)
    rollouts = [rollout for group in made.step(1) for rollout in group]
    scores = [Scored(float(number % 2)) for number in range(len(rollouts))]
    batch = Batch.of(rollouts, scores)
    assert batch.no_older_than(1, lambda role: 1).keep.all()
    old = batch.no_older_than(1, lambda role: 2)
    assert (int(old.keep.sum()), float(abs(old.credit).sum()), set(old.reasons)) == (0, 0.0, {"stale"})
    assert old.figures["ahead/stale"] == len(rollouts)


def test_the_correction_is_on_where_the_sampler_differs_and_nobody_said_otherwise(tiny: Settings) -> None:
    vllm, ahead = "rollout.backend=vllm", "trainer.rl.max_staleness=1"
    assert algorithm_of(tiny()).corrects == "none"
    assert algorithm_of(tiny(vllm)).corrects == algorithm_of(tiny(ahead)).corrects == "token_truncate"
    assert algorithm_of(tiny(vllm, "algorithm.correction=none")).corrects == "none"
    assert algorithm_of(tiny(vllm, "algorithm.correction=sequence_mask")).corrects == "sequence_mask"
    assert algorithm_of(tiny(vllm, "algorithm.old=sampled")).corrects == "none"


def test_dynamic_sampling_cannot_be_done_ahead(tiny: Settings) -> None:
    with pytest.raises(UsageError, match="leave one out"):
        check_rl(tiny("trainer.rl.max_staleness=1", "algorithm.sampling.enabled=true"))


def test_a_server_that_sleeps_while_the_model_is_updated_cannot_sample_then(tiny: Settings) -> None:
    with pytest.raises(UsageError, match=r"rollout\.server\.sleep"):
        check_rl(tiny("trainer.rl.max_staleness=1", "rollout.backend=vllm", "rollout.server.sleep=true"))


def test_what_no_server_can_do_for_several_processes_is_refused_before_anything_is_loaded_and_by_a_dry_run(
    tiny: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vllm, attached = "rollout.backend=vllm", "rollout.server.attach=http://127.0.0.1:8000"
    check_rl(tiny(vllm))
    monkeypatch.setenv("WORLD_SIZE", "2")
    check_rl(tiny(vllm, attached))
    for more, words in (
        ((), r"name it: rollout\.server\.attach="),
        ((attached, "model.adapter={rank: 2}"), r"model\.adapter=null"),
        ((attached, "rollout.server.sleep=true"), "put the server to sleep"),
    ):
        with pytest.raises(UsageError, match=words):
            check_rl(tiny(vllm, *more))
    monkeypatch.delenv("WORLD_SIZE")
    for processes, refused in ((2, True), (1, False)):
        given = TrainingOptions("toy", (), None, dry_run=True, live=None, as_json=True)
        dry_run(tiny(vllm, f"trainer.processes={processes}"), "rl", given)
        assert ("server.attach" in json.loads(capsys.readouterr().out)["refused"]) is refused


def test_groups_that_end_before_they_have_begun_leave_no_run_open(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, begun = bench(staleness=2), list[Player]()
    players = made.engine.players

    def noted(*arguments: Any) -> list[list[Player]]:
        found = players(*arguments)
        begun.extend(player for group in found for player in group)
        return found

    async def fails(step: int) -> Any:
        raise RuntimeError("at once")

    monkeypatch.setattr(made.engine, "players", noted)
    monkeypatch.setattr(made.stream, "_ripe", fails)
    with pytest.raises(RuntimeError, match="at once"):
        made.engine.wait(made.stream.take(1))
    assert len(begun) == 12
    for player in begun:
        with pytest.raises(UsageError, match="is closed"):
            player.run.fork("again")
