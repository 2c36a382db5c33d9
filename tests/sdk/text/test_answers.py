"""When two answers mean the same: one notion for votes, for roles that agree, and for metrics."""

from __future__ import annotations

from typing import Any

import pytest
from concertino.text import answer_key, boxed, same_answer
from concertino.text.answers import same_output
from hypothesis import given
from hypothesis import strategies as st
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


def test_boxes_keep_their_order_and_escaped_braces() -> None:
    assert boxed("\\boxed{a\\}b} \\fbox{c} {\\boxed{d}}") == ["a\\}b", "c", "d"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1/2", "0.5"),
        ("1,000", "1000"),
        ("$7$", "7.0"),
        ("\\frac{3}{4}", "0.75"),
        ("\\boxed{9}", " 9\n"),
        ("-3", "-3.000"),
        ("1e3", "1000"),
        ("Yes", "yes."),
        ("x + 1", "x+1"),
        ([1, 2], "[1, 2]"),
        (3, "3"),
        ("-\\dfrac{1}{2}", "-1/2"),
    ],
)
def test_these_are_the_same(one: Any, other: Any) -> None:
    assert same_answer(one, other)
    assert same_answer(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2+2", "4"),
        ("7", "8"),
        ("1/0", "1/0.0"),
        ("", ""),
        (None, None),
        ("10%", "10"),
        ("1e999", "2e999"),
        ("1,00", "100"),
    ],
)
def test_these_are_not(one: Any, other: Any) -> None:
    assert not same_answer(one, other)


@given(st.text(max_size=30) | st.integers() | st.none() | st.lists(st.integers()), st.text(max_size=30))
def test_any_two_values_can_be_compared_either_way(one: Any, other: str) -> None:
    assert same_answer(one, other) == same_answer(other, one)


def test_numbers_of_any_length_are_compared_at_once() -> None:
    assert not same_answer("9" * 1_000_000, "8" * 1_000_000)
    assert not same_answer("1e" + "9" * 500_000, "1")


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("1\n2\n", "1\n2", True),
        ("1 \n2\n\n", "1\n2", True),
        ("1 2", "1\n2", False),
        ("", "", True),
        ("1.0", "1", False),
    ],
)
def test_output_is_compared_line_by_line(printed: str, expected: str, same: bool) -> None:
    assert same_output(printed, expected) is same


@given(st.text(max_size=30))
def test_any_text_has_one_key_and_blanks_around_it_do_not_count(text: str) -> None:
    assert answer_key(text) == answer_key(f" {text}\n")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("July 4, 1776", "july 4 1776", True),
        ("70 000", "70,000", True),
        ("New York", "newyork", False),
        ("X + 1", "x + 1", False),
        ("The Beatles", "beatles", True),
        ("(B) Paris", "b", True),
        ("{1, 2}", "{2, 1}", True),
        ("50%", "50 %", True),
    ],
)
def test_words_numbers_choices_and_sets_follow_one_rule(one: str, other: str, same: bool) -> None:
    assert same_answer(one, other) is same


@pytest.mark.parametrize("unit", ["\\boxed{", "{", "(", "**", '"', "\\frac", "1,", "1 000", "\\text{"])
def test_a_degenerate_answer_is_read_in_linear_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    for size in (1_999, 1_000_000):
        assert_linear(lambda read=text[:size]: answer_key(read), 60_000)  # long ones are compared as they are
        assert answer_key(text[:size]) == answer_key(text[:size])
