"""Questions for RL: those whose samples came out differently, and a clear word where there are none."""

from __future__ import annotations

from typing import Any

import concertino as ct
import pytest
from concertino_bench import Item, Key, Verdict
from concertino_bench.reports import Results
from concertino_train.data.collecting import Collection
from concertino_train.data.outcomes import AskedQuestion, OutcomeSettings, mixed_outcomes


def results(**rights: str) -> Results:
    """`results(a="RRW")`: three samples of task a, the last one wrong; B is one that broke."""
    verdicts = {"R": Verdict.RIGHT, "W": Verdict.WRONG, "U": Verdict.UNPARSABLE, "B": Verdict.UNPARSABLE}
    items = [
        Item(Key("s", task, sample), "text", verdicts[sign], "because", error="it broke" if sign == "B" else "")
        for task, signs in rights.items()
        for sample, sign in enumerate(signs)
    ]
    return Results({}, items)


def kept(found: Results, **settings: Any) -> list[tuple[str, int, int]]:
    return [(each.task, each.right, each.samples) for each in mixed_outcomes(found, OutcomeSettings(**settings)).kept]


def test_questions_that_are_neither_all_right_nor_all_wrong_are_kept() -> None:
    found = results(a="RRRR", b="RWWW", c="WWWW", d="RRRU")
    assert kept(found) == [("b", 1, 4), ("d", 3, 4)]
    mixed = mixed_outcomes(found)
    assert [each.task for each in mixed.too_easy] == ["a"]
    assert [each.task for each in mixed.too_hard] == ["c"]


def test_thresholds_leave_their_ends_out() -> None:
    found = results(a="RWWW", b="RRWW", c="RRRW")
    assert kept(found, above=0.25, below=0.75) == [("b", 2, 4)]
    assert kept(found, above=0.2) == [("a", 1, 4), ("b", 2, 4), ("c", 3, 4)]


def test_a_sample_that_broke_says_nothing_of_its_question() -> None:
    mixed = mixed_outcomes(results(a="RBB", b="RWB", c="RRB"))
    assert [(each.task, each.samples) for each in mixed.kept] == [("b", 2)]
    assert [each.task for each in mixed.too_few] == ["a"]
    assert mixed.broken == 4


def test_questions_asked_too_seldom_are_told_apart() -> None:
    mixed = mixed_outcomes(results(a="RW", b="RWWW"), OutcomeSettings(samples=4))
    assert ([each.task for each in mixed.kept], [each.task for each in mixed.too_few]) == (["b"], ["a"])
    assert (mixed.too_easy, mixed.too_hard, mixed.broken) == ((), (), 0)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (results(a="RRR", b="RRR", c="WWW"), "of 3 questions 2 were all right, 1 all wrong.*take harder tasks"),
        (results(a="WWW", b="WWW", c="RRR"), "of 3 questions 1 were all right, 2 all wrong.*take easier tasks"),
        (results(a="R", b="W"), ".* and 2 have fewer than 2 samples.*take more samples per question"),
        (results(), "the results hold no sample of any question; collect some first"),
    ],
)
def test_a_dataset_with_no_mixed_outcomes_is_refused_with_the_next_step(found: Results, said: str) -> None:
    with pytest.raises(ct.UsageError, match=f"a dataset with no mixed outcomes: {said}"):
        mixed_outcomes(found)


def test_of_several_systems_one_is_named_or_a_pattern_takes_all(collected: Collection) -> None:
    with pytest.raises(
        ct.UsageError, match=r"the results have 8 systems .*name one, or several by a pattern: system='"
    ):
        mixed_outcomes(collected.results)
    with pytest.raises(ct.UsageError, match=r"no system 'teacher@\*'; there are"):
        mixed_outcomes(collected.results, OutcomeSettings(system="teacher@*"))
    mixed = mixed_outcomes(collected.results, OutcomeSettings(system="*"))
    assert {each.samples for each in mixed.kept} == {8}


@pytest.mark.parametrize("wrong", [{"above": 0.5, "below": 0.5}, {"below": 1.5}, {"samples": 1}])
def test_thresholds_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ct.UsageError, match=f"{list(wrong)[-1]}="):
        OutcomeSettings(**wrong)


def test_a_share_of_nothing_is_zero() -> None:
    assert AskedQuestion("a", 0, 0).share == 0.0
