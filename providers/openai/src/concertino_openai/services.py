"""Services: each preset that people name is a provider of its own, so that `groq/llama-3.3-70b` names a model.

    [models."groq/fast"]
    model = "llama-3.3-70b-versatile"

Without a declaration, `provider/name` is the model that the service itself knows by that name.
"""

from __future__ import annotations

from typing import Any

from concertino import ModelSpec, hookimpl

from .declaration import declare, priced_models


class Service:
    """The provider of one preset.

    Args:
        name: of the preset and of the provider.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @hookimpl
    def concertino_models(self) -> list[ModelSpec]:
        """Its models of the price table, where its key is in the environment."""
        return priced_models(self.name)

    @hookimpl
    def concertino_declare_model(self, name: str, options: dict[str, Any]) -> ModelSpec:
        """A model of it that a pool file declares or that somebody names."""
        return declare(name, options, self.name)


azure = Service("azure")
bedrock = Service("bedrock")
deepseek = Service("deepseek")
google = Service("google")
groq = Service("groq")
llama_cpp = Service("llama.cpp")
lmstudio = Service("lmstudio")
mistral = Service("mistral")
ollama = Service("ollama")
openrouter = Service("openrouter")
sglang = Service("sglang")
together = Service("together")
