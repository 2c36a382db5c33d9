"""A model of the pool compares the answers of a group."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import concertino as ct
import pytest
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.testing import ScriptedModel
from concertino_bench import Task
from concertino_train.policies import Prompt, ScriptedPolicy
from concertino_train.rewards import Reward
from concertino_train.rollouts import Assignment, Rollout, RolloutEngine, TokenLimits, score_rollouts
from concertino_train.rollouts.judging import GroupJudge

REWARD = Reward.from_json({"terms": {"judged": {"term": "shared/judged"}}})
ANSWERS = ("good", "fair", "bad", "")
Scoring = Callable[[dict[str, str]], Any]


@ct.tool
def echo(text: str) -> str:
    """Repeat a text."""
    return text


def policy(context: str, prompt: Prompt) -> str:
    """Ends, and answers with a word that follows from the seed."""
    if context.count("<|begin|>assistant") > 1:
        return f"<answer>{ANSWERS[prompt.seed % len(ANSWERS)]}</answer>"
    call = json.dumps({"name": "final_answer", "arguments": {}})
    return f"<reasoning>r</reasoning>\n<tool_call>{call}</tool_call>"


def judging(score: Scoring, seen: list[dict[str, Any]] | None = None) -> ct.Pool:
    def reply(request: ct.ChatRequest) -> ct.Reply:
        shown = json.loads(request.messages[-1].text)
        if seen is not None:
            seen.append(shown)
        return ct.Reply(json.dumps(score(shown["answers"])), usage=ct.Usage(input_tokens=100, output_tokens=10))

    model = ct.ModelSpec("comparer", lambda: ScriptedModel(reply, strict=False), prices=ct.Prices(1, 1))
    return ct.Pool.of(echo, model, judge="comparer")


@pytest.fixture
def rolled() -> Iterator[tuple[RolloutEngine, list[Rollout]]]:
    engine = RolloutEngine(ScriptedPolicy(policy), limits=TokenLimits(turn=400, total=4000))
    task = Task("t/1", "How are you?", ("well",), "text")
    pool = ct.Pool.of(echo)
    yield engine, engine.run_sync([Assignment(task, pool, ParallelRounds())], group_size=12, seed=1)
    engine.close()


def by_quality(answers: dict[str, str]) -> dict[str, int]:
    return {letter: {"good": 9, "fair": 5, "bad": 1}[answer] for letter, answer in answers.items()}


def test_answers_are_compared_once_each_and_scored_as_a_reward(rolled: tuple[RolloutEngine, list[Rollout]]) -> None:
    engine, rollouts = rolled
    seen: list[dict[str, Any]] = []
    engine.wait(GroupJudge(engine, judging(by_quality, seen)).judge(rollouts))
    (shown,) = seen
    assert shown["question"] == "How are you?"
    assert sorted(shown["answers"].values()) == ["bad", "fair", "good"]
    scored = score_rollouts(rollouts, REWARD)
    worth = {"good": 0.9, "fair": 0.5, "bad": 0.1, "": 0.0}
    assert [each.total for each in scored] == [worth[rollout.episode.answer or ""] for rollout in rollouts]
    assert all(rollout.episode.totals.usd == 0 for rollout in rollouts)


@pytest.mark.parametrize("said", [{"A": 3}, ["A"], {"A": "good", "B": 1, "C": 1}, {"A": 11, "B": 1, "C": 1}])
def test_scores_that_cannot_be_read_teach_nothing(said: Any, rolled: tuple[RolloutEngine, list[Rollout]]) -> None:
    engine, rollouts = rolled
    judge = GroupJudge(engine, judging(lambda answers: said))
    engine.wait(judge.judge(rollouts))
    assert {rollout.episode.judged for rollout in rollouts} == {0.5}
    assert judge.unreadable == 1


def test_the_order_of_answers_is_drawn(rolled: tuple[RolloutEngine, list[Rollout]]) -> None:
    engine, rollouts = rolled
    seen: list[dict[str, Any]] = []
    judge = GroupJudge(engine, judging(by_quality, seen))
    for seed in range(8):
        engine.wait(judge.judge(rollouts, seed))
    assert len({tuple(shown["answers"].values()) for shown in seen}) > 1


def test_episodes_that_nobody_judged_are_refused_with_the_setting(rolled: tuple[RolloutEngine, list[Rollout]]) -> None:
    _, rollouts = rolled
    with pytest.raises(ct.UsageError, match=r"rollout\.judge=\{model: judge\}"):
        score_rollouts(rollouts, REWARD)


def test_a_pool_without_a_judge_is_refused(rolled: tuple[RolloutEngine, list[Rollout]]) -> None:
    engine, _ = rolled
    with pytest.raises(ct.UsageError, match=r"rollout\.judge\.model: .*judge"):
        GroupJudge(engine, ct.Pool.of(echo))
