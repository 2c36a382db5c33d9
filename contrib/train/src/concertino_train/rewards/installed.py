"""The terms and rewards of all installed distributions.

The invariant: a name is one thing; where two distributions use one, the first keeps it and the other is said.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from concertino.core.logs import logger_of

from .plain import is_term, term_of
from .reward import Reward
from .term import Term

if TYPE_CHECKING:
    from concertino.plugins import PluginManager

logger = logger_of("train")


class RewardCatalogue(NamedTuple):
    """What there is.

    Attributes:
        terms: classes of terms by name; hand them to `Reward.from_json(terms=...)`.
        presets: finished rewards by name.
    """

    terms: dict[str, type[Term]]
    presets: dict[str, Reward]


def installed_rewards(manager: PluginManager | None = None) -> RewardCatalogue:
    """By name, what `concertino_rewards` hooks give: classes of terms, functions of an episode, and rewards."""
    from concertino.plugins import default_manager

    found = RewardCatalogue({}, {})
    for each in (manager or default_manager()).named("concertino_rewards"):
        if is_term(each):
            _keep(found.terms, each.name, each)
        elif inspect.isfunction(each):
            _keep(found.terms, each.__name__, term_of(each))
        elif isinstance(each, Reward):
            _keep(found.presets, each.name, each)
        else:
            logger.warning(
                "concertino_rewards gave %r; expected a subclass of Term, a function of an episode, or a Reward", each
            )
    return found


def _keep(table: dict[str, Any], name: str, value: Any) -> None:
    if name in table:
        logger.warning("two distributions offer the reward %r; the first is taken", name)
    else:
        table[name] = value
