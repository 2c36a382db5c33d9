"""Answers: where a text states one, and when two mean the same."""

from __future__ import annotations

import pytest
from concertino_reasoning.answers import answer_key, boxed, find_answer, without_thoughts
from linear import assert_linear

SAME = [
    [
        "42",
        " 42. ",
        "\\boxed{42}",
        "$42$",
        "\\(42\\)",
        "**42**",
        "`42`",
        "+42",
        "42.0",
        "042",
        "x = 42",
        "4.2e1",
        "42%",
    ],
    ["3/4", "0.75", ".75", "\\frac{3}{4}", "\\dfrac34", "$\\tfrac{3}{4}$", "6/8", "¾", "(3/4)", "\\boxed{\\frac34}"],
    ["-1/2", "−0.5", "-\\frac{1}{2}", "\\frac{-1}{2}", "- 0.5"],
    ["3/2", "1 1/2", "1\\frac{1}{2}", "1½", "1.50"],
    ["1234567", "1,234,567", "1{,}234{,}567", "$1,234,567", "\\$1,234,567.00", "1\\,234\\,567"],
    ["1500", "1.5e3", "1.5 \\times 10^3", "1.5 × 10^{3}", "15 \\cdot 10^2"],
    ["1000000", "10^6", "10^{6}"],
    ["30", "30°", "30^\\circ", "30^{\\circ}"],
    ["B", "(B)", "b", "B.", "B)", "(b)", "Option B", "choice (B)", "B) Paris", "B: Paris", "(B) Paris", "\\text{B}"],
    ["(1, 2)", "( 1,2 )", "$(1,\\,2)$", "\\left(1, 2\\right)", "(1.0, 4/2)"],
    ["{1, 2, 3}", "\\{3, 1, 2\\}", "{2,3,1}"],
    ["3, 4", "\\boxed{3}, \\boxed{4}", "\\boxed{3}\n\\boxed{4}", "3,4"],
    ["Paris", "paris.", "  PARIS ", '"Paris"', "**Paris**", "\\text{Paris}", "Paris!"],
    ["the Eiffel Tower", "Eiffel  tower", "An Eiffel Tower"],
    ["5 cm", "5cm", "5\\text{ cm}", "5\\ \\mathrm{cm}"],
    ["1,500 km", "1500 km"],
    ["2x + 3", "2x+3", "$2x + 3$"],
    ["x^2", "x^{2}", "x²"],
    ["\\sqrt{2}", "\\sqrt2", "\\sqrt 2"],
    ["2\\pi", "2 \\pi", "$2\\pi$"],
]
DIFFERENT = [
    ["42", "-42", "43", "4.2", "42 cm", "(4, 2)", "B", "forty-two"],
    ["0.5", "50%", "1/3", "0.33", "0.333"],
    ["(1, 2)", "[1, 2]", "(1, 2]", "{1, 2}", "(2, 1)", "1, 2"],
    ["3 am", "3 pm", "3"],
    ["x + 1", "1 + x", "x - 1"],
    ["Paris", "London", "Paris, France"],
    ["E. coli", "E", "E. histolytica"],
    ["A, C", "A", "C", "C, A"],
    ["x^2", "x2", "x^3"],
    ["1/0", "0", "1e999"],
]


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0])
def test_answers_that_mean_the_same_have_one_key(group: list[str]) -> None:
    assert {answer: answer_key(answer) for answer in group} == dict.fromkeys(group, answer_key(group[0]))


@pytest.mark.parametrize("group", DIFFERENT, ids=lambda group: group[0])
def test_answers_that_differ_have_different_keys(group: list[str]) -> None:
    keys = [answer_key(answer) for answer in group]
    assert len(set(keys)) == len(keys), dict(zip(group, keys, strict=True))


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


def test_boxes_keep_their_order_and_escaped_braces() -> None:
    assert boxed("\\boxed{a\\}b} \\fbox{c} {\\boxed{d}}") == ["a\\}b", "c", "d"]


@pytest.mark.parametrize("unit", ["<think>", "<answer>", "\\boxed{", "{", "(", "**", "answer: ", '"', "\\frac", "1,"])
def test_a_degenerate_text_is_read_in_linear_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert_linear(lambda: find_answer(text), len(text))
    for size in (1_999, 1_000_000):
        assert_linear(lambda read=text[:size]: answer_key(read), 60_000)  # long ones are compared as they are
        assert answer_key(text[:size]) == answer_key(text[:size])
