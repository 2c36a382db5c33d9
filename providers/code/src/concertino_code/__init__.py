"""concertino-code: a `python` tool in a real sandbox, and `code_reasoner`, an agent that writes, runs and repairs code.

Published: the tool `code/python` and the agent `code/code_reasoner`. The sandbox alone:

    from concertino_code.choosing import open_sandbox

    async with await open_sandbox() as sandbox:
        done = await sandbox.run("print(6 * 7)")

Importing this module imports neither; the hooks below do. The first time a pool asks for the tool, the levels of
isolation are tried and the strongest that passes its self-test is taken; the tool's description says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import AgentSpec, ToolSpec

__all__ = ["concertino_agents", "concertino_examples", "concertino_tools"]


@hookimpl
def concertino_tools() -> list[ToolSpec]:
    """The tool, with its sandbox chosen."""
    from .tool import published

    return [published()]


@hookimpl
def concertino_agents() -> list[AgentSpec]:
    """The agent."""
    from .agent import code_reasoner

    return [code_reasoner]


concertino_examples: dict[str, Any] = {
    "python": {
        "examples": [
            ({"code": "print(sum(range(101)))"}, {"stdout": "5050\n"}),
            ({"code": "```python\nprint('fenced')\n```"}, {"stdout": "fenced\n"}),
        ],
        "rejected": [{}, {"code": 3}, {"code": "print(1)", "artefacts": "a.txt"}],
        "failing": [{"code": "print(1 / 0)"}, {"code": "import os; os.kill(os.getpid(), 9)"}],
        "slow": {"code": "import time; time.sleep(30)"},
    },
    "code_reasoner": {"rejected": [{"subtask": 3}, {"task": "count"}]},
}
"""What `concertino check` may call, and what is to come of it."""
