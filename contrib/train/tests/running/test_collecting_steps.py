"""The batch of a step: which questions it asks, what it samples on, what of it can be written down and taken up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from concertino import Trace
from concertino_train.config import TrainConfig
from concertino_train.config.named import make_reward
from concertino_train.factories.learners import make_engine
from concertino_train.factories.questions import Questions, evaluation_assignments
from concertino_train.policies import Prompt, ScriptedPolicy
from concertino_train.rl.steps import StepCollector
from concertino_train.rollouts import Batch, Rollout
from concertino_train.rollouts.engine import Player
from concertino_train.running.traces import TraceWriter

Settings = Callable[..., TrainConfig]


@pytest.fixture
def collector(tiny: Settings) -> Iterator[Callable[..., StepCollector]]:
    """A collector whose policy answers some samples right away and says nothing in others, as a script says."""
    engines = []

    def make(script: Any = None, *overrides: str, questions: Questions | None = None, **more: Any) -> StepCollector:
        config = tiny(*overrides)
        engine = make_engine(config, ScriptedPolicy(script or (lambda text, prompt: "0123456789"[: prompt.seed % 7])))
        engines.append(engine)
        return StepCollector(config, engine, questions or Questions(config), make_reward(config.reward), **more)

    yield make
    for engine in engines:
        engine.close()


def groups(batch: Batch) -> list[str]:
    return list(dict.fromkeys(row.key.question for row in batch.rows))


def step(collector: StepCollector, generation: int) -> Batch:
    return collector([None, None], generation)


def test_every_question_is_asked_once_in_a_pass(collector: Callable[..., StepCollector]) -> None:
    made = collector()
    asked = [name for generation in range(3) for name in groups(step(made, generation))]
    assert len(asked) == len(set(asked)) == 6
    assert len(groups(step(made, 3))) == 2


def test_no_two_runs_of_trainings_processes_steps_and_tests_have_one_id_but_those_of_a_resumed_training(
    tiny: Settings, collector: Callable[..., StepCollector], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Keys under which paid calls are made follow from the ids: two calls with one key would have one answer.
    def ids(*overrides: str, sampled_on: bool = False) -> list[str]:
        more = ("algorithm.sampling.enabled=true",) if sampled_on else ()
        tests = evaluation_assignments(tiny())
        made, found = collector(None, "trainer.eval.batch=1", *overrides, *more, tests=tests), list[str]()
        finish = made.engine.finish

        async def noted(player: Player, *given: Any) -> Rollout:
            found.append(player.run.id)
            return await finish(player, *given)

        monkeypatch.setattr(made.engine, "finish", noted)
        for number in range(2):
            made.engine.policies[""].version = number
            step(made, number)
            made.measure()
        return found

    first = ids()
    assert sorted(ids()) == sorted(first)
    others = [ids("trainer.seed=5"), ids("pool.make.twin=true"), ids(sampled_on=True)]
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    every = [each for found in (first, *others, ids()) for each in found]
    assert len(every) > 50
    assert len(set(every)) == len(every)


def test_figures_of_a_step_tell_of_rollouts_rewards_and_time(collector: Callable[..., StepCollector]) -> None:
    figures = step(collector(), 0).figures
    assert {"reward", "reward/drawn", "success", "format", "rounds", "tokens", "tokens_per_second"} <= set(figures)
    assert {"seconds/generate", "seconds/environment", "seconds/grading", "sampled"} <= set(figures)
    assert figures["groups"] == 2.0


def test_a_step_is_the_same_again_with_the_same_state(collector: Callable[..., StepCollector]) -> None:
    one, two = collector(), collector()
    step(one, 0)
    two.load_state_dict(json.loads(json.dumps(one.state_dict())))
    first, second = step(one, 1), step(two, 1)
    assert [row.key for row in first.rows] == [row.key for row in second.rows]
    assert [row.completion for row in first.rows] == [row.completion for row in second.rows]


def test_rewards_that_are_dealt_out_stay_in_their_groups_and_say_nothing_of_rollouts(
    collector: Callable[..., StepCollector],
) -> None:
    many = (SHORT, "rollout.group_size=8")
    plain = step(collector(None, *many), 0)
    dealt = step(collector(None, *many, "algorithm.shuffle_rewards=true"), 0)
    again = step(collector(None, *many, "algorithm.shuffle_rewards=true"), 0)
    assert [row.completion for row in dealt.rows] == [row.completion for row in plain.rows]
    assert dealt.rewards.tolist() != plain.rewards.tolist()
    assert dealt.rewards.tolist() == again.rewards.tolist()
    for name in groups(plain):
        own = [n for n, row in enumerate(plain.rows) if row.key.question == name]
        assert sorted(dealt.rewards[own]) == pytest.approx(sorted(plain.rewards[own]))


TREE = (
    "pool={make: {name: practice-workflow}}",
    "tasks={train: [{set: environments/plan-path, options: {split: train, count: 6, level: 5, at_once: 1}}], eval: []}",
    "rollout.strategy={name: role-workflow, make: practice, environment: plan-path, stepwise: true, turns: 3}",
    "rollout.tree={branch: sampled}",
    "rollout.group_size=4",
    "rollout.turn_tokens=40",
    "rollout.total_tokens=400",
    "algorithm.grouping=agent_turn",
    "reward={preset: at-grpo}",
)


def test_rewards_of_the_texts_of_a_turn_are_dealt_out_within_their_turn(
    collector: Callable[..., StepCollector],
) -> None:
    def moves(text: str, prompt: Prompt) -> str:
        return f'#### ["{"UDLR"[prompt.seed % 4]}"]'

    plain = step(collector(moves, *TREE), 0)
    dealt = step(collector(moves, *TREE, "algorithm.shuffle_rewards=true"), 0)
    assert [row.completion for row in dealt.rows] == [row.completion for row in plain.rows]
    assert dealt.rewards.tolist() != plain.rewards.tolist()
    for key in {str(row.key) for row in plain.rows}:
        own = [n for n, row in enumerate(plain.rows) if str(row.key) == key]
        assert sorted(dealt.rewards[own]) == pytest.approx(sorted(plain.rewards[own]))


SHORT = "reward.terms={short: {term: shared/spending, of: sequence_tokens, limit: 500}}"
SAMPLING = (SHORT, "algorithm.sampling={enabled: true, by: reward, most_rounds: 4}")


def alike_at_first() -> Callable[[str, Prompt], str]:
    """Rollouts of the question that is asked first are all alike; those of others differ."""
    first: list[str] = []

    def script(text: str, prompt: Prompt) -> str:
        question = text.rpartition("user")[2]
        first.append(question)
        return "same" if question == first[0] else "different"[: 1 + prompt.seed % 8]

    return script


def test_dynamic_sampling_goes_on_until_groups_differ(collector: Callable[..., StepCollector]) -> None:
    made = collector(alike_at_first(), *SAMPLING)
    batch = step(made, 0)
    assert len(groups(batch)) == 2
    assert batch.figures["groups/zero_variance"] == 0.0
    assert batch.figures["sampling/all_equal"] > 0
    assert batch.figures["sampling/sampled"] == batch.figures["sampling/all_equal"] + 2
    assert all("@1." in name for name in groups(batch))


def test_dynamic_sampling_gives_up_and_says_how_much_is_missing(collector: Callable[..., StepCollector]) -> None:
    made = collector(lambda text, prompt: "same", *SAMPLING)
    batch = step(made, 0)
    assert len(batch) == 0
    assert (batch.figures["sampling/rounds"], batch.figures["sampling/all_equal"]) == (4.0, 8.0)
    assert made.questions.position == 8


def test_groups_that_are_left_over_wait_for_the_next_step_and_survive_a_checkpoint(
    collector: Callable[..., StepCollector],
) -> None:
    over = ("algorithm.sampling={enabled: true, by: reward, oversample: 2, max_age: 1}",)
    one = collector(lambda text, prompt: "different"[: 1 + prompt.seed % 8], *over)
    step(one, 0)
    state = json.loads(json.dumps(one.state_dict()))
    waiting = [each["key"] for each in state["sampler"]["buffer"]]
    assert waiting
    two = collector(lambda text, prompt: "different"[: 1 + prompt.seed % 8], *over)
    two.load_state_dict(state)
    first, second = step(one, 1), step(two, 1)
    assert groups(first)[: len(waiting)] == waiting
    assert [row.completion for row in first.rows] == [row.completion for row in second.rows]
    assert one.questions.position == two.questions.position


def test_ranks_share_the_questions_of_a_pass(tiny: Settings, collector: Callable[..., StepCollector]) -> None:
    four = "trainer.rl.questions_per_step=4"
    config = tiny(four)
    both = [collector(None, four, questions=Questions(config, rank=rank, ranks=2)) for rank in (0, 1)]
    asked = [name for made in both for name in groups(step(made, 0))]
    alone = collector(None, four, questions=Questions(config))
    assert sorted(asked) == sorted(groups(alone([None] * 4, 0)))


def test_what_is_compared_in_the_first_batch_is_shown_once(collector: Callable[..., StepCollector]) -> None:
    seen: list[Any] = []
    made = collector(None, first=lambda batch, compared: seen.append([len(group) for group in compared.values()]))
    step(made, 0)
    step(made, 1)
    assert seen == [[2, 2]]


def test_traces_are_written_where_they_are_due(
    tiny: Settings, collector: Callable[..., StepCollector], tmp_path: Path
) -> None:
    made = collector(None, traces=TraceWriter(tmp_path, tiny().logging.traces))
    for generation in range(3):
        step(made, generation)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000001", "step-000002"]
    (file,) = (tmp_path / "step-000002").glob("*.trace.jsonl")
    assert Trace.load(file).finished


def test_the_drift_of_a_step_is_beside_its_traces_by_turn(
    tiny: Settings, collector: Callable[..., StepCollector], tmp_path: Path
) -> None:
    made = collector(None, traces=TraceWriter(tmp_path, tiny().logging.traces))
    batch = step(made, 0)
    drift = {number: [number + 0.00004] * row.trained for number, row in enumerate(batch.rows)}
    made.hear_drift(0, lambda: drift)
    home = tmp_path / "step-000001"
    (trace,) = home.glob("*.trace.jsonl")
    (line,) = [json.loads(text) for text in (home / "drift.jsonl").read_text().splitlines()]
    assert line["id"] == trace.name.removesuffix(".trace.jsonl")
    own = next(
        rewards
        for rewards in map(json.loads, (home / "rewards.jsonl").read_text().splitlines())
        if rewards["id"] == line["id"]
    )
    assert [int(turn) for turn in line["turns"]] == own["rows"][0]["turns"]
    replies = [each["reply"]["logprobs"] for each in Trace.load(trace).of_kind("reply")]
    assert [len(values) for values in line["turns"].values()] == [len(each) for each in replies]
    assert all(value == round(value) for values in line["turns"].values() for value in values)
    step(made, 2)  # whose traces are not written
    made.hear_drift(2, lambda: pytest.fail("computed for nothing"))


def test_the_policy_is_measured_greedily_and_goes_on_as_it_was(
    tiny: Settings, collector: Callable[..., StepCollector]
) -> None:
    met: list[tuple[float, int]] = []
    policy = ScriptedPolicy(lambda text, prompt: "x")
    config = tiny("trainer.rl.eval_every=2")
    made = collector(None, "trainer.rl.eval_every=2", tests=evaluation_assignments(config), before=lambda n: None)
    made.engine.policies = {"": policy}

    def script(text: str, prompt: Prompt) -> str:
        met.append((policy.temperature, len(policy.batches)))
        return "x"

    policy.script = script
    policy.temperature = 0.7
    first, second = step(made, 0), step(made, 1)
    assert "eval/success" in first.figures
    assert "eval/success" not in second.figures
    assert {temperature for temperature, _ in met} == {0.0, 0.7}
    assert policy.temperature == 0.7


def test_what_comes_before_a_step_is_told_its_number(collector: Callable[..., StepCollector]) -> None:
    told: list[int] = []
    made = collector(None, before=told.append)
    step(made, 0)
    step(made, 1)
    assert told == [1, 2]
