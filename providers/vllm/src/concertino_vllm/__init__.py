"""concertino-vllm: local vLLM servers as models of a pool, and as the policy of a training.

    import concertino_vllm

    coder = concertino_vllm.model("coder", model="Qwen/Qwen3-8B", args=["--max-model-len", "8192"])

or, in a pool file, `[models."vllm/coder"]` with `model = "Qwen/Qwen3-8B"`. The server is started at the first request,
shared by all members with the same settings, and stopped whatever happens to this process. `PolicyServer` generates
token ids and changes weights for training. Importing this package imports neither aiohttp nor vLLM.

    declaration   `model`, `server`: members of a pool      chat_model   the chat of a member
    settings      what decides how a server is started      executable   where the `vllm` command is
    serving       a server and its life                     policy       a model that is being trained
    errors        what can go wrong                         in_vllm      what runs inside vLLM's workers
"""

from __future__ import annotations

from typing import Any

from concertino import ModelSpec, hookimpl

from .declaration import at_running_server, declare, model, server
from .errors import NotSupported, SwapError, VllmServerError
from .policy.generation import PolicyGeneration
from .policy.policy_server import PolicyServer
from .policy.trajectory import TokenDrift, TokenTrajectory
from .serving.server import VllmServer
from .settings import VllmSettings

__all__ = [
    "NotSupported",
    "PolicyGeneration",
    "PolicyServer",
    "SwapError",
    "TokenDrift",
    "TokenTrajectory",
    "VllmServer",
    "VllmServerError",
    "VllmSettings",
    "model",
    "server",
]


@hookimpl
def concertino_declare_model(name: str, options: dict[str, Any]) -> ModelSpec:
    """A model that a pool file declares as `[models."vllm/name"]`, or that somebody merely names.

    A mere name is that of a model on a server that runs already, at `VLLM_BASE_URL` or vLLM's usual address.
    """
    return declare(name, options) if options else at_running_server(name)
