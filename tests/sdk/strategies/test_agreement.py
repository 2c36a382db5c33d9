"""Whether two roles mean the same."""

from typing import Any

import pytest
from concertino.strategies.role_workflow.agreement import same_answer, same_output
from hypothesis import given
from hypothesis import strategies as st


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
