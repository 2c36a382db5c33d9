"""Several answers, counted strictly, and the matching behind any order."""

from __future__ import annotations

import itertools

import pytest
from concertino_bench import Task, Verdict
from concertino_bench.graders import MultiAnswer
from concertino_bench.graders.matching import match
from concertino_bench.graders.multi_answer import read_answers
from hypothesis import given
from hypothesis import strategies as st

THREE = Task("t", "?", ("7", "Rome", "1,000"), "answers")


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{7} \\boxed{Rome} \\boxed{1000}",
        "<answer>7, Rome, 1,000</answer>",
        "7; Rome; 1000",
        "The answer is 7, Rome, and 1,000.",
        '["7", "Rome", 1000]',
        "1. 7\n2. Rome\n3. 1000",
        "- 7\n- rome.\n- 1,000",
        "7\nRome\n1000",
        "<answer>\\boxed{7} and \\boxed{Rome} and \\boxed{1000.0}</answer>",
        "['7', 'Rome', 1000]",
    ],
)
def test_all_answers_in_order_are_right(text: str) -> None:
    seen = MultiAnswer().judge(THREE, text)
    assert (seen.verdict, seen.marks) == (Verdict.RIGHT, (True, True, True)), seen


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("7, Rome", "2 answers, expected 3"),
        ("7, Rome, 1000, 5", "4 answers, expected 3"),
        ("\\boxed{7, Rome}", "2 answers, expected 3"),
        ("Rome, 7, 1000", "answer 1 of 3, '7', is not given; 1 are right"),
        ("7, Paris, 1000", "answer 2 of 3, 'Rome', is not given; 2 are right"),
    ],
)
def test_a_missing_a_wrong_and_an_additional_answer_are_wrong(text: str, reason: str) -> None:
    seen = MultiAnswer().judge(THREE, text)
    assert (seen.verdict, seen.reason) == (Verdict.WRONG, reason)


def test_no_answer_is_unparsable() -> None:
    assert MultiAnswer().judge(THREE, "").verdict == "unparsable"
    assert MultiAnswer().judge(THREE, "<answer></answer>").verdict == "unparsable"


def test_any_order_will_do_where_the_task_says_so_but_each_answer_counts_once() -> None:
    task = Task("t", "?", ("xy", "y"), "answers", metadata={"ordered": False, "aliases": [["y"], []]})
    assert MultiAnswer().judge(task, "y; y").verdict == "right"
    assert MultiAnswer().judge(task, "y; xy").verdict == "right"
    assert MultiAnswer().judge(task, "xy; xy").marks.count(True) == 1


def test_named_answers_are_aligned_by_name() -> None:
    task = Task("t", "?", ("5", "Bern"), "answers", metadata={"keys": ["Size", "The Capital"]})
    for text in ('{"capital": "Bern", "size": 5}', "capital: Bern\nsize: 5", "<answer>Size: 5; Capital: Bern</answer>"):
        assert MultiAnswer().judge(task, text).verdict == "right", text
    assert MultiAnswer().judge(task, "size: Bern\ncapital: 5").marks == (False, False)
    long = Task("t", "?", ("7", "x"), "answers", metadata={"keys": ["Alien: Part 1: Dawn", "Alien"]})
    assert MultiAnswer().judge(long, "- **Alien: Part 1: Dawn**: 7\n- Alien: x").verdict == "right"
    assert "which was not asked" in MultiAnswer().judge(task, "size: 5\ncapital: Bern\nriver: Aare").reason
    assert MultiAnswer().judge(task, "Bern").verdict == "unparsable"


def test_a_task_that_cannot_be_graded_is_refused() -> None:
    with pytest.raises(ValueError, match="has no answers"):
        MultiAnswer().judge(Task("t", "?", (), "answers"), "a")
    with pytest.raises(ValueError, match="expected 2 lists"):
        MultiAnswer().judge(Task("t", "?", ("a", "b"), "answers", metadata={"aliases": [["x"]]}), "a")
    with pytest.raises(ValueError, match="expected 2 names"):
        MultiAnswer().judge(Task("t", "?", ("a", "b"), "answers", metadata={"keys": ["x"]}), "a")


def test_thousands_do_not_part_a_list() -> None:
    assert read_answers("1,000, 2,000 and 3") == ["1,000", "2,000", "3"]


@given(st.integers(0, 5).flatmap(lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), max_size=5)))
def test_a_matching_is_one_to_one_fits_and_is_as_large_as_any(fits: list[list[bool]]) -> None:
    found = match(fits)
    columns = [column for column in found if column is not None]
    assert len(set(columns)) == len(columns)
    assert all(fits[row][column] for row, column in enumerate(found) if column is not None)
    width = len(fits[0]) if fits else 0
    slots = [*range(width), *[None] * len(fits)]
    best = max(
        sum(column is not None and fits[row][column] for row, column in enumerate(chosen))
        for chosen in set(itertools.permutations(slots[:width] + [None] * max(0, len(fits) - width), len(fits)))
    )
    assert len(columns) == best
