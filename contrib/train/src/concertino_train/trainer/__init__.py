"""Training with TRL: rollouts are made by others, TRL updates the weights.

_algorithm      the settings of the algorithm; no torch
_arguments      the settings as TRL's arguments
_contract       what is relied on in the installed TRL
_tasks          which questions a step asks
_layout         rows of a batch in the places of a constant number of optimiser steps
_tensors        rows as tensors
_reference      the weights at the start, as what the policy may not leave
_grpo           the trainer
_roles          one adapter for each role, in one trainer
_role_trainers  one model for each role, trainers that take turns
_state          checkpoints that hold everything

Importing this module imports no torch; the names below do, when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._algorithm import Algorithm
    from ._arguments import grpo_arguments
    from ._contract import check_trl
    from ._grpo import OrchestratorGRPOTrainer, SampleBatch
    from ._role_trainers import RoleTrainers
    from ._roles import role_adapters, save_adapters
    from ._state import StatefulPart, complete_checkpoints, latest_checkpoint
    from ._tasks import TaskStream

_HOMES = {
    "_algorithm": ["Algorithm"],
    "_arguments": ["grpo_arguments"],
    "_contract": ["check_trl"],
    "_grpo": ["OrchestratorGRPOTrainer", "SampleBatch"],
    "_role_trainers": ["RoleTrainers"],
    "_roles": ["role_adapters", "save_adapters"],
    "_state": ["StatefulPart", "complete_checkpoints", "latest_checkpoint"],
    "_tasks": ["TaskStream"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Algorithm",
    "OrchestratorGRPOTrainer",
    "RoleTrainers",
    "SampleBatch",
    "StatefulPart",
    "TaskStream",
    "check_trl",
    "complete_checkpoints",
    "grpo_arguments",
    "latest_checkpoint",
    "role_adapters",
    "save_adapters",
]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
