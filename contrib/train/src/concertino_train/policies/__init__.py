"""Policies: what is trained, as rollouts see it.

_policy       the contract: token ids in, sampled ids and log-probabilities out
_scripted     a script in place of a model, for tests
transformers  a model in this process
vllm          a vLLM server that follows the weights
"""

from ._policy import Policy, Prompt, Sample
from ._scripted import ScriptedPolicy

__all__ = ["Policy", "Prompt", "Sample", "ScriptedPolicy"]
