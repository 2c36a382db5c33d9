"""Role workflows at toy size: prompts, and a tool that runs scripts of one print.

Invariant: nothing is executed; a script that does more than print literals is an error.
"""

from __future__ import annotations

import ast
from typing import Any

from concertino import CallFailed, Pool, ToolSpec

SCRIPT, DECIDE, STEP = "Write the script.", "Write the actions.", "Write one action."
"""The last line of a prompt: for the programmer, for the planner, and for a planner who works alone, step by step."""
ROLE_PROMPTS = {
    "programmer": f"{{observation}}\n{SCRIPT}",
    "planner": f"{{observation}}\nprinted: {{programmer.result}}\n{DECIDE}",
}
"""Brief prompts of the roles of a workflow, which a tiny model can read."""
STEP_PROMPT = f"{{observation}}\n{STEP}"
"""The prompt of a planner who works alone and takes one action a turn."""
_LONGEST = 2000


def workflow_pool() -> Pool:
    """The pool of the workflows: the script tool. The environment is a member of each task's world."""
    schema = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    text = "Run a script of one statement, print(...) with literals."
    return Pool([ToolSpec("python", text, schema, run_print, retry_safe=True)])


def run_print(code: str) -> dict[str, Any]:
    """What a script of one print prints.

    Raises:
        CallFailed: it is another script.
    """
    try:
        if len(code) > _LONGEST:
            raise ValueError(f"it has {len(code)} characters, at most {_LONGEST} are read")
        printed = _printed(ast.parse(code.strip(), mode="eval").body)
    # The parser raises the last two for texts that are nested too deep.
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
