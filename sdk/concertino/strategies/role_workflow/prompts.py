"""What the roles of the three workflows that come with concertino are asked; the words are concertino's own.

coder/tester        a program, and tests of it; what did not match goes back to both
reasoner/programmer a worked answer, and a script that computes it; until both have the same
planner/programmer  a script that prints actions, and a plan; an environment acts on the plan
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concertino.text.foreign_text import Quoting, break_control_tokens

from .role import Role

_CODE = "Write the whole program in one block that begins with ```python and ends with ```."
_TESTS = """Write each test as
<test>
<input>
what the program reads
</input>
<output>
what it must print
</output>
</test>"""

CODER_TESTER = (
    Role(
        "coder",
        reads="code",
        system="You write Python programs that read standard input with input() and print their result.",
        prompt=f"""Solve this task with a program.

{{question}}

The program must work for every input that the task allows; no input may stand in it. {_CODE}""",
        again=f"""Solve this task with a program.

{{question}}

You have tried before. A tester wrote tests from the same task, and the program was run on them:

{{history}}

For each test that did not match, find out first which side is wrong. If the program is, mend it; if it crashed, mend \
that first. If the expected output is wrong, leave the program as it is. {_CODE}""",
    ),
    Role(
        "tester",
        reads="tests",
        system="You write tests for programs that read standard input and print their result.",
        prompt=f"""Write one to three tests for a program that solves this task.

{{question}}

Cover an ordinary case and a case at the edge. Work out each expected output step by step from the task alone; a wrong \
one does harm. {_TESTS}""",
        again=f"""Write one to three tests for a program that solves this task.

{{question}}

You have written tests before, and a program was run on them:

{{history}}

For each test that did not match, work the expected output out once more from the task. If it was wrong, correct it; \
if it was right, keep the test as it is. {_TESTS}""",
    ),
)
"""A coder and a tester."""

_BOX = "End with the answer, a single number or expression, as \\boxed{{...}}."
_SCRIPT = (
    "Use exact arithmetic where you can, no network and no randomness. Print nothing but the answer. Write the whole "
    "script in one block that begins with ```python and ends with ```."
)

REASONER_PROGRAMMER = (
    Role(
        "reasoner",
        reads="answer",
        system="You solve problems of mathematics by careful reasoning.",
        prompt=f"""Solve the problem. Show the steps that matter.

{{question}}

{_BOX}""",
        again=f"""Solve the problem once more.

{{question}}

A colleague computes the answer with a script, and the two of you do not agree yet:

{{history}}

Find out who is wrong. A script is right about arithmetic and may be wrong about the problem: edge cases, domains, \
rounding. {_BOX}""",
    ),
    Role(
        "programmer",
        reads="code",
        tools=("python",),
        system="You solve problems of mathematics by Python scripts.",
        prompt=f"""Write a Python script that computes the answer to the problem.

{{question}}

{_SCRIPT}""",
        again=f"""Write a Python script that computes the answer to the problem.

{{question}}

A colleague solves it by reasoning, and the two of you do not agree yet:

{{history}}

Find out who is wrong. If the script was, mend or rewrite it; if not, keep its method and make it more robust. \
{_SCRIPT}""",
    ),
)
"""A reasoner and a programmer with a Python tool."""

_ACTIONS = 'End with a line that holds the actions as a JSON list behind ####, for example: #### ["U", "R"]'
_SCRIPT_TO_CHECK = f"""This is to be seen now:
{{observation}}

A colleague wrote this script:
{{programmer.value}}

It printed:
{{programmer.result}}

Check the printed actions against the rules and the goal. Take them if they are right, correct them if not. \
{_ACTIONS}"""
_PLANNING = (
    "Print the actions as one JSON list and nothing else. If you are not sure of the whole way, print a safe beginning "
    "of it. Write the whole script in one block that begins with ```python and ends with ```."
)

PLANNER_PROGRAMMER = (
    Role(
        "programmer",
        reads="code",
        tools=("python",),
        system="You solve planning tasks by Python scripts that search for a way.",
        prompt=f"""Write a Python script that finds the actions that reach the goal.

{{question}}

This is to be seen now:
{{observation}}

{_PLANNING}""",
        again=f"""Write a Python script that finds the actions that reach the goal from here.

{{question}}

What was done before:

{{history}}

This is to be seen now:
{{observation}}

{_PLANNING}""",
    ),
    Role(
        "planner",
        reads="actions",
        system="You decide about the actions that are taken. They are taken as you write them.",
        prompt=f"""Decide which actions to take.

{{question}}

{_SCRIPT_TO_CHECK}""",
        again=f"""Decide which actions to take from here.

{{question}}

What was done before:

{{history}}

{_SCRIPT_TO_CHECK}""",
    ),
)
"""A planner and a programmer with a Python tool, in an environment."""


def hand_back(messages: Sequence[str]) -> str:
    """The issues of a text, for the role that wrote it."""
    return (
        "Your text could not be used: "
        + break_control_tokens("; ".join(dict.fromkeys(messages)))
        + ". Write it again, as a whole."
    )


def tell_mismatch(number: int, test: Mapping[str, str], got: str, quoted: Quoting) -> str:
    """A test that did not match."""
    given, expected, got = (quoted.text(_cut(text)) for text in (test["input"], test["output"], got))
    return f"Test {number}, input:\n{given}\nexpected output:\n{expected}\nthe program gave:\n{got}"


def _cut(text: str) -> str:
    text = text.strip("\n") or "(nothing)"
    return text if len(text) <= 800 else f"{text[:400]}\n[...]\n{text[-400:]}"


def script_with_input(code: str, given: str) -> str:
    """A script that runs a program with its standard input; only a sandbox may run it.

    The program stands in it as a text, so nothing in it can end the text early.
    """
    data = given if given.endswith("\n") or not given else given + "\n"
    return (
        "import io, sys\n"
        # Programs may read `sys.stdin.buffer` too, which `StringIO` lacks.
        f"sys.stdin = io.TextIOWrapper(io.BytesIO({data.encode('utf-8', 'replace')!r}), encoding='utf-8')\n"
        f"exec(compile({code!r}, 'program.py', 'exec'), {{'__name__': '__main__'}})\n"
    )
