"""Runs of a training in other processes, where the policy is asked over a socket.

placed_rollouts  orders runs, and seats them among those that ask here
placed_work      makes one of them in a worker process
policy_socket    the way of a worker to the policy

Invariant: a rollout is the same wherever it happens, but for the times in it and the rounding of a batch's arithmetic.
"""

from .placed_rollouts import PlacedRollouts, check_elsewhere, make_place
from .placed_work import RolloutWork

__all__ = ["PlacedRollouts", "RolloutWork", "check_elsewhere", "make_place"]
