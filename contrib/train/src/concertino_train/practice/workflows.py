"""Role workflows at toy size: Plan-Path and Sudoku with brief prompts, and a tool that runs scripts of one print.

The workflows are those of `concertino_bench.environments`; only the prompts are short, so that a tiny model reads them.
The invariant of the script tool: nothing is executed; a script that does more than print one literal is an error.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any, Literal

from concertino import CallFailed, Pool, ToolSpec, UsageError
from concertino.strategies import RoleWorkflow
from concertino_bench.environments import workflow_for

Place = Literal["plan-path", "sudoku"]
SCRIPT, DECIDE = "Write the script.", "Write the actions."
"""The last line of a prompt: for the programmer, and for the planner."""
_LONGEST = 2000


def practice_workflow(environment: Place = "plan-path", **settings: Any) -> RoleWorkflow:
    """The workflow of an environment, with brief prompts.

    Args:
        environment: "plan-path" or "sudoku".
        settings: other settings of `RoleWorkflow`, such as `turns`.

    Raises:
        UsageError: there is no such environment here.
    """
    if environment not in ("plan-path", "sudoku"):
        raise UsageError(f"practice_workflow({environment!r}): expected 'plan-path' or 'sudoku'")
    full = workflow_for(environment, **{"turns": 2, **settings})
    prompts = {
        "programmer": f"{{observation}}\n{SCRIPT}",
        "planner": f"{{observation}}\nprinted: {{programmer.result}}\n{DECIDE}",
    }
    roles = tuple(replace(role, system="", prompt=prompts[role.name], again="") for role in full.roles)
    return replace(full, roles=roles)


def workflow_pool() -> Pool:
    """The pool of the workflows: the script tool. The environment is a member of each task's world."""
    return Pool([printing_python()])


def printing_python() -> ToolSpec:
    """A tool named `python` that runs scripts of one statement, `print(literal)`; it executes nothing."""
    schema = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    text = "Run a script of one statement, print(...) with literals."
    return ToolSpec("python", text, schema, run_print, retry_safe=True)


def run_print(code: str) -> dict[str, Any]:
    """What a script of one print prints.

    Raises:
        CallFailed: it is another script.
    """
    try:
        if len(code) > _LONGEST:
            raise ValueError(f"it has {len(code)} characters, at most {_LONGEST} are read")
        printed = _printed(ast.parse(code.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        words = f"expected one print(...) of literals: {type(error).__name__}"
        raise CallFailed.because(words, code="script_failed", content={"stdout": "", "stderr": words}) from None
    return {"stdout": printed, "stderr": "", "exit_code": 0}


def _printed(statement: ast.expr) -> str:
    if not (isinstance(statement, ast.Call) and isinstance(statement.func, ast.Name) and statement.func.id == "print"):
        raise ValueError("no print")
    if statement.keywords:
        raise ValueError("print with options")
    return " ".join(str(ast.literal_eval(each)) for each in statement.args)
