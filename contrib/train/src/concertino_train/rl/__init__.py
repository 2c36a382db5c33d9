"""Reinforcement learning.

training  from settings to a trained model and its record
steps     from the questions of a step to its batch
"""

from .training import RlResult, run_rl

__all__ = [
    "RlResult",
    "run_rl",
]
