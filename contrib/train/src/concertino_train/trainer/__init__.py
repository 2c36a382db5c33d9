"""Training with TRL: rollouts are made by others, TRL updates the weights.

algorithm      the settings of the algorithm
arguments      the settings as TRL's arguments
contract       what is relied on in the installed TRL
layout         rows of a batch in the places of a constant number of optimiser steps
tensors        rows as tensors
losses         the losses in plain torch
reference      the weights at the start, which the policy must stay close to
grpo           the trainer
plain          a trainer without TRL, which the other one is checked against
roles          one adapter for each role, in one trainer
role_trainers  one model for each role, trainers that take turns

Importing this package imports torch and TRL.
"""

from .algorithm import Algorithm
from .arguments import grpo_arguments
from .contract import check_trl
from .grpo import OrchestratorGRPOTrainer
from .plain import PlainTrainer
from .role_trainers import RoleTrainers
from .roles import role_adapters, save_adapters

__all__ = [
    "Algorithm",
    "OrchestratorGRPOTrainer",
    "PlainTrainer",
    "RoleTrainers",
    "check_trl",
    "grpo_arguments",
    "role_adapters",
    "save_adapters",
]
