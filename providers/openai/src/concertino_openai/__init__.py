"""concertino-openai: chat models behind any OpenAI-compatible server.

One provider for OpenAI, vLLM, SGLang, llama.cpp, llama-cpp-python, Ollama, Together, OpenRouter, Gemini's compatible
endpoint, DeepSeek and transformers serve. A model is declared in Python or in a pool file; without any declaration only
the priced models of those servers are published whose key is in the environment. Importing this module imports neither
aiohttp nor anything else that is heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import ModelSpec

    from ._declare import model
    from ._dialect import PRESETS, Dialect
    from ._embeddings import Embedder, Embeddings
    from ._keys import set_key_source
    from ._listing import ListedModel, list_models
    from ._model import OpenAIModel
    from ._prices import PriceEntry, find_price, price_table

_HOMES = {
    "PRESETS": "_dialect",
    "Dialect": "_dialect",
    "Embedder": "_embeddings",
    "Embeddings": "_embeddings",
    "ListedModel": "_listing",
    "OpenAIModel": "_model",
    "PriceEntry": "_prices",
    "find_price": "_prices",
    "list_models": "_listing",
    "model": "_declare",
    "price_table": "_prices",
    "set_key_source": "_keys",
}

__all__ = [
    "PRESETS",
    "Dialect",
    "Embedder",
    "Embeddings",
    "ListedModel",
    "OpenAIModel",
    "PriceEntry",
    "concertino_cli",
    "concertino_declare_model",
    "concertino_models",
    "find_price",
    "list_models",
    "model",
    "price_table",
    "set_key_source",
]


@hookimpl
def concertino_models() -> list[ModelSpec]:
    """The priced models of the servers whose key is in the environment; nothing without a key."""
    from ._declare import priced_models

    return priced_models()


@hookimpl
def concertino_declare_model(name: str, options: dict[str, Any]) -> ModelSpec:
    """A model that a pool file or `concertino.toml` declares."""
    from ._declare import declare

    return declare(name, options)


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino probe URL`."""
    from ._cli import probe

    return [probe]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
