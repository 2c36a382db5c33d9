"""The expert for a strategy."""

from __future__ import annotations

from typing import Any

from concertino import Model, Pool, Shortlist, Strategy, UsageError

from .calls import RoundsExpert, SerialExpert
from .expert import Expert
from .plans import GraphExpert, PlanExpert
from .progress import Habits
from .roles import RoleExpert

# An expert writes the text format of one strategy, so it is chosen by the strategy's name.
_EXPERTS: dict[str, type[Expert]] = {
    "parallel-rounds": RoundsExpert,
    "serial-calls": SerialExpert,
    "dependency-plan": PlanExpert,
    "agent-graph": GraphExpert,
}


def practice_expert(pool: Pool, strategy: Strategy, shortlist: Shortlist | None = None, **habits: Any) -> Model:
    """The scripted expert of the practice domain that writes in a strategy's format.

    Args:
        shortlist: what it sees of the pool for a question; all of it by default.
        habits: those of `Habits`.

    Raises:
        UsageError: there is no expert for the strategy.
    """
    if strategy.name == "role-workflow":
        return RoleExpert(Habits(**habits))
    if strategy.name not in _EXPERTS:
        known = ", ".join([*_EXPERTS, "role-workflow"])
        raise UsageError(f"there is no practice expert for the strategy {strategy.name!r}; expected one of {known}")
    return _EXPERTS[strategy.name](pool, Habits(**habits), shortlist)
