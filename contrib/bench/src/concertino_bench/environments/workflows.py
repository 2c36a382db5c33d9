"""The role workflow of each environment, after AT-GRPO's: who speaks, what he calls, when the run is over.

    plan-path, sokoban   a programmer whose script proposes steps, a planner who decides; over when the world says so
    sudoku               the same with a grid or a list of cells
    code                 a coder, whose programs are also handed in, and a tester; over when the tester's tests pass
    maths                a reasoner, whose answers are also handed in, and a programmer; over when both have the same

The invariant: no role sees hidden tests, a right answer or a reward. What is handed in is for the grader.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from concertino.strategies.role_workflow import (
    Role,
    RoleWorkflow,
    coder_tester,
    planner_programmer,
    reasoner_programmer,
)

MEMBERS = {
    "plan-path": "plan_path",
    "sudoku": "sudoku",
    "sokoban": "sokoban",
    "code": "code_tests",
    "maths": "maths",
}
"""The member through which each environment is acted in."""

_GRID = """{question}

This is the grid now:
{observation}"""
_GRID_AGAIN = """{question}

What was done before:

{history}

This is the grid now:
{observation}"""
_SCRIPT = """

Print the solution and nothing else, as one JSON list: either all rows of the grid, or [row, column, number] for every \
empty cell, counted from 1. Write the whole script in one block that begins with ```python and ends with ```."""
_DECISION = """

A colleague wrote this script:
{programmer.value}

It printed:
{programmer.result}

Check what it printed against the rules: every row, column and block. Take it if it is right, correct it if not. \
End with a line that holds the solution as one JSON list behind ####: all rows of the grid, or [row, column, number] \
for the cells to fill, counted from 1. For example: #### [[1, 3, 4], [2, 1, 6]]"""
_SUDOKU = (
    Role(
        "programmer",
        reads="code",
        tools=("python",),
        system="You solve Sudoku by Python scripts that search for the solution.",
        prompt=f"Write a Python script that solves this Sudoku.\n\n{_GRID}{_SCRIPT}",
        again=f"Write a Python script that solves the rest of this Sudoku.\n\n{_GRID_AGAIN}{_SCRIPT}",
    ),
    Role(
        "planner",
        reads="actions",
        system="You decide about the numbers that are filled in. They are filled in as you write them.",
        prompt=f"Decide which numbers to fill in.\n\n{_GRID}{_DECISION}",
        again=f"Decide which numbers to fill in from here.\n\n{_GRID_AGAIN}{_DECISION}",
    ),
)


def workflow_for(environment: str, *, python: str = "python", **settings: Any) -> RoleWorkflow:
    """The workflow of an environment.

    Args:
        environment: "plan-path", "sudoku", "sokoban", "code" or "maths".
        python: the member that runs scripts.
        settings: other settings of `RoleWorkflow`, such as `turns`.

    Raises:
        ValueError: the environment does not exist.
    """
    if environment not in MEMBERS:
        raise ValueError(f"environment={environment!r}: expected one of {', '.join(MEMBERS)}")
    member = MEMBERS[environment]
    if environment == "code":
        return _handing_in(coder_tester(tool=python, **settings), "coder", member)
    if environment == "maths":
        return _handing_in(reasoner_programmer(tool=python, **settings), "reasoner", member)
    plain = planner_programmer(member, tool=python, **settings)
    if environment != "sudoku":
        return plain
    roles = tuple(replace(role, tools=(python,)) if role.tools else role for role in _SUDOKU)
    return replace(plain, roles=roles)


def _handing_in(workflow: RoleWorkflow, role: str, member: str) -> RoleWorkflow:
    """A workflow in which what a role says is also the action of a member."""
    # The world's member takes every word of this role, so the grader sees what was handed in last.
    roles = tuple(
        replace(each, tools=(member,), argument="action") if each.name == role else each for each in workflow.roles
    )
    return replace(workflow, roles=roles)
