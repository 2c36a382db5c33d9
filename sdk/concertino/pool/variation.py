"""Random variations of a pool, for training: fewer members, names that say nothing, other prices.

Invariant: at least one tool or agent stays, and the same state of the source gives the same pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from concertino.core.usage import Prices
from concertino.members.patterns import matches
from concertino.members.specs import ToolSpec

if TYPE_CHECKING:
    import random

    from .pool import Pool


def varied(
    pool: Pool,
    rng: random.Random,
    keep: float,
    always: Sequence[str],
    rename: float,
    prices: Sequence[Mapping[str, Prices]],
) -> Pool:
    """A variation; arguments as for `Pool.sample`."""
    tools = [member for member in pool.members if isinstance(member, ToolSpec)]
    optional = [m for m in tools if not any(matches(m, pattern) for pattern in always)]
    dropped = {m.name for m in optional if rng.random() >= keep}
    if optional and len(dropped) == len(tools):
        dropped.discard(rng.choice(optional).name)
    pool = pool._copy([m for m in pool.members if m.name not in dropped])
    renamed = {
        # A name that says nothing, so that a policy learns to read the description.
        m.name: f"{m.kind}_{rng.randrange(16**6):06x}"
        for m in pool.members
        if isinstance(m, ToolSpec) and rng.random() < rename
    }
    pool = pool.alias(renamed) if renamed else pool
    if prices:
        schedule = rng.choice(list(prices))
        pool = pool.price({name: value for name, value in schedule.items() if name in pool})
    return pool
