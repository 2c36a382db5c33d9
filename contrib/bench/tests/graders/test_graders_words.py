"""Answers in words: which part of a text is the answer, and how it is compared."""

from __future__ import annotations

import pytest
from concertino_bench import Task, Verdict
from concertino_bench.graders import ExactMatch, TokenF1, normalise
from concertino_bench.graders.answers import boxes, final_answer, spoken
from concertino_bench.graders.exact_match import likeness

PARIS = Task("capital", "?", ("Paris",), "text")


@pytest.mark.parametrize(
    "text",
    [
        "Paris",
        " the  PARIS. ",
        "Thought: I know it.\nAction: finish[Paris]",
        "Finish[[the Paris]]"[7:-1],
        "<answer>Paris</answer>",
        "<answer>Rome</answer> no, <answer> Paris.</answer>",
        "<answer>Paris",
        "So the answer is: Paris.",
        "Rome? The answer is Rome. No: the final answer is **Paris**.",
        "The answer is:\n\nParis\n",
        "Final answer: \\boxed{\\text{Paris}}",
        "The answer is <solution> Paris",
        "<think>The answer is Rome.</think>Paris",
        "<answer>Paris</answer><|begin_of_documents|><answer>Rome</answer><|end_of_documents|>",
        "<information>finish[Rome]</information>finish[Paris]",
        "finish[Paris",
    ],
)
def test_the_marked_answer_is_compared_and_nothing_around_it(text: str) -> None:
    assert ExactMatch().judge(PARIS, text).verdict == "right", final_answer(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the text is empty"),
        (" \n ", "the text is empty"),
        ("<answer> </answer>", "in <answer> is empty"),
        ("Paris finish[]", "in finish[] is empty"),
        ("The answer is", "in answer is is empty"),
        ("...", ""),
    ],
)
def test_an_empty_answer_is_unparsable_and_not_wrong(text: str, reason: str) -> None:
    seen = ExactMatch().judge(PARIS, text)
    assert reason in seen.reason
    assert seen.verdict == ("wrong" if text == "..." else "unparsable")


@pytest.mark.parametrize(
    ("answer", "gold", "em", "f1", "containment"),
    [
        ("The Beatles!", "beatles", 1, 1, 1),
        ("New York University's Tisch School of the Arts", "Tisch", 0, 2 / 8, 1),
        ("190,000", "190,000 employees", 0, 2 / 3, 1),
        ("June 19, 2013", "19 June 2013", 0, 1, 0),
        ("German", "man", 0, 0, 0),
        ("yes", "Yes.", 1, 1, 1),
        ("yes it is", "yes", 0, 0, 0),
        ("no", "yes", 0, 0, 0),
        ("no man", "man no", 0, 1, 0),
        ("noanswer", "noanswer given", 0, 0, 0),
        ("a", "the", 0, 0, 0),
        ("The The", "the the", 1, 1, 1),
    ],
)
def test_exact_match_f1_and_containment_stand_side_by_side(
    answer: str, gold: str, em: float, f1: float, containment: float
) -> None:
    assert likeness(answer, gold) == pytest.approx((em, f1, containment))
    assert likeness(gold, answer) == pytest.approx((em, f1, containment))


def test_of_several_golds_the_best_counts_for_each_measure() -> None:
    task = Task("t", "?", ("United States of America",), "text", metadata={"aliases": ["USA", "the United States"]})
    assert ExactMatch().judge(task, "United States").verdict == "right"
    seen = ExactMatch().judge(task, "States of America")
    assert (seen.verdict, seen.values["containment"]) == (Verdict.WRONG, 1.0)
    assert seen.values["f1"] == pytest.approx(6 / 7)
    assert seen.expected == ("United States of America", "USA", "the United States")
    assert "expected 'United States of America' or 2 other texts" in seen.reason


def test_the_lenient_grader_says_its_threshold() -> None:
    assert TokenF1(0.5).judge(PARIS, "Paris France").reason == "F1 0.67, at least the threshold 0.5"
    seen = TokenF1(0.9).judge(PARIS, "Paris France")
    assert (seen.verdict, seen.reason) == (Verdict.WRONG, "F1 0.67, below the threshold 0.9")
    with pytest.raises(ValueError, match="threshold=0"):
        TokenF1(0)


def test_a_task_with_several_answers_or_broken_aliases_is_refused() -> None:
    with pytest.raises(ValueError, match="has 2 answers"):
        ExactMatch().judge(Task("t", "?", ("a", "b"), "text"), "a")
    with pytest.raises(ValueError, match="expected a list of texts"):
        ExactMatch().judge(Task("t", "?", ("a",), "text", metadata={"aliases": "b"}), "a")


def test_boxes_have_balanced_braces_and_escaped_ones_do_not_count() -> None:
    found = [
        box.text for box in boxes(r"\boxed{\{1,3\}} \boxed{\left\{ x \right.} \boxed{a{b}c} \boxed{\boxed{7}} \boxed{")
    ]
    assert found == [r"\{1,3\}", r"\left\{ x \right.", "a{b}c", "7"]


def test_thoughts_alone_are_what_was_said() -> None:
    assert spoken("<think>hm</think>") == "<think>hm</think>"
    assert normalise("A  the An") == "a the an"
