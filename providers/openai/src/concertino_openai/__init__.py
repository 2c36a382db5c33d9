"""concertino-openai: chat models behind any OpenAI-compatible server.

One provider for OpenAI, vLLM, SGLang, llama.cpp, llama-cpp-python, Ollama, Together, OpenRouter, Gemini's compatible
endpoint, DeepSeek and transformers serve. Declare a model in Python with `model`, or in a pool file. Without any
declaration, the priced models of every server whose key is in the environment are published.

The clients themselves (`OpenAIModel`, `Embedder`, `list_models`) are in `concertino_openai.client`. They need aiohttp,
which this module does not import.
"""

from __future__ import annotations

from typing import Any

from concertino import ModelSpec, hookimpl

from .declaration import declare, model, priced_models
from .keys import set_key_source
from .prices import find_price

__all__ = ["find_price", "model", "set_key_source"]


@hookimpl
def concertino_models() -> list[ModelSpec]:
    """The priced models of OpenAI, where `OPENAI_API_KEY` is in the environment."""
    return priced_models("openai")


@hookimpl
def concertino_declare_model(name: str, options: dict[str, Any]) -> ModelSpec:
    """A model that a pool file or `concertino.toml` declares."""
    return declare(name, options)


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino probe URL`."""
    from .cli import probe

    return [probe]
