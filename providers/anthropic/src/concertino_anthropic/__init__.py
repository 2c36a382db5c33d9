"""concertino-anthropic: Claude models, through Anthropic's own SDK.

`anthropic/claude-opus-5-5` names a model wherever one is expected. Declare one with options in Python with `model`,
or in a pool file. Where `ANTHROPIC_API_KEY` is in the environment, the models with a known price are published.

The client itself is `concertino_anthropic.client.AnthropicModel`. The SDK `anthropic` is imported at its first request.
"""

from __future__ import annotations

from typing import Any

from concertino import ModelSpec, hookimpl

from .declaration import declare, listed_models, model
from .keys import set_key_source

__all__ = ["model", "set_key_source"]


@hookimpl
def concertino_models() -> list[ModelSpec]:
    """The models with a known price, where the key is in the environment."""
    return listed_models()


@hookimpl
def concertino_declare_model(name: str, options: dict[str, Any]) -> ModelSpec:
    """A model that a pool file or `concertino.toml` declares, or that somebody names."""
    return declare(name, options)
