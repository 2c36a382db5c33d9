"""The grader: what is right, what is wrong, what cannot be read, and that it always says why."""

from __future__ import annotations

import pytest
from concertino_bench import Grade, Task, Verdict
from concertino_bench.graders import answers
from concertino_bench.loaders.competitions import boxed
from concertino_bench.masbench import generate, grade

ONE = Task("one", "?", ("7",), "masbench")
BIG = Task("big", "?", ("1234567",), "masbench")
THREE = Task("three", "?", ("7", "12", "7654321"), "masbench")
BOXES = "\\boxed{7} \\boxed{12} \\boxed{7654321}"


def texts(text: str) -> list[str]:
    """What stands in the boxes of a text."""
    return [box.text for box in answers.boxes(text)]


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (ONE, "\\boxed{7}"),
        (ONE, "first \\boxed{9}, no: \\boxed{7}"),
        (ONE, "<answer>\\boxed{7}</answer>"),
        (ONE, "I saw \\boxed{3}. <answer>7</answer>"),
        (ONE, "<answer>5</answer> wait <answer>7</answer>"),
        (ONE, "The answer is 7."),
        (ONE, "**Answer:** $7$"),
        (ONE, "\\boxed{\\text{7}}"),
        (ONE, "\\boxed {7.0}"),
        (ONE, "\\boxed{x = 7}"),
        (ONE, "Problem 1: 7"),
        (BIG, "\\boxed{1,234,567}"),
        (BIG, "\\boxed{1{,}234{,}567}"),
        (THREE, BOXES),
        (THREE, f"thinking \\boxed{{1}} <answer>{BOXES}</answer>"),
        (THREE, "Final answers\n\nProblem 1: 7\n\n**Problem 2:** 12\nProblem 3: 7,654,321.\n"),
    ],
)
def test_a_right_answer_is_right_however_it_is_written(task: Task, text: str) -> None:
    seen = grade(task, text)
    assert (seen.verdict, seen.score, seen.share) == (Verdict.RIGHT, 1.0, 1.0), seen


@pytest.mark.parametrize(
    ("task", "text", "reason"),
    [
        (ONE, "\\boxed{8}", "8, expected 7"),
        (ONE, "\\boxed{7} then \\boxed{8}", "8, expected 7"),
        (ONE, "\\boxed{30}", "30, expected 7"),
        (ONE, "\\boxed{-7}", "-7, expected 7"),
        (THREE, "\\boxed{7} \\boxed{11} \\boxed{7654321}", "answer 2 of 3: 11, expected 12; 2 of 3 are right"),
        (THREE, "\\boxed{12} \\boxed{7} \\boxed{7654321}", "answer 1 of 3: 12, expected 7; 1 of 3 are right"),
        (THREE, "\\boxed{7} \\boxed{12}", "2 boxes, expected 3"),
        (THREE, f"{BOXES} \\boxed{{7}}", "4 boxes, expected 3"),
        (THREE, "\\boxed{7, 12, 7654321}", "1 box, expected 3"),
        (THREE, "Problem 1: 7\nProblem 3: 7654321", "lines for other problems than 1 to 3"),
    ],
)
def test_a_wrong_answer_is_wrong_and_the_reason_says_which(task: Task, text: str, reason: str) -> None:
    seen = grade(task, text)
    assert (seen.verdict, seen.score) == (Verdict.WRONG, 0.0)
    assert reason in seen.reason


@pytest.mark.parametrize(
    ("task", "text", "reason"),
    [
        (ONE, "", "no \\boxed{} was found"),
        (ONE, "I cannot tell.", "no \\boxed{} was found"),
        (ONE, "\\boxed{seven}", "'seven' is not a whole number"),
        (ONE, "\\boxed{}", "'' is not a whole number"),
        (ONE, "\\boxed{7.5}", "'7.5' is not a whole number"),
        (ONE, "\\boxed{7", "no \\boxed{} was found"),
        (ONE, "<answer>unknown</answer>", "'unknown' is not a whole number"),
        (THREE, "\\boxed{7} \\boxed{?} \\boxed{7654321}", "'?' is not a whole number"),
        (THREE, "7, 12, 7654321", "no \\boxed{} was found"),
    ],
)
def test_what_cannot_be_read_is_unparsable_and_not_wrong(task: Task, text: str, reason: str) -> None:
    seen = grade(task, text)
    assert (seen.verdict, seen.score, seen.share) == (Verdict.UNPARSABLE, 0.0, 0.0)
    assert reason in seen.reason


def test_partial_work_is_marked_answer_by_answer() -> None:
    seen = grade(THREE, "\\boxed{7} \\boxed{11} \\boxed{7654321}")
    assert seen.marks == (True, False, True)
    assert seen.share == pytest.approx(2 / 3)
    assert (seen.found, seen.expected) == (("7", "11", "7654321"), ("7", "12", "7654321"))


def test_a_grade_is_no_bare_bool() -> None:
    with pytest.raises(TypeError, match="has no truth value"):
        bool(Grade(Verdict.RIGHT, "it is", ("7",)))


def test_a_task_that_this_grader_is_not_for_is_refused() -> None:
    with pytest.raises(ValueError, match="'Paris' is not a whole number"):
        grade(Task("capital", "?", ("Paris",), "qa"), "\\boxed{Paris}")


def test_generated_answers_in_boxes_are_right_and_shifted_ones_wrong() -> None:
    for task in generate("robustness", 4, 10):
        assert grade(task, "".join(f"\\boxed{{{answer}}}" for answer in task.answers)).verdict == "right"
        assert grade(task, "".join(f"\\boxed{{{int(answer) + 1}}}" for answer in task.answers)).verdict == "wrong"


@pytest.mark.parametrize("piece", ["\\boxed{", "<answer>", "\n", "Problem 1: ", "answer: ", "{}", "</answer>"])
def test_a_very_long_text_is_graded_in_time_that_grows_with_its_length(piece: str) -> None:
    assert grade(ONE, piece * 100_000).verdict == "unparsable"


def test_a_number_without_end_is_unparsable() -> None:
    assert grade(ONE, f"\\boxed{{{'7' * 10_000}}}").verdict == "unparsable"


def test_a_box_around_a_box_is_one_box() -> None:
    assert texts("\\boxed{\\boxed{7}} and \\boxed{a{b}c} and \\boxed{") == ["7", "a{b}c"]


TWO = Task("two", "?", ("7", "8"), "masbench")


@pytest.mark.parametrize(
    "text",
    [
        "<think>\\boxed{1} no</think> \\boxed{7} \\boxed{8}",
        "<observation>a tool: \\boxed{1}</observation>\\boxed{7} \\boxed{8}",
        "<think>Problem 1: 3</think>\nProblem 1: 7\nProblem 2: 8",
        "\\fbox{7} and \\boxed 8.",
    ],
)
def test_boxes_of_thoughts_and_of_tools_do_not_count(text: str) -> None:
    assert grade(TWO, text).verdict == "right"


@pytest.mark.parametrize("text", ["\\fbox{7}", "$\\boxed 7$", "\\boxed{7}", "\\boxed{\\boxed{7}}", "\\boxed 7. So."])
def test_every_reader_of_boxes_reads_the_same(text: str) -> None:
    assert (boxed(text), [found.text for found in answers.boxes(text)]) == ("7", ["7"])


def test_a_box_without_braces_holds_a_number_or_a_command_and_no_word() -> None:
    assert texts("in \\boxed form: \\boxed \\frac{1}{2}, \\boxed -3,") == ["\\frac{1}{2}", "-3"]
