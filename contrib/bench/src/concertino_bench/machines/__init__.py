"""The simulated programs behind BFCL's multi-turn functions: what calls answer, and the state that they change.

machine         what all programs share
desk            messages, tickets, posts
shell           a file system
calculator      functions of numbers
brokerage       a stock account
vehicle         a car
travel          a travel agency
published       tables that are read from the published programs
simulation      the programs of one task together
turns           requests that come one by one

Written from the published function descriptions and from how the published programs behave. A class of the published
tasks that has no program here is in `missing`. The invariant: the same calls give the same answers and states.
"""

from __future__ import annotations

from .simulation import Machines, machines_of, missing, not_simulated
from .turns import NEXT, by_turn, first_turns

__all__ = ["NEXT", "Machines", "by_turn", "first_turns", "machines_of", "missing", "not_simulated"]
