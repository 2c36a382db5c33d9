"""The action space of a run: the whole pool, or what fits the question where the pool is too large for a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from concertino.core.function_objects import FunctionObjects
from concertino.pool.pool import Pool
from concertino.strategies import Strategy

if TYPE_CHECKING:
    # A run over a pool that is listed whole does not pay for it.
    from concertino.pool.search import SearchedPool


class ActionSpace(NamedTuple):
    """What a run offers its model.

    Attributes:
        functions: function objects of tools and agents.
        found: visible names of those that were found by the question; None where all are offered.
    """

    functions: FunctionObjects
    found: list[str] | None = None


def learned(pool: Pool) -> SearchedPool | None:
    """A pool as it is searched, with what it learns from earlier runs; None where it is listed whole.

    Raises:
        UsageError: the folder of traces that it learns from is not there.
    """
    searched = pool.searched
    if searched is not None and searched.settings.learn_from:
        from concertino.traces.evidence import answered_questions

        searched.learn(answered_questions)
    return searched


def action_space(pool: Pool, strategy: Strategy, question: str, found: Sequence[str] | None = None) -> ActionSpace:
    """What a run on a question offers.

    Args:
        found: what an earlier process found for this run.
    """
    searched = learned(pool)
    if searched is None:
        return ActionSpace(pool.functions)
    known = searched.find(question) if found is None else [name for name in found if pool.find(name) is not None]
    return ActionSpace(searched.listing(known, strategy.named_members, searches=strategy.searches), known)
