"""Models by name: `provider/name` becomes a member wherever a model goes, declared or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from concertino.core.errors import PoolError
from concertino.members.routing import RouterSpec
from concertino.members.specs import ModelSpec, Spec

if TYPE_CHECKING:
    from concertino.plugins.manager import PluginManager


def full_name(name: str) -> str:
    """A model's name as given to a role: `provider/name`, or `provider:name`."""
    return name if "/" in name else name.replace(":", "/", 1)


def names_of_roles(roles: Mapping[str, str] | None) -> dict[str, str]:
    """The full names among the models of roles, each with what to say before an error about it."""
    return {name: f"role {role!r}: " for role, name in (roles or {}).items() if "/" in name}


def names_of_members(members: Iterable[Spec]) -> dict[str, str]:
    """The full names of models that members need, each with what to say before an error about it."""
    # Objects of other types are refused later, with a better error.
    needy = [member for member in members if getattr(member, "needs", ())]
    wanted: dict[str, str] = {}
    for member in needy:
        kind = "router" if isinstance(member, RouterSpec) else member.kind
        wanted |= {name: f"{kind} {member.name!r} needs a model: " for name in member.needs if "/" in name}
    return wanted


def named_models(
    wanted: Mapping[str, str], members: Sequence[Spec], manager: PluginManager | None = None
) -> list[Spec]:
    """The models of full names that are no members, as published or made by their providers.

    Args:
        wanted: by full name, what to say before an error about it.

    Raises:
        PoolError: no such provider, or it has no such model.
    """
    here = {member.name for member in members} if wanted else set()
    missing = [name for name in wanted if name not in here]
    if not missing:
        return []
    from concertino.plugins.manager import default_manager
    from concertino.schema import near_names

    found: list[Spec] = []
    for name in missing:
        try:
            found += (manager or default_manager()).specs([name])
        except PoolError as error:
            near = near_names(name, [member.name for member in members if isinstance(member, ModelSpec)], limit=1)
            hint = f"; did you mean {near[0]!r}?" if near else f": {error}"
            raise PoolError(f"{wanted[name]}the pool has no model {name!r}{hint}") from error
    return found


def how_to_name(role_or_name: str) -> str:
    """The next step of somebody who asked for a model that is not there."""
    if "/" in role_or_name:
        return f"bind it with pool.bind(worker={role_or_name!r}); an agent names it in models=({role_or_name!r},)"
    if role_or_name.isidentifier():
        return f"bind it with pool.bind({role_or_name}='provider/model')"
    if ":" in role_or_name:
        return f"write {full_name(role_or_name)!r}"
    example = role_or_name or "gpt-5.4-mini"
    return f"give the name in full, 'provider/name', such as 'openai/{example}'"
