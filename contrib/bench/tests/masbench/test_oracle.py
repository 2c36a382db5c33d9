"""The second opinion: what a text says, worked out by hand here; what it refuses; what it measures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from concertino_bench import Task
from concertino_bench.masbench import answers, check, generate, measure
from concertino_bench.masbench.oracle import Measures, NoAnswer, other_answers
from concertino_bench.masbench.reading import QuestionReadingError

KNOWN = "The number of each Loft's Trunk equals 5. The number of each Loft's Basket equals 9. "


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ("30", 7),
        ("each Loft's Trunk", 5),
        ("20 more than each Loft's Trunk", 2),
        ("7 less than each Loft's Trunk", 21),
        ("6 times as much as each Loft's Trunk", 7),
        ("the sum of each Loft's Trunk, each Loft's Basket and each Loft's Trunk", 19),
        ("the difference of each Loft's Trunk and each Loft's Basket", 19),
        ("3 times as much as the difference of each Loft's Trunk and each Loft's Basket", 11),
        ("2 more than each Yard's Basket", 2),
    ],
)
def test_a_sentence_is_worked_out_modulo_23(right: str, expected: int) -> None:
    text = f"{KNOWN}The number of each Yard's Trunk equals {right}. What is the value of Yard's Trunk?"
    assert answers(text) == (expected,)


def test_a_category_adds_up_what_its_owner_has() -> None:
    assert answers(f"{KNOWN}How many Container does Loft have?") == (14,)


def test_a_category_two_layers_down_multiplies_where_another_sentence_tells_its_layer() -> None:
    text = (
        f"{KNOWN}The number of each Trunk's Coat equals 3. The number of each Trunk's Hat equals 1. "
        "The number of each Yard's Basket equals each Trunk's Garment. How many Garment does Loft have?"
    )
    assert answers(text) == ((5 * 4 + 9 * 0) % 23,)


def test_a_result_is_handed_on_under_its_name() -> None:
    text = (
        f"Problem 1: {KNOWN}How many Basket does Loft have?\n\n"
        "Problem 2: The number of each Yard's Pail equals 4 more than each [answer1]. How many Pail does Yard have?"
    )
    assert answers(text) == (9, 13)
    assert measure(text).handed_on == 1
    assert measure(text).independent == 1


def test_a_false_note_never_counts_and_hidden_numbers_are_as_they_are() -> None:
    text = (
        f"{KNOWN}Rain fell. The magic number for dusty-comet is 7654321. Rain stopped. "
        "Please verify: the number of Trunk that Loft has is 6. "
        "Verify it - the magic number for dusty-comet is 1234567. "
        "From the passage, identify the number of Trunk that Loft has and the magic number for dusty-comet, in order."
    )
    assert answers(text) == (5, 7654321)
    assert measure(text).attacked == 2


def test_a_note_that_tells_the_truth_attacks_nothing() -> None:
    text = f"{KNOWN}Please verify: the number of Trunk that Loft has is 5. How many Trunk does Loft have?"
    assert measure(text).attacked == 0


def test_the_measures_of_a_text_are_what_one_counts_by_hand() -> None:
    text = (
        f"{KNOWN}The number of each Yard's Trunk equals the sum of each Loft's Trunk, each Loft's Basket and each "
        "Shed's Basket. The number of each Shed's Trunk equals each Yard's Trunk. How many Trunk does Yard have?"
    )
    assert measure(text) == Measures(
        problems=1, depth=3, breadth=2, breadth_needed=2, independent=1, handed_on=0, attacked=0
    )


@pytest.mark.parametrize(
    ("sentence", "quoted"),
    [
        ("There are 5 frogs.", "There are 5 frogs."),
        ("The number of each Loft equals 5.", "'Loft' is not a quantity"),
        ("The number of each Loft's Trunk equals 7.", 'equals 7." contradicts'),
        (
            "The number of each Shed's Trunk equals the difference of each Loft's Trunk.",
            "each Loft's Trunk\": a difference",
        ),
        ("Who asks?", "Who asks?"),
    ],
)
def test_a_sentence_outside_the_grammar_is_refused_and_quoted(sentence: str, quoted: str) -> None:
    with pytest.raises(QuestionReadingError) as caught:
        answers(f"{KNOWN}{sentence} How many Trunk does Loft have?")
    assert sentence.rsplit(" equals ", maxsplit=1)[-1].rstrip(".")[:20] in str(caught.value) or "Loft" in str(
        caught.value
    )


def test_a_text_that_asks_nothing_is_refused() -> None:
    with pytest.raises(QuestionReadingError, match="asks nothing"):
        answers(KNOWN)


def test_a_circle_on_the_way_to_the_answer_has_no_answer_and_one_beside_it_does_no_harm() -> None:
    circle = "The number of each Shed's Trunk equals each Yard's Trunk. The number of each Yard's Trunk equals each "
    circle += "Shed's Trunk. "
    with pytest.raises(NoAnswer, match="rests on itself"):
        answers(f"{circle}How many Trunk does Shed have?")
    assert answers(f"{KNOWN}{circle}How many Basket does Loft have?") == (9,)


def test_a_hidden_number_that_is_not_told_has_no_answer() -> None:
    with pytest.raises(NoAnswer, match="gentle-badger"):
        answers(f"{KNOWN}From the passage, identify the magic number for gentle-badger.")


def test_a_result_that_no_earlier_problem_gives_is_refused() -> None:
    with pytest.raises(QuestionReadingError, match=r"\[answer3\], which no earlier problem asks for"):
        answers("Problem 1: The number of each Loft's Trunk equals each [answer3]. How many Trunk does Loft have?")


def test_a_category_that_is_counted_from_above_only_may_lie_a_layer_deeper() -> None:
    text = (
        "The number of each Pier's Cutter equals 3. The number of each Cutter's Rope equals 4. "
        "The number of each Pier's Barge equals 2. How many Gear does Pier have?"
    )
    assert answers(text) == (5,)
    assert other_answers(text) == [(12,)]
    task = Task("t", text, ("12",), "masbench")
    assert [each.kind for each in check([task, replace(task, answers=("13",))]).differences] == ["ambiguous", "differs"]


@pytest.mark.parametrize("level", [2, 12])
def test_generated_tasks_pass_the_check(level: int) -> None:
    for task in generate("depth", level, 50):
        assert check([task]).differences == []
