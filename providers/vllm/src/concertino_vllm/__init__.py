"""concertino-vllm: local vLLM servers as models of a pool, and as the policy of a training.

    import concertino_vllm

    coder = concertino_vllm.model("coder", model="Qwen/Qwen3-8B", args=["--max-model-len", "8192"])

or, in a pool file, `[models."vllm/coder"]` with `model = "Qwen/Qwen3-8B"`. The server is started at the first request,
shared by all members with the same settings, and stopped whatever happens to this process. `PolicyServer` generates
token ids and changes weights for training. Importing this module imports neither aiohttp nor anything of a server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import ModelSpec

    from ._declaration import model, server
    from ._errors import NotSupported, ServerError, SwapError
    from ._metrics import Metrics
    from ._model import VllmModel
    from ._policy import Generation, PolicyServer
    from ._server import Endpoint, Health, Progress, Server
    from ._settings import ServerSettings
    from ._trajectory import TokenDrift, Trajectory

_HOMES = {
    "model": "_declaration",
    "server": "_declaration",
    "NotSupported": "_errors",
    "ServerError": "_errors",
    "SwapError": "_errors",
    "Metrics": "_metrics",
    "VllmModel": "_model",
    "Generation": "_policy",
    "PolicyServer": "_policy",
    "Endpoint": "_server",
    "Health": "_server",
    "Progress": "_server",
    "Server": "_server",
    "ServerSettings": "_settings",
    "TokenDrift": "_trajectory",
    "Trajectory": "_trajectory",
}

__all__ = [
    "Endpoint",
    "Generation",
    "Health",
    "Metrics",
    "NotSupported",
    "PolicyServer",
    "Progress",
    "Server",
    "ServerError",
    "ServerSettings",
    "SwapError",
    "TokenDrift",
    "Trajectory",
    "VllmModel",
    "concertino_declare_model",
    "model",
    "server",
]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'concertino_vllm' has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


@hookimpl
def concertino_declare_model(name: str, options: dict[str, Any]) -> ModelSpec:
    """A model that a pool file declares as `[models."vllm/name"]`."""
    from ._declaration import declare

    return declare(name, options)
