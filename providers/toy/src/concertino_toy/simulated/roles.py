"""What a model writes in a workflow of roles: a worked answer, a script, or a test.

The marks of the form say which is wanted, not the words of the prompt: `<test>` wants tests, a fence of three
backticks code, one `\\boxed{...}` for a single answer. Several values make one answer, `6, 9`, so that a reasoner's
box, a program's output and a test's expectation can be the same text.

The script is a translation: each step of the solution as an assignment, so Python does the arithmetic. What a model
misreads, it misreads in its script too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from concertino import Message

from concertino_toy.problems.grammar import MODULUS, Ask, Needle, Question
from concertino_toy.problems.solver import SolutionStep, SolvedQuestion

from .skills import Skill

Form = Literal["tests", "code", "answer"]
_MARKS: dict[Form, re.Pattern[str]] = {
    "tests": re.compile(r"<test>"),
    "code": re.compile(r"```\s*python"),
    "answer": re.compile(r"\bsingle\b[^\n]*\\boxed|\\boxed[^\n]*\bsingle\b"),
}
_RECORD = re.compile(r"^Turn \d+$.*^Outcome:[^\n]*", re.M | re.S)
"""What was said in earlier turns; it may quote anything, so it is not read."""
_LITERAL = ("as the text says", "as the note says", "not mentioned")


def wanted_form(messages: Sequence[Message]) -> Form | None:
    """What a conversation asks its model to write; None for a plain question."""
    prompt = task_of(messages)
    return next((form for form, mark in _MARKS.items() if mark.search(prompt)), None)


def task_of(messages: Sequence[Message]) -> str:
    """The prompt that a role was given: the first message of a user, without the record of earlier turns."""
    prompt = next((message.text for message in messages if message.role == "user"), "")
    return _RECORD.sub("", prompt)


def play(form: Form, question: Question, skill: Skill, key: str) -> str:
    """What a model of some skill writes in a form.

    Raises:
        CannotDo: the skill lacks an operation.
        GrammarError: the question has no answer.
    """
    solution = skill.attempt(question, key)
    joined = ", ".join(map(str, solution.answers))
    if form == "tests":
        return f"<test>\n<input>\n</input>\n<output>\n{joined}\n</output>\n</test>"
    if form == "code":
        return f"```python\n{write_script(question, skill, key)}\n```"
    steps = "\n".join(f"- {step}" for step in solution.steps)
    return f"{steps}\n\n\\boxed{{{joined}}}"


def write_script(question: Question, skill: Skill, key: str) -> str:
    """A Python script that works the question out and prints all answers in one line."""
    lines: list[str] = []
    names: dict[str, str] = {}
    asked: list[str] = []
    done = 0
    for count, problem in enumerate(question.problems, start=1):
        # A longer question begins with the same work, so what is new belongs to the problem that was added.
        solution = skill.attempt(Question(question.problems[:count]), key)
        for step in solution.steps[done:]:
            variable = f"v{len(lines) + 1}"
            lines.append(f"{variable} = {_expression(step, names)}")
            names[str(step.about)] = variable
        done = len(solution.steps)
        asked += _asked(problem.asks, solution, names)
    return "\n".join([*lines, f'print({", ".join(asked)}, sep=", ")'])


def _asked(asks: Sequence[Ask], solution: SolvedQuestion, names: dict[str, str]) -> list[str]:
    """For each question the variable that answers it; the value, where an earlier problem had it."""
    values = solution.answers[len(solution.answers) - len(asks) :]
    return [names.get(str(ask), str(value)) for ask, value in zip(asks, values, strict=True)]


def _expression(step: SolutionStep, names: dict[str, str]) -> str:
    """The right side of a step in Python, with the variables of the steps before it."""
    if step.formula in _LITERAL or isinstance(step.about, Needle):
        return step.numbers
    # The longest first, since one name may begin with another.
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    written = re.sub(known, lambda match: names[match[0]], step.formula) if known else step.formula
    # A result that the text states has no step, and so no variable: its number stands in its place.
    right = written if re.fullmatch(r"[v0-9+\-*() ]+", written) else step.numbers
    return f"({right}) % {MODULUS}"
