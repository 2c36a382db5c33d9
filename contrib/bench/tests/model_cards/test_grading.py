"""Replies as models write them, and whether they give the known answer."""

from __future__ import annotations

import pytest
from concertino_bench.graders.numeric import numbers
from concertino_bench.graders.verbatim import _ending
from concertino_bench.model_cards import make_task
from concertino_bench.model_cards.tasks import GRADERS
from hypothesis import given
from hypothesis import strategies as st


def graded(grader: str, answer: str, reply: str) -> bool:
    return GRADERS[grader].judge(make_task("?", answer, "kind", grader), reply).verdict == "right"


RIGHT = {
    "number": [
        ("42", "Answer: 42"),
        ("42", "It is 40 + 2.\n**Final Answer:** 42."),
        ("42", "The answer is 42"),
        ("42", "6 * 7 = 42"),
        ("42", "Answer: 6 * 7 = 42"),
        ("42", "<think>41? no</think>\\boxed{42}"),
        ("42", "<reasoning>9</reasoning><answer>42</answer>"),
        ("1250.5", "Answer: $1,250.50"),
        ("12300", "Answer: 12\u202f300 s"),
        ("0.75", "Answer: 3/4"),
        ("-3", "Answer: −3"),
        ("2500", "Answer: 2.5e3 m"),
        ("54", "Answer: 54 km/h (which is 15 m/s)"),
        ("7", "I first get 3 and then 7"),
    ],
    "exact": [
        ("Friday", "Answer: friday."),
        ("Friday", 'Answer: "Friday"'),
        ("knight", "Answer: a knight"),
        ("02:25", "It ends at\n\n02:25"),
        ('{"a": 1, "b": [2]}', 'Answer: {"b": [2.0], "a": 1}'),
        ('{"a": 1}', 'Answer:\n```json\n{"a": 1}\n```'),
        ('{"a": 1}', 'Here you are: {"a": 1}. I hope it helps.'),
        ("[1, 3]", "Answer: [1, 3]"),
        ("nretnal", "The word is nretnal\nAnswer: **nretnal**"),
    ],
    "contains": [
        ("kitchen", "Answer: in the kitchen"),
        ("Ben", "The last one was Ben, after Cleo."),
        ("New Town", "answer: New  town!"),
    ],
    "choice": [
        ("B", "Answer: B"),
        ("B", "Answer: (b)"),
        ("B", "Answer: B) It does not rain."),
        ("B", "Answer: **B**"),
        ("B", "All things considered, option B is right."),
        ("C", "\\boxed{C}"),
    ],
}
WRONG = {
    "number": [
        ("42", ""),
        ("42", "Answer: forty-two"),
        ("42", "Answer: 41"),
        ("42", "Answer: 420"),
        ("42", "42 is close.\nAnswer: 43"),
        ("42", "<think>Answer: 42</think>Answer: 7"),
        ("42", "<think>It is \\boxed{42}</think>I do not know."),
        ("42", "<think>42</think>No idea."),
        ("3", "Answer: 3.5"),
        ("3", "Answer: 13"),
    ],
    "exact": [
        ("Friday", "Answer: Friday or Saturday"),
        ("Friday", "Answer: Thursday"),
        ('{"a": 1}', 'Answer: {"a": true}'),
        ('{"a": 1}', 'Answer: {"a": 1, "b": 2}'),
        ("[1, 3]", "Answer: [3, 1]"),
        ("[1, 3]", "Answer: 1, 3"),
    ],
    "contains": [("Ben", "Answer: Benny"), ("Ben", "Ben was first.\nAnswer: Ada"), ("kitchen", "Answer: ")],
    "choice": [
        ("B", "Answer: A"),
        ("B", "Answer: A or B"),
        ("B", "Answer: none"),
        ("B", "A) is wrong, B) is right, so I waver between A and B"),
        ("A", "Answer: a pear"),
    ],
}


@pytest.mark.parametrize(
    ("grader", "answer", "reply"), [(grader, *case) for grader, cases in RIGHT.items() for case in cases]
)
def test_a_right_answer_is_recognised(grader: str, answer: str, reply: str) -> None:
    assert graded(grader, answer, reply)


@pytest.mark.parametrize(
    ("grader", "answer", "reply"), [(grader, *case) for grader, cases in WRONG.items() for case in cases]
)
def test_a_wrong_answer_is_not_taken_for_right(grader: str, answer: str, reply: str) -> None:
    assert not graded(grader, answer, reply)


def test_the_last_mark_counts() -> None:
    assert _ending("Answer: 1\nNo, wait.\nAnswer: 2").text.strip() == "2"


def test_a_box_that_is_never_closed_is_no_box() -> None:
    assert _ending("\\boxed{4{2}").text == "\\boxed{4{2}"


@given(st.text(max_size=300), st.sampled_from(["exact", "number", "contains", "choice"]))
def test_no_reply_breaks_a_grader(reply: str, grader: str) -> None:
    for text in (reply, f"Answer: {reply}", f"\\boxed{{{reply}}}"):
        assert graded(grader, {"number": "7", "choice": "B"}.get(grader, '{"a": 1}'), text) in (True, False)


@given(st.integers(-(10**12), 10**12))
def test_whole_numbers_are_read_as_they_are_written(number: int) -> None:
    assert [n.value for n in numbers(f"about {number:,} or {number}")] == [number, number]
