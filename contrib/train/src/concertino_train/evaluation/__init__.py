"""Evaluation: a checkpoint measured on tasks with known answers.

measurement  rollouts over tasks, and the metrics of concertino-bench
preferences  whether a policy follows what its user prefers
"""

from .measurement import run_eval

__all__ = [
    "run_eval",
]
