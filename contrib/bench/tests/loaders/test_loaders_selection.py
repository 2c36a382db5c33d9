"""Subsets, splits and what two sets share: the same for any order of the file, and held against a slow oracle."""

from __future__ import annotations

import json
import random
from hashlib import blake2b
from itertools import product

import pytest
from concertino_bench import Task
from concertino_bench.loaders import overlap, split, subset
from concertino_bench.loaders.hygiene import OverlapReport, words_of
from hypothesis import given, settings
from hypothesis import strategies as st


def tasks(count: int) -> list[Task]:
    return [Task(f"set/{number}", f"How much is {number}?", (str(number),), "number") for number in range(count)]


# -- subsets and splits ------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 60), st.integers(0, 5), st.randoms())
def test_a_subset_is_the_same_in_any_order_and_the_beginning_of_a_larger_one(
    count: int, seed: int, shuffle: random.Random
) -> None:
    ordered = tasks(50)
    shuffled = shuffle.sample(ordered, len(ordered))
    chosen = subset(ordered, count, seed)
    assert chosen == subset(iter(shuffled), count, seed)
    assert len(chosen) == min(count, 50)
    assert subset(ordered, count + 5, seed)[:count] == chosen


def test_seeds_choose_differently_and_evenly() -> None:
    ordered = tasks(200)
    drawn = [task.id for seed in range(100) for task in subset(ordered, 20, seed)]
    counts = [drawn.count(task.id) for task in ordered]
    assert sum(counts) == 2000
    assert 0 <= min(counts) < max(counts) < 30  # 10 expected, standard deviation 3


def test_a_choice_is_the_same_on_every_machine() -> None:
    """The ids with the smallest hashes, hashed here by hand; the list is what another machine must give."""
    by_hash = sorted(tasks(1000), key=lambda task: blake2b(b"7\0" + task.id.encode(), digest_size=8).hexdigest())
    assert subset(tasks(1000), 4, seed=7) == by_hash[:4]
    assert [task.id for task in by_hash[:4]] == ["set/126", "set/994", "set/484", "set/329"]


def test_a_new_task_changes_no_side_of_a_split_and_at_most_one_of_a_subset() -> None:
    before, after = tasks(500), [Task("set/new", "New?", ("1",), "number"), *tasks(500)]
    first, second = split(before, 0.3, seed=2)
    grown = split(after, 0.3, seed=2)
    assert [task for task in grown[0] if task.id != "set/new"] == first
    assert [task for task in grown[1] if task.id != "set/new"] == second
    assert len({task.id for task in subset(before, 50)} - {task.id for task in subset(after, 50)}) <= 1


def test_a_split_has_about_the_share_and_no_task_on_both_sides() -> None:
    first, second = split(tasks(4000), 0.25)
    assert 900 < len(first) < 1100
    assert not {task.id for task in first} & {task.id for task in second}
    assert len(first) + len(second) == 4000


def test_wrong_shares_and_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="count=0; expected a whole number from 1"):
        subset(tasks(3), 0)
    with pytest.raises(ValueError, match="share=1; expected a number above 0 and below 1"):
        split(tasks(3), 1)


# -- overlap -----------------------------------------------------------------------------------------------------------


def asked(*questions: str, name: str = "left", answer: str = "1") -> list[Task]:
    return [Task(f"{name}/{number}", question, (answer,), "text") for number, question in enumerate(questions)]


def test_quotes_blanks_case_and_commas_make_no_difference_and_signs_do() -> None:
    assert words_of("Ann\u2019s  $1,250.50, \u201cnow\u201d!") == words_of('anns $1250.50 "NOW"')
    assert words_of("x + 1") != words_of("x - 1")
    assert words_of("3.5") != words_of("35")
    report = overlap(asked("Is x + 1 = 3?"), asked("is  X + 1 = 3", "Is x - 1 = 3?", name="right"), threshold=1)
    assert [(pair.left, pair.right) for pair in report.exact] == [("left/0", "right/0")]
    assert report.near == ()


def test_near_questions_are_found_with_their_similarity_and_answers() -> None:
    left = asked("Ann buys four red apples at the market and pays ten dollars for all of them. What did one cost?")
    right = asked(
        "Bob buys four red apples at the market and pays ten dollars for all of them. What did one cost?",
        "How far is it from Rome to the sea if one walks slowly?",
        name="right",
        answer="2",
    )
    report = overlap(left, right)
    (pair,) = report.near
    assert (pair.left, pair.right, pair.same_answers) == ("left/0", "right/0", False)
    assert pair.similarity == round(17 / 19, 4)
    assert report.shared == 1


def jaccard(one: str, other: str, n: int) -> float:
    def grams(text: str) -> set[tuple[str, ...]]:
        words = words_of(text)
        return {tuple(words[at : at + n]) for at in range(max(1, len(words) - n + 1))}

    return len(grams(one) & grams(other)) / len(grams(one) | grams(other))


QUESTIONS = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=9).map(" ".join), max_size=12)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(QUESTIONS, QUESTIONS, st.integers(1, 3), st.sampled_from([0.2, 0.5, 0.6, 2 / 3, 0.8, 1.0]))
def test_exactly_the_pairs_of_a_comparison_of_all_with_all_are_found(
    left: list[str], right: list[str], n: int, threshold: float
) -> None:
    ours, theirs = asked(*left), asked(*right, name="right")
    report = overlap(ours, theirs, n=n, threshold=threshold)
    expected = {
        (one.id, other.id)
        for one, other in product(ours, theirs)
        if one.question != other.question and jaccard(one.question, other.question, n) >= threshold - 1e-12
    }
    assert {(pair.left, pair.right) for pair in report.near} == expected
    equal = [(one.id, other.id) for one, other in product(ours, theirs) if one.question == other.question]
    assert sorted((pair.left, pair.right) for pair in report.exact) == sorted(equal)


def test_a_report_is_readable_and_plain_data() -> None:
    report = overlap(
        asked("What is one and one?", "What is two?"), asked("What is ONE and one", name="right", answer="9")
    )
    assert str(report) == (
        "1 of 1 tasks (100.0%) are among the 2 others: 1 equal and 0 near pairs (3-grams, from 0.6)\n"
        "  1.00  left/0  right/0, other answer"
    )
    assert json.loads(json.dumps(report.to_json())) == {
        "left": 2,
        "right": 1,
        "shared": 1,
        "n": 3,
        "threshold": 0.6,
        "near": [],
        "exact": [{"left": "left/0", "right": "right/0", "similarity": 1.0, "same_answers": False}],
    }
    many = overlap(asked(*["Same?"] * 4), asked(*["Same?"] * 4, name="right"))
    assert str(many).endswith("  and 6 more")
    assert str(overlap([], [])) == "0 of 0 tasks are among the 0 others: 0 equal and 0 near pairs (3-grams, from 0.6)"
    assert not OverlapReport(1, 1, (), (), 3, 0.6).pairs


def test_questions_without_a_word_are_compared_as_they_are() -> None:
    assert overlap(asked("?!"), asked("?!", name="right")).exact
    assert not overlap(asked("?!"), asked("..", name="right")).pairs


def test_odd_settings_are_refused() -> None:
    with pytest.raises(ValueError, match=r"n=0, threshold=0\.6; expected n from 1"):
        overlap([], [], n=0)
    with pytest.raises(ValueError, match="threshold above 0 and at most 1"):
        overlap([], [], threshold=0)
