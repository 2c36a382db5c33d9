"""Numbers: which one of a text counts, and that it is compared as a number."""

from __future__ import annotations

from fractions import Fraction

import pytest
from concertino_bench import Task, Verdict
from concertino_bench.graders import Numeric
from concertino_bench.graders.numeric import numbers, plain_number


def task(answer: str) -> Task:
    return Task("t", "?", (answer,), "number")


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        ("70,000", "#### 70000"),
        ("70000", "A: 70,000"),
        ("70000", "The answer is 70 000 dollars."),
        ("70000", "\\boxed{70{,}000}"),
        ("14916", "\\boxed{14,\\!916}"),
        ("37", "It costs $37.00."),
        ("20", "So the answer is $20.00 for 4 people."),
        ("-5", "#### -5"),
        ("-5", "It is −5."),
        ("-5", "a loss of -$5"),
        ("10", "10%"),
        ("10", "#### 10\\%"),
        ("9", "16-3-4=<<16-3-4=9>>9 eggs"),
        ("8", "The answer is 5 + 3 = 8."),
        ("7", "Answer: x = 7"),
        ("5", "3 apples, then 2 more, 5 apples in all"),
        ("0.5", "\\boxed{\\frac{1}{2}}"),
        ("0.5", "1/2"),
        ("204", "#### 204.0"),
        ("33", "\\boxed{033}"),
        ("1000.99", "it is 1000,99"),
        ("2.74", "2,74 $"),
        (".5", "0.50"),
        ("1500", "1.5e3"),
        ("6020", "6.02 \\times 10^{3}"),
        ("the result\n#### 7", "7"),
        ("3", "We know 9. The answer is:\n\n**3**"),
        ("4", "<answer>4</answer> (of 10)"),
        ("99", "共有99颗"),
        ("12", "H2O weighs 12"),
    ],
)
def test_a_right_number_is_right_however_it_is_written(gold: str, text: str) -> None:
    assert Numeric().judge(task(gold), text).verdict == "right", Numeric().judge(task(gold), text)


@pytest.mark.parametrize(
    ("gold", "text", "reason"),
    [
        ("40", "#### 42", "42, expected 40"),
        ("9", "9 then 5", "5, expected 9"),
        ("9", "#### 9\nbut no: #### 5", "5, expected 9; two marks differ, 9 and 5: the last counts"),
        ("3", "#### 3 or 4", "4, expected 3; 3 or 4: the last counts"),
        ("99", "9>>9", "9, expected 99"),
        ("0.33", "1/3", "1/3, expected 0.33"),
        ("0.1", "10%", "10, expected 0.1"),
    ],
)
def test_a_wrong_number_is_wrong_and_what_is_doubtful_is_said(gold: str, text: str, reason: str) -> None:
    seen = Numeric().judge(task(gold), text)
    assert (seen.verdict, seen.reason) == (Verdict.WRONG, reason)


def test_an_ambiguous_answer_may_be_right_and_says_that_it_is_ambiguous() -> None:
    seen = Numeric().judge(task("5"), "#### 9\nI mean\n#### 5")
    assert (seen.verdict, seen.reason) == (
        Verdict.RIGHT,
        "the answer is right; two marks differ, 9 and 5: the last counts",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "there is no number in the text"),
        ("I cannot tell.", "there is no number in the text"),
        ("We have 5 apples. The answer is unknown.", "no number stands behind the last 'answer is'"),
        ("We have 5 apples.\n#### none", "no number in ####"),
        ("\\boxed{x}", "no number in \\boxed{}"),
        ("7" * 5000, "there is no number in the text"),
        ("5/0", "there is no number in the text"),
    ],
)
def test_no_number_is_unparsable_and_not_wrong(text: str, reason: str) -> None:
    seen = Numeric().judge(task("5"), text)
    assert seen.verdict == "unparsable"
    assert reason in seen.reason


def test_a_tolerance_is_only_there_when_asked_for() -> None:
    assert Numeric().judge(task("40"), "42").verdict == "wrong"
    seen = Numeric(relative=0.05).judge(task("40"), "42")
    assert (seen.verdict, seen.reason) == (Verdict.RIGHT, "42 is near enough to 40")
    assert Numeric(absolute=1).judge(task("40"), "42").verdict == "wrong"
    assert Numeric(absolute=2).judge(task("40"), "42").verdict == "right"
    with pytest.raises(ValueError, match="at least 0"):
        Numeric(absolute=-1)


def test_any_of_several_golds_will_do() -> None:
    several = Task("t", "?", ("5",), "number", metadata={"aliases": ["1,000", "7"]})
    for text in ("5", "1000", "The answer is 7."):
        assert Numeric().judge(several, text).verdict == "right"
    seen = Numeric().judge(several, "6")
    assert (seen.verdict, seen.reason, seen.expected) == ("wrong", "6, expected 5 or 1,000 or 7", ("5", "1,000", "7"))
    assert Numeric(absolute=1).judge(several, "8").reason == "8 is near enough to 7"
    with pytest.raises(ValueError, match="the alias 'Paris' is not a number"):
        Numeric().check(Task("t", "?", ("5",), "number", metadata={"aliases": ["Paris"]}))


def test_a_task_without_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="'Paris' is not a number"):
        Numeric().judge(task("Paris"), "5")


def test_a_number_far_behind_in_a_long_text_is_found() -> None:
    assert Numeric().judge(task("5"), "5 apples " + "and more words " * 10_000).verdict == "right"


def test_numbers_are_read_one_by_one() -> None:
    assert [number.value for number in numbers("3-4, 1,000 and x2 but 2.5")] == [3, 4, 1000, Fraction(5, 2)]
    assert plain_number("$1,234.50") == Fraction(2469, 2)
    assert plain_number("12 apples") is None
