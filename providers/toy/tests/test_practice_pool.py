"""The members of the practice pool: what they know, what goes wrong, and that a run is the same again."""

from __future__ import annotations

from typing import Any

import pytest
from concertino import Call, Executor, Observation, Plan, Pool, UsageError
from concertino_toy.practice import Faults, practice_pool
from concertino_toy.practice.experts.progress import members_of
from concertino_toy.practice.facts import fact

SAFE = Faults(scale=0)


async def observe(pool: Pool, question: str, *rounds: list[tuple[str, str]]) -> list[Observation]:
    """Rounds of calls, one after another, in one run."""
    seen: list[Observation] = []
    async with Executor() as executor:
        scope = executor.open(pool, question=question)
        for number, calls in enumerate(rounds, start=1):
            plan = Plan([Call(name, {"ask": ask}, str(place)) for place, (name, ask) in enumerate(calls)])
            seen += await executor.run_plan(plan, scope, prefix=f"{number}.")
        await executor.release(scope)
    return seen


def named(pool: Pool, topic: str, manner: str) -> str:
    return next(each.name for each in members_of(pool) if (each.topic, each.manner) == (topic, manner))


async def test_a_member_knows_its_topic_and_the_poor_one_knows_all() -> None:
    pool = practice_pool(faults=SAFE)
    calls = [(named(pool, "toll", "cheap"), "Belmar"), (named(pool, "", "any"), "tide of Belmar")]
    seen = await observe(pool, "q", [*calls, (named(pool, "twin", "sure"), "The twin of Belmar?")])
    assert [each.content for each in seen] == [fact(topic, "Belmar") for topic in ("toll", "tide", "twin")]
    assert [each.usage.units for each in seen] == [1, 1, 5]


async def test_a_call_that_names_no_place_is_an_error_that_says_so() -> None:
    pool = practice_pool(faults=SAFE)
    seen = await observe(pool, "q", [(named(pool, "toll", "cheap"), "that place"), (named(pool, "", "any"), "Belmar")])
    assert [str(each.error and each.error.message) for each in seen] == ["no place is named", "no topic is named"]


async def test_faults_follow_from_the_question_and_a_repeat_may_succeed() -> None:
    pool = practice_pool(faults=Faults(scale=10, stubborn=0.0, late=0.5))
    name = named(pool, "toll", "cheap")
    seen = await observe(pool, "q", [(name, "Belmar")], [(name, "Belmar")])
    assert [each.ok for each in seen] == [False, True]
    statuses = {(await observe(pool, f"q{n}", [(name, "Belmar")]))[0].status.value for n in range(12)}
    assert statuses == {"EXEC_ERR", "TIMEOUT"}
    again = await observe(pool, "q", [(name, "Belmar")], [(name, "Belmar")])
    assert [each.status for each in again] == [each.status for each in seen]


async def test_a_stubborn_member_fails_whenever_it_is_asked() -> None:
    pool = practice_pool(faults=Faults(scale=10, stubborn=1.0))
    name = named(pool, "toll", "cheap")
    assert not any(each.ok for each in await observe(pool, "q", *[[(name, "Belmar")]] * 3))


async def test_failures_do_not_shut_members_out() -> None:
    pool = practice_pool(faults=Faults(scale=10, stubborn=1.0))
    name = named(pool, "toll", "cheap")
    seen = await observe(pool, "q", *[[(name, "Belmar")] * 4] * 12)
    assert {each.error.code for each in seen if each.error} <= {"unavailable", "deadline"}


async def test_the_poor_member_misleads_without_a_word() -> None:
    pool = practice_pool(faults=Faults())
    name = named(pool, "", "any")
    told = [(await observe(pool, f"q{n}", [(name, "toll of Belmar")]))[0] for n in range(30)]
    wrong = [each for each in told if each.ok and each.content != fact("toll", "Belmar")]
    assert 8 <= len(wrong) <= 25


def test_names_differ_by_seed_and_descriptions_do_not() -> None:
    first, other = practice_pool(names_seed=1), practice_pool(names_seed=2)
    assert {m.name for m in first.members} != {m.name for m in other.members}
    about = [sorted(member.description for member in pool.members) for pool in (first, other)]  # type: ignore[union-attr]
    assert about[0] == about[1]
    assert practice_pool(names_seed=1).id == first.id


async def test_a_renamed_member_has_the_same_luck() -> None:
    luck = []
    for seed in (1, 2):
        pool = practice_pool(names_seed=seed)
        calls = [(named(pool, topic, "cheap"), "Belmar") for topic in ("toll", "tide", "crop", "bell")]
        luck.append([each.status for each in await observe(pool, "q", calls)])
    assert luck[0] == luck[1]


def test_a_mono_pool_has_one_member_for_each_topic() -> None:
    assert {each.manner for each in members_of(practice_pool("mono", twin=False))} == {"cheap"}
    assert len(practice_pool("mono", twin=False).actions) == 4


async def test_the_combiner_boxes_the_numbers_of_its_sub_task() -> None:
    pool = practice_pool(combiner=True)
    told = "Original task: 1. The toll of Belmar?\n\nCurrent sub-task: 53 27"
    seen = await observe(pool, "q", [("gather", told), ("gather", "sub-task: none")])
    assert seen[0].content == "\\boxed{53} \\boxed{27}"
    assert seen[1].error is not None


@pytest.mark.parametrize(
    "options",
    [{"mix": "all"}, {"topics": ["x"]}, {"topics": []}, {"manners": ["any"]}, {"faults": {"late": 2}}],
)
def test_a_pool_that_cannot_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        practice_pool(**options)
