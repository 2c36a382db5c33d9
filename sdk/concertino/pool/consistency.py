"""Whether what a pool is made of fits together: its members, the models bound to roles, and the aliases.

Invariant: what passes has members of one name each, every model that a role, a router or an agent needs, and
no role or alias that looks like another one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from concertino.core.display_text import clean, is_plain_name
from concertino.core.errors import PoolError
from concertino.members.model_agent import ModelAgent
from concertino.members.routing import RouterSpec
from concertino.members.specs import ModelSpec, Spec, ToolSpec

_KEPT = 500
"""Members of a pool up to which their compiled schemas are kept, of some 15 KB each; of more, most are never called."""


def check_consistency(
    members: Iterable[Spec], roles: Mapping[str, str], aliases: Mapping[str, str], ranking: Callable[[str], Any]
) -> None:
    """Refuse what does not fit together.

    Args:
        roles: names of models by role.
        aliases: visible names by member name.
        ranking: gives the installed ranking of a name, or raises PoolError.

    Raises:
        PoolError: says what is missing or stands twice.
        SpecError: a schema of a member was refused.
    """
    seen: set[str] = set()
    models: set[str] = set()
    needy: list[Spec] = []
    members = tuple(members)
    keep = len(members) <= _KEPT
    for member in members:
        if isinstance(member, ToolSpec):
            member.admit(keep=keep)
        elif isinstance(member, ModelSpec):
            models.add(member.name)
        else:
            raise PoolError(f"a pool holds tools, agents and models; got {member!r} ({type(member).__name__})")
        if member.name in seen:
            raise PoolError(f"two members are called {member.name!r}; rename one with spec.with_(name=...)")
        seen.add(member.name)
        if type(member) in (RouterSpec, ModelAgent):
            needy.append(member)
    _check_models(sorted(models), needy, roles, ranking)
    for kind, names in (("role", roles), ("alias", aliases.values())):
        if hidden := next((name for name in names if not is_plain_name(name)), None):
            raise PoolError(f"{kind} '{clean(hidden)}': it holds characters that nobody sees; write it without them")
    for name in aliases:
        if name not in seen:
            raise PoolError(f"alias {aliases[name]!r}: {unknown('member', name, sorted(seen))}")


def _check_models(
    models: Sequence[str], needy: Sequence[Spec], roles: Mapping[str, str], ranking: Callable[[str], Any]
) -> None:
    """Every model that a role, a router or an agent needs is there."""
    for member, need in ((m, need) for m in needy for need in m.needs if need not in models):
        kind = "router" if isinstance(member, RouterSpec) else member.kind
        raise PoolError(f"{kind} {member.name!r} needs a model: {unknown('model', need, models)}")
    routers = [m for m in needy if isinstance(m, RouterSpec)]
    _refuse_circles(routers)
    for router in routers:
        if router.ranking:
            try:
                ranking(router.ranking)
            except PoolError as error:
                raise PoolError(f"router {router.name!r}: policy={router.policy!r}: {error}") from error
    for role, name in roles.items():
        if name not in models:
            raise PoolError(f"role {role!r}: {unknown('model', name, models)}")


def _refuse_circles(routers: Sequence[RouterSpec]) -> None:
    """Routers may choose between routers, but not end at themselves."""
    open_ends = {router.name: set(router.models) for router in routers}
    while leaves := [name for name, models in open_ends.items() if not models & open_ends.keys()]:
        for name in leaves:
            del open_ends[name]
    if open_ends:
        raise PoolError(f"routers {' and '.join(map(repr, open_ends))} lead to themselves; take one out of the other")


def unknown(kind: str, name: str, known: Collection[str]) -> str:
    """What an error says of a name that is not in the pool."""
    from concertino.schema import suggestion

    return f"the pool has no {kind} {name!r}; {suggestion(name, known)}"
