"""Rollouts: many runs in lock-step, with the policy as their model.

_assignment  what is rolled out, and how much may be written
_engine      lock-step rounds: all calls at once, one batch for all that ask
_talk        the token ids of every conversation
_sharing     calls that a group makes alike are made once
_turns       turns of role workflows, judged by their environment
_tree        K candidates at every turn (AT-GRPO)
_rollout     what comes back, and its reward
"""

from ._assignment import Assignment, TokenLimits
from ._engine import RolloutEngine, Timings
from ._rollout import Candidate, Rollout, score_rollouts
from ._tree import TreeSampler

__all__ = [
    "Assignment",
    "Candidate",
    "Rollout",
    "RolloutEngine",
    "Timings",
    "TokenLimits",
    "TreeSampler",
    "score_rollouts",
]
