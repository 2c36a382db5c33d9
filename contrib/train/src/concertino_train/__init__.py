"""concertino-train: what training an orchestrator is made of. This part is pure: no model, no torch.

    concertino_train.episodes   what rewards read of one finished rollout
    concertino_train.rewards    every reward term of five published systems, as functions of episodes
    concertino_train.groups     groups, advantages, filters, dynamic sampling, packing; numpy only
    concertino_train.audit      what is wrong with a reward or a batch, before anything is trained on it

Importing this module imports none of them; the names and the hook below do.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from .episodes import Called, Episode, RoleTurn, Round, Totals
    from .rewards import Reward, Scored, Term

_HOMES = {
    "episodes": ["Called", "Episode", "RoleTurn", "Round", "Totals"],
    "rewards": ["Reward", "Scored", "Term"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Called",
    "Episode",
    "Reward",
    "RoleTurn",
    "Round",
    "Scored",
    "Term",
    "Totals",
    "concertino_cli",
    "concertino_rewards",
    "concertino_tasks",
]


@hookimpl
def concertino_rewards() -> list[Any]:
    """The terms by name, and the rewards of the five systems made of them."""
    from .rewards import PRESETS, TERMS

    return [*TERMS.values(), *PRESETS.values()]


@hookimpl
def concertino_tasks() -> list[Any]:
    """The sets of the practice domain: `practice/facts` and so on."""
    from .practice.tasks import task_sets

    return task_sets()


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino train`."""
    from .cli import train

    return [train]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
