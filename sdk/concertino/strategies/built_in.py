"""The strategies that come with the SDK, by name, and how a strategy is found by its name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from concertino.core.errors import UsageError
from concertino.plugins.manager import default_manager
from concertino.schema import near_names

from .agent_graph.strategy import AgentGraph
from .base.machine import Strategy
from .dependency_plan.strategy import DependencyPlan
from .parallel_rounds.strategy import ParallelRounds
from .role_workflow.strategy import RoleWorkflow
from .serial_calls.strategy import SerialCalls

BUILT_IN: Mapping[str, type[Strategy]] = {
    strategy.name: strategy for strategy in (ParallelRounds, AgentGraph, DependencyPlan, SerialCalls, RoleWorkflow)
}
"""Strategies that come with the SDK, by name."""

DEFAULT_STRATEGY = ParallelRounds.name
"""What an orchestrator follows where nothing else is said."""


def strategy_by_name(name: str, more: Mapping[str, type[Strategy]] | None = None) -> type[Strategy]:
    """A strategy class by its name.

    Args:
        name: of a built-in strategy, or of one in `more`.
        more: strategies of plugins, by name; they win over built-in ones.

    Raises:
        UsageError: no strategy of that name; names near ones.
    """
    for known in (more or {}, BUILT_IN):
        if name in known:
            return known[name]
    every = {*BUILT_IN, *(more or {})}
    known_names = sorted(each for each in every if each.rpartition("/")[2] not in every - {each})
    near = near_names(name, known_names, limit=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UsageError(f"there is no strategy {name!r}; {hint}there are {', '.join(known_names)}")


def load_strategy(path: str | Path) -> Strategy:
    """The strategy that a file holds: a workflow of roles.

    Raises:
        UsageError: names the file, and all that is wrong with its line.
    """
    return RoleWorkflow.load(path)


def installed_strategy(name: str) -> type[Strategy]:
    """A strategy class by its name, built in or of an installed plugin. Plugins are loaded only for other names.

    Raises:
        UsageError: no strategy of that name; names near ones.
    """
    return BUILT_IN[name] if name in BUILT_IN else strategy_by_name(name, default_manager().strategies())
