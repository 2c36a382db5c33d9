"""The strategies that come with the SDK, by name, and how a strategy is found by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from concertino.core.errors import UsageError
from concertino.schema import near_names

if TYPE_CHECKING:
    from .base.machine import Strategy

_CLASSES = {
    "parallel-rounds": "ParallelRounds",
    "agent-graph": "AgentGraph",
    "dependency-plan": "DependencyPlan",
    "serial-calls": "SerialCalls",
    "role-workflow": "RoleWorkflow",
    "direct-answer": "DirectAnswer",
}


class _BuiltIn(Mapping[str, "type[Strategy]"]):
    """Classes by name. Each is imported when it is asked for: a run follows one, and all take 40 ms to import."""

    def __getitem__(self, name: str) -> type[Strategy]:
        class_name = _CLASSES[name]
        found: type[Strategy] = getattr(import_module(f".{name.replace('-', '_')}", __package__), class_name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


BUILT_IN: Mapping[str, type[Strategy]] = _BuiltIn()
"""Strategies that come with the SDK, by name."""

DEFAULT_STRATEGY = "parallel-rounds"
"""What an orchestrator follows where nothing else is said."""
ALONE = "direct-answer"
"""What it follows then over a pool that has nothing to call."""


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
    from .role_workflow import RoleWorkflow

    return RoleWorkflow.load(path)


def installed_strategy(name: str) -> type[Strategy]:
    """A strategy class by its name, built in or of an installed plugin. Plugins are loaded only for other names.

    Raises:
        UsageError: no strategy of that name; names near ones.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    # Imported here, because most processes follow a built-in strategy over a pool made in code: no plugin is looked up.
    from concertino.plugins.manager import default_manager

    return strategy_by_name(name, default_manager().strategies())
