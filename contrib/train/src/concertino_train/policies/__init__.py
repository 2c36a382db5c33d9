"""Policies: what is trained, as rollouts see it.

_policy       the contract: token ids in, sampled ids and log-probabilities out
_scripted     a script in place of a model, for tests
transformers  a model in this process
vllm          a vLLM server that follows the weights

The last two are imported when they are asked for: importing this module imports no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._policy import Policy, Prompt, Sample
from ._scripted import ScriptedPolicy

if TYPE_CHECKING:
    from .transformers import TransformersPolicy
    from .vllm import VLLMPolicy

_HOMES = {"TransformersPolicy": "transformers", "VLLMPolicy": "vllm"}

__all__ = ["Policy", "Prompt", "Sample", "ScriptedPolicy", "TransformersPolicy", "VLLMPolicy"]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
