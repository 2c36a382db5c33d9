"""Policies: what is trained, as rollouts see it.

policy        the contract: token ids in, sampled ids and log-probabilities out
scripted      a script in place of a model, for tests
transformers  a model in this process
vllm          a vLLM server that follows the weights

Importing this package imports no torch: the last two import it when they are used.
"""

from .policy import Policy, Prompt, Sample
from .scripted import ScriptedPolicy
from .transformers import TransformersPolicy
from .vllm import VLLMPolicy

__all__ = ["Policy", "Prompt", "Sample", "ScriptedPolicy", "TransformersPolicy", "VLLMPolicy"]
