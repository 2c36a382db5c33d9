"""Tree sampling over role workflows: groups of one role's turn, and the path that is chosen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from concertino import Pool, UsageError
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino_bench import Task
from concertino_bench.environments import oracle_of, tasks, workflow_for, world_of
from concertino_train.groups import Filters
from concertino_train.policies import Prompt, ScriptedPolicy
from concertino_train.rewards import Reward
from concertino_train.rollouts import Assignment, Batch, RolloutEngine, TokenLimits, TreeSampler, score_rollouts
from concertino_train.rollouts.tree import Credit

TASK = next(tasks("plan-path", 1, seed=3, level=5))
REWARD = Reward.from_json({"name": "r", "terms": {"mix": {"term": "at-grpo/alpha"}}})
TEAM = Reward.from_json({"name": "r", "terms": {"team": {"term": "at-grpo/team"}}})


def assignment(task: Task = TASK, turns: int = 2) -> Assignment:
    workflow = workflow_for("plan-path", python="plan_path", turns=turns)
    from dataclasses import replace

    roles = tuple(replace(role, tools=()) for role in workflow.roles)
    return Assignment(task, Pool([]), replace(workflow, roles=roles), world=world_of)


def script(context: str, prompt: Prompt) -> str:
    """The programmer writes a script; the planner goes the right way with some seeds and a wall's with others."""
    if prompt.role == "programmer" or context.rstrip().endswith("```") or "programmer" in context[-60:]:
        return "```python\nprint('x')\n```"
    moves = list(oracle_of(TASK)["moves"]) if prompt.seed % 3 else ["U"]
    return f"#### {json.dumps(moves)}"


@pytest.fixture
def engine() -> Iterator[RolloutEngine]:
    made = RolloutEngine(ScriptedPolicy(script), limits=TokenLimits(turn=400, total=20_000))
    yield made
    made.close()


def test_every_turn_of_a_role_has_a_group_of_candidates_behind_one_prompt(engine: RolloutEngine) -> None:
    (rollout,) = TreeSampler(engine, REWARD).run_sync([assignment()], group_size=6, seed=1)
    batch = Batch.of([rollout], score_rollouts([rollout], TEAM), grouping="agent_turn", size=6)
    keys = {row.key for row in batch.rows}
    assert {key.agent for key in keys} == {"programmer", "planner"}
    for key in keys:
        rows = [n for n, row in enumerate(batch.rows) if row.key == key]
        assert len({batch.rows[n].prompt for n in rows}) == 1
        assert abs(batch.credit[rows].mean()) < 1e-6
        assert all(len(batch.rows[n].turns) == 1 for n in rows)


def test_a_rollout_that_nobody_was_asked_in_adds_nothing_to_a_batch(engine: RolloutEngine) -> None:
    full, empty = TreeSampler(engine, REWARD).run_sync([assignment(), assignment()], group_size=2, seed=1)
    empty.candidates = []
    batch = Batch.of([full, empty], score_rollouts([full, empty], TEAM), grouping="agent_turn")
    assert len(batch) == len(full.candidates)
    with pytest.raises(UsageError, match="has no candidates, nor has any other"):
        Batch.of([empty], score_rollouts([empty], TEAM), grouping="agent_turn")


def test_greedy_goes_on_with_the_best_candidate_and_solves_what_one_of_them_solves(engine: RolloutEngine) -> None:
    (rollout,) = TreeSampler(engine, REWARD).run_sync([assignment(turns=1)], group_size=6, seed=1)
    planner = [each for each in rollout.candidates if each.key.agent == "planner"]
    assert len({each.reward.total for each in planner}) == 2
    assert rollout.episode.right
    assert [each.reward.total for each in planner if each.chosen] == [max(each.reward.total for each in planner)]
    assert rollout.sequences[-1].ids == next(each.sequence.ids for each in planner if each.chosen)


def test_a_sampled_branch_follows_its_seed_and_not_the_reward(engine: RolloutEngine) -> None:
    def chosen(seed: int) -> list[bool]:
        sampler = TreeSampler(engine, REWARD, branch="sampled")
        (rollout,) = sampler.run_sync([assignment(turns=1)], group_size=6, seed=seed)
        return [each.chosen for each in rollout.candidates]

    found = [chosen(seed) for seed in range(4)]
    assert found == [chosen(seed) for seed in range(4)]
    assert len({tuple(each) for each in found}) > 1


def test_turns_of_whole_rollouts_are_judged_as_those_of_trees(engine: RolloutEngine) -> None:
    rollouts = engine.run_sync([assignment()], group_size=4, seed=2)
    assert all(rollout.episode.turns for rollout in rollouts)
    assert {turn.role for rollout in rollouts for turn in rollout.episode.turns} == {"planner"}  # no script was run
    solved = [rollout.episode.turns[-1].team for rollout in rollouts]
    assert [team == 1.0 for team in solved] == [rollout.episode.right for rollout in rollouts]
    batch = Batch.of(rollouts, score_rollouts(rollouts, TEAM), filters=Filters(homogeneity=0.1))
    assert {row.rollout for row in batch.rows} == {0, 1, 2, 3}


def test_what_has_no_turns_to_score_is_refused(engine: RolloutEngine) -> None:
    with pytest.raises(UsageError, match="2 candidates"):
        TreeSampler(engine, REWARD).run_sync([assignment()], group_size=1)
    task = Task("t", "q", ("8",), "text")
    plain: Any = Assignment(task, Pool(assignment().world(TASK).members()), ParallelRounds())  # type: ignore[misc]
    with pytest.raises(UsageError, match="role workflow"):
        TreeSampler(engine, REWARD).run_sync([plain], group_size=2)
    rollouts = engine.run_sync([assignment()], group_size=2)
    with pytest.raises(UsageError, match="tree sampling"):
        Batch.of(rollouts, score_rollouts(rollouts, TEAM), grouping="agent_turn")


def first_right(context: str, prompt: Prompt) -> str:
    """The programmer's script names right or wrong moves; the planner takes those."""
    right, wrong = json.dumps(list(oracle_of(TASK)["moves"])), json.dumps(["U", "U", "U", "U"])
    if prompt.role == "programmer":
        return f"```python\n# moves {right if prompt.seed % 2 else wrong}\nprint('x')\n```"
    said = re.findall(r"# moves (\[.*?\])", context)
    return f"#### {said[-1] if said else wrong}"


@pytest.mark.parametrize(("credit", "rewards"), [("turn", 2), ("text", 1)])
def test_a_role_that_speaks_first_is_credited_through_the_completed_turn(credit: Credit, rewards: int) -> None:
    engine = RolloutEngine(ScriptedPolicy(first_right), limits=TokenLimits(turn=400, total=20_000))
    try:
        sampler = TreeSampler(engine, TEAM, credit=credit)
        (rollout,) = sampler.run_sync([assignment(turns=1)], group_size=8, seed=1)
    finally:
        engine.close()
    first = [each for each in rollout.candidates if each.key.agent == "programmer"]
    assert len({each.reward.total for each in first}) == rewards
    if credit == "turn":
        assert [each.reward.total for each in first if each.chosen] == [1.0]
        assert rollout.episode.right
