"""The exercises of the tiny conductor: questions and pools, the teacher, its conversations, and the trial."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from concertino import ChatRequest, Executor, Model, Orchestrator, Reply
from concertino_toy.exercises import ConductorTeacher, boxes, collect, is_clean, try_out
from concertino_toy.exercises.conversations import conversation
from concertino_toy.exercises.exercise import draw_exercise
from concertino_toy.exercises.teacher import MOST_ATTEMPTS, value_in
from concertino_toy.exercises.wording import new_value, refusal_text, reply_text


def lead(number: int, slips: float = 0.0, fault_rate: float = 0.2) -> Any:
    async def run() -> Any:
        exercise = draw_exercise(number, fault_rate=fault_rate)
        async with Executor() as executor:
            teacher = ConductorTeacher(exercise.choices, slips=slips, seed=number)
            run = await Orchestrator(teacher, exercise.strategy, executor=executor).run(
                exercise.question, pool=exercise.pool
            )
            return exercise, run

    return asyncio.run(run())


def test_without_faults_the_teacher_is_right_in_every_exercise() -> None:
    for number in range(40):
        exercise, run = lead(number, fault_rate=0.0)
        assert boxes(run) == exercise.answers, run.question
        assert is_clean(run)


def test_with_faults_it_asks_somebody_else_and_is_mostly_right() -> None:
    runs = [lead(number) for number in range(80)]
    failed = [(exercise, run) for exercise, run in runs if not all(seen.ok for seen in run.observations)]
    assert len(failed) > 20
    assert sum(boxes(run) == exercise.answers for exercise, run in failed) >= 0.8 * len(failed)


def test_a_slip_is_mended_and_not_learned() -> None:
    said = [each for number in range(20) for each in conversation(lead(number, slips=1.0, fault_rate=0.0)[1])]
    turns = [(message.text, learned) for message, learned in said if message.role == "assistant"]
    assert any(not learned for _, learned in turns)
    assert all("PARSE_ERR" not in text for text, learned in turns if learned)


def test_the_same_number_is_the_same_exercise_and_gives_the_same_run() -> None:
    first, again = collect(range(6), slips=0.3), collect(range(6), slips=0.3)
    assert first == again
    assert draw_exercise(1).question != draw_exercise(1, seed=1).question


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6 * 3 = 18. The answer is 25.", "25"),
        ('"<answer>\\n\\\\boxed{-3}\\n</answer>"', "-3"),
        ("\\boxed{1.5}", "1.5"),
        ('"sums\\n#### 1234\\n\\n"', "1234"),
        ("7", "7"),
        ("unknown", ""),
        ("It is beyond me: 7 * 2 = 3.", ""),
        ('"2*7=<<2*7=14>>14 pens\\nA: 1,430"', "1,430"),
        ("4 + 5 = 9. In all Ada pays $1,234.50.", "1,234.50"),
        ("3 * 4 [… 58 characters left out …] So Ben has 12 pens.", "12"),
        ("4 [… 58 characters left out …]", "4"),
    ],
)
def test_the_teacher_reads_the_answer_of_a_reply(text: str, value: str) -> None:
    assert value_in(text) == value


@pytest.mark.parametrize("long", [False, True])
def test_whatever_a_member_writes_the_teacher_reads_the_answer_that_was_meant(long: bool) -> None:
    for number in range(1000):
        rng = Random(number)
        value = new_value(rng)
        text = reply_text(rng, value, long=long)
        assert value_in(text).replace(",", "") == value, text
        assert value_in(refusal_text(rng)) == ""


def test_the_notes_say_all_that_is_known_and_how_often_a_problem_failed() -> None:
    for number in range(30):
        _, run = lead(number, fault_rate=0.4)
        thoughts = [made.text.partition("</reasoning>")[0] for made in run.rounds]
        for before, after in pairwise(thoughts):
            known = dict(re.findall(r"(\d): ([^?,;]+)", before))
            assert known.items() <= dict(re.findall(r"(\d): ([^?,;]+)", after)).items()
        counts = [int(times) for thought in thoughts for times in re.findall(r"\?(\d)", thought)]
        assert all(1 <= count <= MOST_ATTEMPTS for count in counts)


def test_a_trial_counts_what_came_of_the_runs() -> None:
    class Silent(Model):
        async def chat(self, request: ChatRequest) -> Reply:
            return Reply("nothing")

    figures = try_out(Silent(), range(3))
    assert (figures.runs, figures.right, figures.clean, figures.failed) == (3, 0.0, 0.0, 0)
