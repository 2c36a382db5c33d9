"""What a list hook returned, checked: a list of the right things, named after their provider, with usable
schemas.

Runs inside the guard, since looking at a plugin's objects runs its code. A member's full name is
`provider/name`; a bare name is completed, and the name of another provider is refused, so no plugin can take
another one's place.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from concertino.members.specs import AgentSpec, ModelSpec, Spec, ToolSpec

from .guard import PluginFault, show

MEMBER_HOOKS: dict[str, type[ToolSpec] | type[ModelSpec]] = {
    "concertino_tools": ToolSpec,
    "concertino_agents": AgentSpec,
    "concertino_models": ModelSpec,
}
"""The hooks that fill a pool, and what each returns."""
_MOST = 100_000
"""Items of one list."""

_HOW_TO = {
    ToolSpec: "@concertino.tool",
    AgentSpec: "@concertino.agent",
    ModelSpec: "concertino.ModelSpec(...)",
}


def check_list(hook: str, result: object) -> list[Any]:
    """The result of a list hook.

    Raises:
        PluginFault: it is not a list.
    """
    if inspect.iscoroutine(result):
        # Else Python warns that the coroutine was never awaited.
        result.close()
        raise PluginFault(f"{hook} is an async function; write a plain one, only hooks around calls may be async")
    # By its real type, and without its own methods: they may lie about what it is, and give items without end.
    kind: Any = next((kind for kind in (list, tuple) if issubclass(type(result), kind)), None)
    if kind is None:
        raise PluginFault(f"{hook}() returned {show(result)}; expected a list")
    count = kind.__len__(result)
    if count > _MOST:
        raise PluginFault(f"{hook}() returned {count:,} items; expected at most {_MOST:,}")
    return list(kind.__iter__(result))


def check_members(hook: str, result: object, provider: str) -> list[Spec]:
    """The specs that a hook returned, under their full names.

    Raises:
        PluginFault: names the item, what it is and what was expected.
    """
    expected = MEMBER_HOOKS[hook]
    members = []
    for position, item in enumerate(check_list(hook, result)):
        if not isinstance(item, expected):
            raise PluginFault(
                f"{hook}()[{position}] is {show(item)}; expected {expected.__name__}, made with {_HOW_TO[expected]}"
            )
        members.append(named(item, provider, f"{hook}()[{position}]"))
    return members


def check_declared(hook: str, result: object, provider: str, name: str) -> ModelSpec:
    """The spec that a provider made of a declaration, under its full name.

    Raises:
        PluginFault: it is not a `ModelSpec`, or has another name.
    """
    if not isinstance(result, ModelSpec):
        raise PluginFault(f"{hook}() returned {show(result)}; expected a ModelSpec")
    if result.name not in (name, f"{provider}/{name}"):
        raise PluginFault(f"{hook}() returned a model called {result.name!r}; expected {name!r}")
    # A name may hold slashes of its own: `openrouter/auto` is a model of OpenRouter.
    return result.with_(name=f"{provider}/{name}")


def named(spec: Spec, provider: str, place: str) -> Spec:
    """A spec under its full name.

    Args:
        place: the item in a message.

    Raises:
        PluginFault: its name is of another provider, or a schema was refused.
    """
    if isinstance(spec, ModelSpec) and spec.provider != provider and not spec.name.startswith(f"{provider}/"):
        spec = spec.with_(name=f"{provider}/{spec.name}")
    if spec.provider not in ("", provider):
        raise PluginFault(
            f"{place} is called {spec.name!r}, but {spec.provider!r} is another provider; "
            f"call it {spec.short_name!r}, the pool shows it as '{provider}/{spec.short_name}'"
        )
    full = spec if spec.provider else spec.with_(name=f"{provider}/{spec.name}")
    if isinstance(full, ToolSpec):
        # Admission: a refused schema is this plugin's fault here; in the pool it would be everybody's.
        full.validator  # noqa: B018
        full.output_validator  # noqa: B018
    return full


def refuse_equal_names(members: Sequence[Spec]) -> None:
    """Check that a provider calls no two members the same.

    Raises:
        PluginFault: it does.
    """
    seen: dict[str, str] = {}
    for member in members:
        if member.name in seen:
            raise PluginFault(f"it publishes {member.name!r} twice, as {seen[member.name]} and as {member.kind}")
        seen[member.name] = member.kind
