"""Baselines: what an orchestrator has to beat on the same pool, budget and tasks.

Each is a `Strategy`, so it runs through the same executor, budget and trace as the others and is found by name:
`concertino run --strategy majority-vote`. `systems` makes the systems of a bench of them.

single      one model, asked once; or asked to correct itself
voting      a majority vote, and a cascade that stops when enough agree; votes counts, trust believes one reply alone
routing     a router by nearest questions; profiles holds what it knows
workflow    a fixed graph of calls
loops       serial and prompted loops of a leader, as configurations of the SDK's strategies
procedure   the machine of a fixed procedure; members: whom it asks
lineup      all of them as systems for a pool; study compares one agent with many
"""

from __future__ import annotations

from .lineup import systems
from .loops import Prompted, Serial, SingleWithTools
from .profiles import RouterProfile
from .routing import KnnRouter
from .single import SelfRefine, SingleModel
from .trust import ReplyTrust
from .voting import Cascade, MajorityVote
from .workflow import StaticWorkflow

__all__ = [
    "Cascade",
    "KnnRouter",
    "MajorityVote",
    "Prompted",
    "ReplyTrust",
    "RouterProfile",
    "SelfRefine",
    "Serial",
    "SingleModel",
    "SingleWithTools",
    "StaticWorkflow",
    "systems",
]


def strategies() -> list[type]:
    """The classes, simplest first: what the hook `concertino_strategies` gives."""
    return [
        SingleModel,
        SingleWithTools,
        MajorityVote,
        SelfRefine,
        KnnRouter,
        Cascade,
        StaticWorkflow,
        Serial,
        Prompted,
    ]
