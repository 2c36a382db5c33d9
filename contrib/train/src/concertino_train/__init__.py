"""concertino-train: an orchestrator is trained on the pool that is installed, by what it writes and what comes of it.

Pure, without torch:

    episodes     what rewards read of one finished rollout
    rewards      every reward term of five published systems, as functions of episodes
    groups       groups, advantages, filters, dynamic sampling, packing
    audit        what is wrong with a reward or a batch, before anything is trained on it
    data         trajectories: collected, selected, rewritten, written as a set with a card
    config       settings files; recipes: those of the five systems; assembling: what settings name, made

With a policy:

    rollouts     many runs in lock step; policies: who samples them
    losses, plain, trainer      the loss, its oracle, the optimiser through TRL
    teacher, teaching, rl       the verbs collect, sft and rl; evaluate, export, studies likewise
    running      folders, checkpoints, figures, monitors, signals of long work
    practice     the practice domain of concertino-toy as tasks; conductor: the training of its tiny model

Importing this module imports none of them; the names and the hooks below do.
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
    from .practice import task_sets

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
