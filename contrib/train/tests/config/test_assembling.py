"""From settings to what they name: pools and their variations, strategies, questions, budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from concertino import Budget, UsageError
from concertino_train.config import TrainConfig, load_config
from concertino_train.config.named import make_strategy
from concertino_train.factories.models import common_lines
from concertino_train.factories.pools import VariedPool, make_pool
from concertino_train.factories.questions import Questions, evaluation_assignments

PRACTICE: dict[str, Any] = {
    "pool": {"make": {"name": "practice"}},
    "tasks": {
        "train": [{"set": "practice/facts", "options": {"split": "train", "count": 5}}],
        "eval": [{"set": "practice/facts", "options": {"count": 3}}],
    },
    "rollout": {"strategy": {"name": "parallel-rounds", "prompt": "brief"}, "budget": {"calls": 7}},
}
VARIED = """pool.variation={keep: 0.5, always: [juniper], rename: 0.3,
make: [{manners: [cheap, sure]}, {manners: [sure, quick]}],
costs: [{birch: {units: 9}}, {birch: {units: 2, usd: 0.5}}], preference_share: 0.5,
preferences: [{text: Be quick., seconds: 1.0, members: {birch: 0.5}}]}"""


def practice(*overrides: str) -> TrainConfig:
    return load_config(PRACTICE, overrides)


def test_a_variation_follows_from_the_seed_and_the_number_alone() -> None:
    one, two = VariedPool(practice(VARIED).pool, 3), VariedPool(practice(VARIED).pool, 3)
    pools = [one.draw(number)[0].id for number in range(12)]
    assert pools == [two.draw(number)[0].id for number in reversed(range(12))][::-1]
    assert len(set(pools)) == 12
    assert pools != [VariedPool(practice(VARIED).pool, 4).draw(number)[0].id for number in range(12)]


@pytest.mark.parametrize(
    ("pool", "unseen"),
    [
        ({"make": {"name": "practice"}}, []),
        ({"members": ["toy/*"]}, ["names", "order", "cards"]),
        ({"file": "pool.toml", "variation": {"keep": 0.5}}, ["names", "order", "cards"]),
        ({}, ["names", "order", "cards"]),
        ({"members": ["toy/*"], "variation": {"unseen": []}}, []),
    ],
)
def test_what_is_read_differs_by_default_unless_a_function_makes_the_pool(
    pool: dict[str, Any], unseen: list[str]
) -> None:
    assert load_config({**PRACTICE, "pool": pool}).pool.variation.unseen == unseen


@pytest.mark.parametrize(
    ("shortlist", "told"),
    [
        ({"most": 3}, "pool.shortlist: no ranking"),
        ({"ranking": "scorer/best", "mots": 3}, "pool.shortlist: unknown key 'mots'; did you mean 'most'"),
        ("scorer/best,most=0", r"pool.shortlist: Shortlist\(most=0\): expected 1 or more members"),
    ],
)
def test_a_shortlist_that_cannot_be_read_is_refused_where_it_stands(shortlist: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        load_config({**PRACTICE, "pool": {**PRACTICE["pool"], "shortlist": shortlist}})


def test_a_variation_leaves_out_renames_prices_and_prefers() -> None:
    varied = VariedPool(practice(VARIED).pool, 0)
    drawn = [varied.draw(number) for number in range(60)]
    sizes = {len(pool) for pool, _ in drawn}
    assert max(sizes) < len(varied.plain)
    assert all("juniper" in pool for pool, _ in drawn)
    assert any(pool.aliases for pool, _ in drawn)
    costs = {pool["birch"].cost for pool, _ in drawn if "birch" in pool}  # type: ignore[union-attr]
    assert {(cost.units, cost.usd) for cost in costs} == {(9.0, 0.0), (2.0, 0.5)}
    preferring = sum(prefers is not None for _, prefers in drawn)
    assert 15 < preferring < 45


def test_a_preference_is_asked_with_and_scored_with() -> None:
    questions = Questions(practice(VARIED))
    asked = questions.take(20)
    told = [each for each in asked if each.preference is not None]
    assert 0 < len(told) < 20
    assert all(each.text == f"{each.task.question}\n\nBe quick." for each in told)
    assert told[0].preference is not None
    assert (told[0].preference.seconds, told[0].preference.members) == (1.0, {"birch": 0.5})
    assert all(each.text == each.task.question for each in asked if each.preference is None)
    assert asked[0].budget == Budget(calls=7)


def test_every_rollout_of_a_question_has_one_pool_and_evaluations_have_the_plain_one() -> None:
    questions = Questions(practice(VARIED))
    assert questions.assignment(4).pool == questions.assignment(4).pool
    tests = evaluation_assignments(practice(VARIED))
    assert len(tests) == 3
    assert {test.pool.id for test in tests} == {make_pool(practice().pool).id}
    assert all(test.preference is None for test in tests)


def test_a_teacher_is_asked_what_the_policy_will_be_asked() -> None:
    from concertino_train.collection import _asked_for_users
    from concertino_train.factories.questions import selections_of

    config = practice(VARIED)
    (selection,) = [_asked_for_users(each, config) for each in selections_of(config.tasks.train, "tasks.train")]
    texts = [task.question for task in selection.tasks()]
    assert len(texts) == 5
    assert 0 < sum(text.endswith("\n\nBe quick.") for text in texts) < 5


def test_ranks_take_every_other_question_and_together_all() -> None:
    alone = Questions(practice()).take(6)
    both = [Questions(practice(), rank=rank, ranks=2).take(3) for rank in (0, 1)]
    mixed = [each.task.id for pair in zip(*both, strict=True) for each in pair]
    assert mixed == [each.task.id for each in alone]


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["pool={make: {name: practice}, file: a.toml}"], "make and file are given; expected one source"),
        (["pool.make={name: practise}"], "expected one of practice, practice-workflow, or module:function"),
        (["pool.make.mix=odd"], "expected some of mixed, mono"),
        (["pool.make.colour=red"], "practice refuses {'colour': 'red'}"),
        (["pool.make={name: 'concertino_train.tiny:nothing'}"], "cannot be imported"),
        (["pool.make={name: 'concertino_train.config:recipe_names'}"], "gave a list; expected a Pool"),
        (["pool.variation.always=[nobody]"], "pool.variation.always"),
        (["pool.variation.costs=[{brich: {units: 1}}]"], "did you mean 'birch'"),
        (["tasks.train=[{set: practice/fact}]"], "did you mean 'practice/facts'"),
        (["tasks.train.0.options.colour=red"], "practice/facts has no option 'colour'"),
    ],
)
def test_what_settings_cannot_name_is_said(overrides: list[str], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        Questions(practice(*overrides))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        ("{name: parallel-rounds, max_parallel: 2}", "parallel-rounds"),
        ("{name: role-workflow, environment: plan-path, turns: 2}", "role-workflow"),
        ("{name: role-workflow, make: practice, environment: sudoku}", "role-workflow"),
        ("{name: self-refine}", "self-refine"),
    ],
)
def test_strategies_are_built_in_installed_or_made(strategy: str, name: str) -> None:
    assert make_strategy(practice(f"rollout.strategy={strategy}").rollout.strategy).name == name


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        ("{name: role-workflow, environment: plan-path, turn: 2}", "did you mean 'turns'"),
        ("{name: role-workflow, environment: moon}", "environment='moon'"),
        ("{name: parallel-rounds, make: practice}", "expected the strategy 'parallel-rounds'"),
        ("{name: parallel-rounds, max_rounds: 0}", "expected at least 1"),
        ("{name: role-workflow, file: none.toml}", "none.toml"),
    ],
)
def test_a_strategy_that_cannot_be_is_said(strategy: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        practice(f"rollout.strategy={strategy}")
    assert told in str(caught.value)


def test_only_questions_of_mixed_outcome_are_asked_where_results_are_named(tmp_path: Path) -> None:
    from concertino_bench import Item, Key, Verdict
    from concertino_bench.runner import ResultsFile
    from concertino_train.factories.questions import training_tasks

    tasks = [task for task, _ in training_tasks(practice())]
    with ResultsFile(tmp_path / "results.jsonl", {"fingerprint": "f", "systems": [{"name": "policy"}]}) as file:
        for place, task in enumerate(tasks):
            for sample in range(2):
                right = sample == 0 if place in (1, 3) else place == 0
                verdict = Verdict.RIGHT if right else Verdict.WRONG
                file.append(Item(Key("policy", task.id, sample), task.kind, verdict, "for tests"))
    kept = training_tasks(practice(f"tasks.outcomes=['{file.path}']"))
    assert [task.id for task, _ in kept] == [tasks[1].id, tasks[3].id]


def test_the_wording_of_a_prompt_is_found_and_a_single_line_is_none() -> None:
    texts = [f"A line that stands in every prompt.\nQuestion {number} is another one." for number in range(6)]
    assert common_lines(texts) == ["A line that stands in every prompt."]
    assert common_lines(texts[:1]) == []
