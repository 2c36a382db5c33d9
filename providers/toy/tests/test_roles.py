"""What a model writes as a role: the form that was asked for, and a script that is its own solution."""

from __future__ import annotations

import contextlib
import io
from random import Random

import pytest
from concertino import ChatRequest, Message
from concertino_toy.problems.grammar import read
from concertino_toy.problems.writer import make_question
from concertino_toy.simulated.models import SAGE, SimulatedSolver
from concertino_toy.simulated.roles import task_of, wanted_form, write_script
from concertino_toy.simulated.skills import Skill

PERFECT = Skill()


def printed(script: str) -> str:
    """What a script of ours prints; it holds nothing but arithmetic."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(script, {"__builtins__": {"print": print}})
    return output.getvalue().strip()


@pytest.mark.parametrize("kind", [{}, {"chained": True}, {"needle": True}, {"depth": 9, "breadth": 4}, {"lure": True}])
@pytest.mark.parametrize("seed", range(8))
def test_a_script_prints_the_answers(kind: dict[str, int | bool], seed: int) -> None:
    text, answers = make_question(Random(seed), 3, **kind)  # type: ignore[arg-type]
    assert printed(write_script(read(text), PERFECT, "key")) == ", ".join(map(str, answers))


def test_a_script_lets_python_do_the_arithmetic() -> None:
    text = (
        "The number of each Moss Court's Bog Bed equals 6. The number of each Moss Court's Rose Border equals 2 times "
        "as much as each Moss Court's Bog Bed. How many Rose Border does Moss Court have?"
    )
    assert write_script(read(text), PERFECT, "key") == 'v1 = 6\nv2 = (2 * v1) % 23\nprint(v2, sep=", ")'


def test_a_believed_note_is_in_the_script_too() -> None:
    text, answers = make_question(Random(3), 1, depth=1, lure=True)
    assert printed(write_script(read(text), Skill(lure_rate=1.0), "key")) != str(answers[0])


@pytest.mark.parametrize(
    ("prompt", "form"),
    [
        ("Write <test>…</test> blocks.", "tests"),
        ("Put it between ```python and ```.", "code"),
        ("Give a single number as \\boxed{...}.", "answer"),
        ("Write each value in \\boxed{}.", None),
        ("How many Bed does Moss Court have?", None),
    ],
)
def test_the_form_is_told_by_its_marks(prompt: str, form: str | None) -> None:
    assert wanted_form([Message("user", prompt)]) == form


def test_the_record_of_earlier_turns_is_not_read() -> None:
    text = (
        "A?\n\nTurn 1\ncoder wrote:\n```python\n1\n```\nOutcome: no.\n\nTurn 2\nOutcome: <test>\n\nSay it as one text."
    )
    assert task_of([Message("user", text)]) == "A?\n\n\n\nSay it as one text."
    assert wanted_form([Message("user", text)]) is None


async def test_several_answers_are_one_box_of_a_role() -> None:
    text, answers = make_question(Random(1), 2)
    messages = [Message("user", f"{text}\n\nEnd with a single expression in \\boxed{{...}}.")]
    reply = await SimulatedSolver("toy/sage", SAGE).chat(ChatRequest(messages))
    assert reply.text.endswith(f"\\boxed{{{answers[0]}, {answers[1]}}}")
