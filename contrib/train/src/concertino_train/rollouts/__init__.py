"""Rollouts: many runs at once, with the policy as their model, and the batches that are made of them.

assignment    what is rolled out, and how much may be written
engine        runs that go on by themselves; one batch for all that ask
gathering     what runs ask, as batches
timings       where the time goes
conversations the token ids of every conversation
sharing       calls that a group makes alike are made once
tree          K candidates at every turn (AT-GRPO)
judging       a model of the pool compares the answers of a group
rollout       the result of a rollout, and its reward
sequences     what a policy wrote, as token sequences, and the rows made of them
batches       rollouts as rows with advantages
task_stream   which questions a step asks
"""

from .assignment import Assignment, TokenLimits
from .batches import Batch
from .engine import RolloutEngine
from .rollout import Rollout, score_rollouts
from .sequences import TrainingRow
from .tree import TreeSampler

__all__ = [
    "Assignment",
    "Batch",
    "Rollout",
    "RolloutEngine",
    "TokenLimits",
    "TrainingRow",
    "TreeSampler",
    "score_rollouts",
]
