"""concertino-code: a `python` tool in a real sandbox, and `code_reasoner`, an agent that writes, runs and repairs code.

Published: the tool `code/python` and the agent `code/code_reasoner`. The sandbox alone:

    from concertino_code.choosing import open_sandbox

    async with await open_sandbox() as sandbox:
        done = await sandbox.run("print(6 * 7)")

Importing this module imports neither; the hooks below do. The first time a pool asks for the tool, the levels of
isolation are tried and the strongest that passes its self-test is taken; the tool's description says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from concertino import hookimpl

from .examples import concertino_examples

if TYPE_CHECKING:
    from concertino import AgentSpec, Finding, ProviderSettings, ToolSpec

__all__ = ["concertino_agents", "concertino_doctor", "concertino_examples", "concertino_tools"]


@hookimpl
def concertino_tools(settings: ProviderSettings) -> list[ToolSpec]:
    """The tool, with its sandbox chosen."""
    from .settings import read_settings
    from .tool import published

    return [published(read_settings(settings))]


@hookimpl
def concertino_agents() -> list[AgentSpec]:
    """The agent."""
    from .agent import code_reasoner

    return [code_reasoner]


@hookimpl
def concertino_doctor(settings: ProviderSettings) -> list[Finding]:
    """Which sandbox scripts run in, and why not in a stronger one."""
    from .doctor import findings
    from .settings import read_settings

    return findings(read_settings(settings))
