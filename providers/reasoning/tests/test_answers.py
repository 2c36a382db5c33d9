"""Where a text states its answer."""

from __future__ import annotations

import pytest
from concertino_reasoning.answers import find_answer, without_thoughts
from linear import assert_linear


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so it is\n<answer>\n42\n</answer>", "42"),
        ("<answer>\\boxed{3}\n\\boxed{4}</answer>", "3, 4"),
        ("<answer>1</answer> no: <answer>2</answer>", "2"),
        ("first \\boxed{1}, then \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"),
        ("a set \\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
        ("\\boxed{1 is not closed, \\boxed{42} is", "42"),
        ("\\boxed{outer \\boxed{inner}}", "outer \\boxed{inner}"),
        ("I add.\n\nAnswer: **12**\n", "12"),
        ("Answer: 1\nNo.\nThe final answer is 2\nthat is all", "2"),
        ("Adding up.\nTherefore, the answer is: 7", "7"),
        ("2 + 3 = 5\n#### 5", "5"),
        ("Paris", "Paris"),
        ("<think>Answer: 3</think>Answer: 4", "4"),
        ("a template opened it</think>\nAnswer: 4", "4"),
        ("the stop text was taken away: <answer>5", "5"),
    ],
)
def test_the_answer_of_a_complete_text_is_found(text: str, answer: str) -> None:
    found = find_answer(text)
    assert found is not None
    assert found.answer == answer


@pytest.mark.parametrize(
    "text", ["", "  ", "<answer></answer>", "two\nlines", "<think>Answer: 3", "the answer lies elsewhere\nor nowhere"]
)
def test_a_text_without_an_answer_gives_none(text: str) -> None:
    assert find_answer(text) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>42</answer> and furth", "42"),
        ("it is \\boxed{42}, whi", "42"),
        ("<answer>4", None),
        ("Answer: 4", None),
        ("4", None),
        ("\\boxed{4", None),
    ],
)
def test_of_a_text_that_was_cut_off_only_closed_answers_count(text: str, answer: str | None) -> None:
    found = find_answer(text, complete=False)
    assert (found.answer if found else None) == answer


def test_thoughts_are_no_part_of_a_text() -> None:
    assert without_thoughts("<think>a</think>b<think>c</think>d<think>e") == "bd"


@pytest.mark.parametrize("unit", ["<think>", "<answer>", "\\boxed{", "{", "(", "**", "answer: ", '"', "\\frac", "1,"])
def test_a_degenerate_text_is_read_in_linear_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert_linear(lambda: find_answer(text), len(text))
