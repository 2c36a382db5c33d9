"""concertino-train: trains an orchestrator on the installed pool.

Without torch:

    episodes     what rewards read of one finished rollout; role_turns: the turns of role workflows, judged
    rewards      every reward term of five published systems, as functions of episodes
    groups       groups, advantages, filters, dynamic sampling, packing
    audit        what is wrong with a reward or a batch, before anything is trained on it
    data         trajectories: selected, rewritten, written as a set with a data card
    collection   a teacher's trajectories
    config       settings files; recipes: those of the five systems
    factories    the objects that settings describe
    rollouts     many runs at once, and batches of them; elsewhere: runs in other processes
    running      folders, figures, monitors, signals of long work

With torch:

    trainer      the loss and the optimiser, through TRL
    sft, rl, evaluation, export, studies     what the commands do
    practice     the practice domain of concertino-toy as tasks; conductor: the training of its tiny model

Every `concertino` command imports this module, so it imports none of them: it holds the hooks alone.
"""

from __future__ import annotations

from typing import Any

from concertino import hookimpl

__all__ = ["concertino_cli", "concertino_rewards", "concertino_tasks"]


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
