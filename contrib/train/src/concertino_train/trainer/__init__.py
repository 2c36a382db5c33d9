"""Training with TRL: rollouts are made by others, TRL updates the weights.

algorithm      the settings of the algorithm
arguments      the settings as TRL's arguments
contract       what is relied on in the installed TRL
layout         rows of a batch in the places of a constant number of optimiser steps
tensors        rows as tensors
losses         importance weights
reference      the weights at the start, which the policy must stay close to
grpo           the trainer
roles          one adapter for each role, in one trainer
role_trainers  one model for each role, trainers that take turns

Importing this package imports torch and TRL.
"""

from .algorithm import Algorithm
from .grpo import OrchestratorGRPOTrainer
from .role_trainers import RoleTrainers

__all__ = [
    "Algorithm",
    "OrchestratorGRPOTrainer",
    "RoleTrainers",
]
