"""Environments for role workflows and training, after AT-GRPO: tasks that are acted in, oracles, and reward terms.

A task holds its instance; its environment is an object that is reset, acted in, saved and restored; its
world offers the environment to any strategy as a member of the pool.

    domains      the five by name: tasks, environments, oracles, worlds, task sets
    acting       what every environment is; runner runs scripts where there is no pool
    plan_path, sudoku, sokoban, code, maths
    rewards      the terms of AT-GRPO, App. A.1
    workflows    the role workflow of each
    world        one member of the pool, and the state that a grader looks at
"""

from __future__ import annotations

from .acting import Ran, Turn, UnreadableAction
from .domains import DOMAINS, environment_of, oracle_of, task_sets, tasks, world_of
from .rewards import ALPHA, COEFFICIENTS, LAMBDAS, TurnReward, alpha_mix, lambda_mix
from .runner import ScriptRunner
from .workflows import workflow_for

__all__ = [
    "ALPHA",
    "COEFFICIENTS",
    "DOMAINS",
    "LAMBDAS",
    "Ran",
    "ScriptRunner",
    "Turn",
    "TurnReward",
    "UnreadableAction",
    "alpha_mix",
    "environment_of",
    "lambda_mix",
    "oracle_of",
    "task_sets",
    "tasks",
    "workflow_for",
    "world_of",
]
