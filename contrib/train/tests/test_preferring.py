"""Preferences: a policy that reads them is told from one that does not, by the same tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import concertino as ct
import pytest
from concertino_bench import Grade, Item, Key, Verdict
from concertino_toy.practice import practice_pool
from concertino_toy.practice.experts.calls import RoundsExpert
from concertino_train.config import load_config
from concertino_train.evaluation.preferences import preference_figures, wish_of
from concertino_train.factories.questions import asked_with_each
from concertino_train.practice import tasks
from concertino_train.rollouts import Assignment

CHEAP = {"text": "Keep it cheap.", "accuracy": 1.0, "usd": 1.0}
SURE = {"text": "Be sure.", "accuracy": 1.0, "usd": 0.0}
POOL = practice_pool(faults={"scale": 0.0})
STRATEGY = ct.ParallelRounds(prompt="brief", references=True, show_budget=False)


def preferences(*given: dict[str, Any]) -> Any:
    return load_config({"trainer": {"eval": {"preferences": list(given)}}}).trainer.eval.preferences


def asked(*given: dict[str, Any]) -> list[Assignment]:
    tests = [Assignment(task, POOL, STRATEGY) for task in tasks("facts", 6, level=2)]
    return asked_with_each(tests, preferences(*given))


def answered(assignments: list[Assignment], *, reads: bool, unpriced: bool = False) -> list[tuple[Assignment, Item]]:
    """Real runs of the scripted expert, who obeys wishes that it reads."""
    found = []
    for number, each in enumerate(assignments):
        leader = ct.Orchestrator(RoundsExpert(POOL), STRATEGY)
        run = leader.run_sync(each.text if reads else each.task.question, pool=POOL)
        key = Key("policy", each.task.id, number)
        item = Item.of_run(key, each.task, Grade(Verdict.RIGHT, "right"), run, POOL)
        found.append((each, item if unpriced else replace(item, usage=item.usage._replace(unpriced=0))))
    return found


def test_every_task_is_asked_once_with_each_preference() -> None:
    both = asked(CHEAP, SURE)
    assert [wish_of(each) for each in both[:4]] == ["Keep it cheap.", "Be sure."] * 2
    assert both[0].task.id == both[1].task.id
    assert both[0].preference is not None
    assert both[0].preference.usd == 1.0
    assert len(both) == 12


def test_without_preferences_tasks_stay_as_they_are() -> None:
    plain = asked()
    assert [wish_of(each) for each in plain] == [""] * 6
    assert preference_figures(answered(plain, reads=True)) == {}


def test_a_policy_that_reads_preferences_obeys_and_one_that_does_not_does_not() -> None:
    both = asked(CHEAP, SURE)
    reading, deaf = (preference_figures(answered(both, reads=reads)) for reads in (True, False))
    assert reading["obedience"] == pytest.approx(0.5)  # one of two preferences weighs money, and it is all saved
    assert reading["usd/Keep it cheap."] < 0.2 * reading["usd/Be sure."]
    assert deaf["obedience"] == 0.0
    assert deaf["usd/Keep it cheap."] == deaf["usd/Be sure."]
    assert reading["success/Be sure."] == 1.0


def test_preferences_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(ct.UsageError, match="each another"):
        asked(CHEAP, CHEAP)
    with pytest.raises(ct.UsageError, match="each another"):
        asked({**CHEAP, "text": ""}, SURE)


def test_money_that_is_unknown_is_not_taken_for_none() -> None:
    figures = preference_figures(answered(asked(CHEAP, SURE), reads=True, unpriced=True))
    assert "obedience" not in figures
    assert "usd/Be sure." not in figures
    assert figures["success/Be sure."] == 1.0
