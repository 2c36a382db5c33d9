"""What a pool answers with: a member as the orchestrator sees it, a difference between pools, a cost in context."""

from __future__ import annotations

from typing import NamedTuple

from concertino.members.specs import ToolSpec


class Member(NamedTuple):
    """A tool or agent as the orchestrator sees it."""

    visible_name: str
    spec: ToolSpec


class PoolDiff(NamedTuple):
    """What differs between two pools, by member name."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    rebound: tuple[str, ...]
    """Roles bound to another model, as `role: old -> new`."""

    def __bool__(self) -> bool:
        return any(self)

    def __str__(self) -> str:
        marks = (("+", self.added), ("-", self.removed), ("~", self.changed), ("@", self.rebound))
        return "\n".join(f"{mark} {name}" for mark, names in marks for name in names) or "no difference"


class ContextCost(NamedTuple):
    """Tokens that a pool takes in the orchestrator's context."""

    total: int
    by_member: dict[str, int]
