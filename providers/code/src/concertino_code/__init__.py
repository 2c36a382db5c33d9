"""concertino-code: a `python` tool in a real sandbox, and `code_reasoner`, an agent that writes, runs and repairs code.

Published: the tool `code/python` and the agent `code/code_reasoner`. The first time that a pool asks for the tool, the
levels of isolation are tested, and the strongest that passes is taken; the tool's description says which. The sandbox
alone is in `concertino_code.sandbox`.

A folder of Agent Skills becomes tools: `Pool.of(Path("skills"))`, or `sources = ["skills"]` in a pool file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from concertino import AgentSpec, Finding, ProviderSettings, ToolSpec, hookimpl

from .doctor import findings
from .examples import concertino_examples as concertino_examples
from .settings import CodeSettings, read_settings
from .tool import published, python_tool

__all__ = ["CodeSettings", "python_tool"]


@hookimpl
def concertino_tools(settings: ProviderSettings) -> list[ToolSpec]:
    """The tool, with its sandbox chosen."""
    return [published(read_settings(settings))]


@hookimpl
def concertino_agents() -> list[AgentSpec]:
    """The agent."""
    from .agent import code_reasoner  # its parameters are read from annotations, which imports pydantic

    return [code_reasoner]


@hookimpl
def concertino_members_from(source: Any, settings: ProviderSettings) -> list[ToolSpec] | None:
    """The skills below a folder, or that of a `SKILL.md`."""
    if not isinstance(source, Path):
        return None
    from .skills.finding import find_skills
    from .skills.member import skill_tool

    skills = find_skills(source)
    return None if skills is None else [skill_tool(skill, read_settings(settings)) for skill in skills]


@hookimpl
def concertino_doctor(settings: ProviderSettings) -> list[Finding]:
    """Which sandbox scripts run in, and why not in a stronger one."""
    return findings(read_settings(settings))
