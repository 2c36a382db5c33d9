"""Declaring models: options become a `ModelSpec`, from Python, from a pool file, or from a price table.

Nothing is asked of any server here, and aiohttp is not imported: a declared model costs nothing until it is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from concertino import Model, ModelSpec, Prices

from .dialects import PRESETS
from .options import OpenAISettings
from .prices import PriceEntry, find_price, price_table

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_UNKNOWN: Any = object()
DESCRIPTION = "{model} at {place}."


def model(
    name: str,
    *,
    model: str | None = None,
    base_url: str | None = None,
    server: str = "openai",
    key_env: str | None = None,
    description: str = "",
    prices: Prices | None = _UNKNOWN,
    context: int | None = None,
    concurrency: int | None = None,
    timeout: float | None = 300.0,
    max_tokens: int = 4096,
    **options: Any,
) -> ModelSpec:
    """Declare a model behind an OpenAI-compatible server.

        fast = concertino_openai.model("fast", server="vllm", model="Qwen/Qwen3-8B", base_url="http://gpu:8000/v1")

    Args:
        name: its name in the pool.
        model: the name by which the server knows it; by default the same, without a provider before it.
        base_url: address of the server up to and including `/v1`; by default the preset's.
        server: which preset.
        key_env: name of the environment variable with the key, `""` for none; by default the preset's, but only for
            the preset's own address.
        description: what it is good at, for the orchestrator.
        prices: $ per million tokens; by default those of the price table, None for unknown.
        context, concurrency, timeout, max_tokens: as in `ModelSpec`.
        options: further options, as in the README.

    Raises:
        SpecError: an option is invalid; says which, what was given and what is expected.
    """
    given: dict[str, Any] = {"server": server, "model": model, "base_url": base_url, "key_env": key_env, **options}
    chosen = {key: value for key, value in given.items() if value is not None and (key, value) != ("server", "openai")}
    spec = declare(name, chosen)
    changes: dict[str, Any] = {"timeout": timeout, "max_tokens": max_tokens}
    changes |= {"concurrency": concurrency} if concurrency is not None else {}
    changes |= {"description": description} if description else {}
    changes |= {"context": context} if context is not None else {}
    changes |= {} if prices is _UNKNOWN else {"prices": prices}
    return spec.with_(**changes)


def declare(name: str, options: Mapping[str, Any]) -> ModelSpec:
    """A model from options, as in a pool file.

    Args:
        name: its name in the pool.
        options: by name.

    Raises:
        SpecError: an option is invalid; says which, what was given and what is expected.
    """
    short = name.rpartition("/")[2]
    settings = OpenAISettings.of(options, f"model {name!r}", short)
    entry = find_price(settings.dialect.name, settings.model, settings.price_file) if _at_home(settings) else None
    return ModelSpec(
        name,
        partial(_open, {**options, "model": settings.model}),
        description=DESCRIPTION.format(model=settings.model, place=settings.base_url),
        prices=entry.prices if entry else None,
        context=entry.context if entry else None,
        concurrency=settings.dialect.concurrency,
        options={**options, "model": settings.model},  # by which it is known there, whatever it is called here
        endpoint=settings.base_url,
    )


def priced_models() -> list[ModelSpec]:
    """The models of the price table whose server's key is in the environment."""
    return [_priced(entry) for entry in price_table().values() if os.environ.get(_key_of(entry.server))]


def _priced(entry: PriceEntry) -> ModelSpec:
    server = entry.server
    name = _NOT_IN_NAMES.sub("-", entry.model).strip("-.")
    if server != "openai" and not name.startswith(server):
        name = f"{server}-{name}"
    options = {"model": entry.model} if server == "openai" else {"server": server, "model": entry.model}
    spec = declare(name[:64], options)
    return spec if not entry.note else spec.with_(description=f"{spec.description} Prices: {entry.note}.")


def _key_of(server: str) -> str:
    return PRESETS[server].key_env if server in PRESETS else ""


def _at_home(settings: OpenAISettings) -> bool:
    """Whether the server is the one whose prices the table lists."""
    return settings.base_url == PRESETS[settings.dialect.name].base_url


def _open(options: Mapping[str, Any]) -> Model:
    from .client import OpenAIModel

    return OpenAIModel(**options)
