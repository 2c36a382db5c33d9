"""The members that a baseline asks: models offered as agents, or any others that take one text.

Invariant: a member is asked with one argument, the text; what else it takes keeps its default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from concertino import Call, UsageError
from concertino.schema import suggestion

TASK = "task"
"""The argument of a model that is offered as an agent."""


class AskedMember(NamedTuple):
    """A member that can be asked: its visible name, and the argument that takes the text."""

    name: str
    argument: str

    def call(self, text: str, call_id: str = "") -> Call:
        """The call that asks it."""
        return Call(self.name, {self.argument: text}, call_id)


def members_of(tools: Sequence[Mapping[str, Any]], chosen: Sequence[str], strategy: str) -> tuple[AskedMember, ...]:
    """The members to ask, in their order.

    Args:
        tools: the action space, as a `TaskContext` has it; empty where it is not known, as in a replay.
        chosen: visible names; without any, every model that is offered as an agent.
        strategy: who asks, for errors.

    Raises:
        UsageError: a name is unknown, a member takes more than one text, or no model is offered.
    """
    # A replay does not know the pool, and takes the recorded calls: the names are right already.
    if not tools:
        return tuple(AskedMember(name, TASK) for name in chosen)
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    if not chosen:
        found = tuple(AskedMember(name, TASK) for name, function in functions.items() if is_expert(function))
        if not found:
            raise UsageError(
                f"{strategy}: no model of the pool can be asked as an agent; offer some with pool.offering('*'), or "
                f"name members: there are {', '.join(list(functions)[:8])}"
            )
        return found
    for name in chosen:
        if name not in functions:
            hint = suggestion(name, functions)
            raise UsageError(f"{strategy}: the pool has no member {name!r}; {hint}")
    return tuple(AskedMember(name, _argument(functions[name], strategy)) for name in chosen)


def is_expert(function: Mapping[str, Any]) -> bool:
    """Whether a function object has the form of a model offered as an agent: it takes a `task` and nothing else."""
    return list(_properties(function)) == [TASK]


def _argument(function: Mapping[str, Any], strategy: str) -> str:
    """The one argument that takes the text."""
    properties = _properties(function)
    required = function.get("parameters", {}).get("required", [])
    # Optional arguments keep their defaults, so only the required ones have to be a single text.
    wanted = [name for name in properties if name in required] or list(properties)
    if len(wanted) != 1 or properties[wanted[0]].get("type", "string") != "string":
        needs = ", ".join(wanted) or "nothing"
        raise UsageError(
            f"{strategy}: the member {function['name']!r} takes {needs}; expected a member that takes one text"
        )
    return str(wanted[0])


def _properties(function: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = function.get("parameters", {}).get("properties", {})
    return found
