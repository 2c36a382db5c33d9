"""The three workflows that come with concertino, after AT-GRPO's: code, mathematics and planning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from . import prompts
from .role import Agree, PassTests, ReachGoal, Role
from .strategy import RoleWorkflow


def coder_tester(*, tool: str = "python", **settings: Any) -> RoleWorkflow:
    """A coder and a tester, until the program passes the tests.

    Args:
        tool: the member that runs Python scripts.
        settings: other settings of `RoleWorkflow`.
    """
    return RoleWorkflow(prompts.CODER_TESTER, PassTests("coder", "tester", tool), **settings)


def reasoner_programmer(*, tool: str = "python", **settings: Any) -> RoleWorkflow:
    """A reasoner, and a programmer whose script computes the answer, until both have the same.

    Args:
        tool: the member that runs Python scripts.
        settings: other settings of `RoleWorkflow`.
    """
    roles = _running(prompts.REASONER_PROGRAMMER, tool)
    return RoleWorkflow(roles, Agree("reasoner.value", "programmer.result"), **settings)


def planner_programmer(environment: str, *, tool: str = "python", **settings: Any) -> RoleWorkflow:
    """A programmer whose script proposes actions, and a planner who decides; an environment takes them.

    Args:
        environment: the member through which the environment is reached (`environment_tool`).
        tool: the member that runs Python scripts.
        settings: other settings of `RoleWorkflow`.
    """
    roles = _running(prompts.PLANNER_PROGRAMMER, tool)
    return RoleWorkflow(roles, ReachGoal("planner", environment), **settings)


def _running(roles: tuple[Role, ...], tool: str) -> tuple[Role, ...]:
    """The roles with another tool for scripts."""
    return tuple(replace(role, tools=(tool,)) if role.tools else role for role in roles)
