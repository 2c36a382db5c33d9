"""Declarations: options become a `ModelSpec`, from Python, from a pool file, or from the table of models.

No server is asked, and the SDK is not imported: a declared model costs nothing until it is used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from concertino import Model, ModelSpec, Prices

from .keys import lacking
from .options import BASE_URL_ENV, KEY_ENV, AnthropicSettings
from .presets import presets

# None already means that the price is unknown, so "not given" needs a value of its own.
_UNKNOWN: Any = object()
RESERVED = 16_384
"""Tokens that a budget reserves for a reply: thoughts are a part of it."""
TIMEOUT = 600.0
"""Seconds for a request: a model may think for minutes."""


def model(
    name: str,
    *,
    model: str | None = None,
    base_url: str | None = None,
    key_env: str | None = None,
    description: str = "",
    prices: Prices | None = _UNKNOWN,
    context: int | None = None,
    concurrency: int | None = None,
    timeout: float | None = TIMEOUT,
    max_tokens: int = RESERVED,
    **options: Any,
) -> ModelSpec:
    """Declare a Claude model.

        lead = concertino_anthropic.model("lead", model="claude-opus-5-5", effort="low")

    Args:
        name: its name in the pool.
        model: the name by which the API knows it; by default the same, without a provider before it.
        base_url: address of the server, without `/v1`; by default Anthropic's.
        key_env: name of the environment variable with the key, `""` for none; by default `ANTHROPIC_API_KEY`, but
            only for Anthropic's own address.
        description: what it is good at, for the orchestrator.
        prices: $ per million tokens; by default those of the table of models, None for unknown.
        context, concurrency, timeout, max_tokens: as in `ModelSpec`.
        options: further options, as in the README.

    Raises:
        SpecError: an option is invalid; says which, what was given and what is expected.
    """
    known_as = model or name.removeprefix("anthropic/")
    given = {"model": known_as, "base_url": base_url, "key_env": key_env, **options}
    spec = declare(name, {key: value for key, value in given.items() if value is not None})
    further = {"concurrency": concurrency, "context": context, "description": description or None}
    changes: dict[str, Any] = {key: value for key, value in further.items() if value is not None}
    if prices is not _UNKNOWN:
        changes["prices"] = prices
    return spec.with_(timeout=timeout, max_tokens=max_tokens, **changes)


def declare(name: str, options: Mapping[str, Any]) -> ModelSpec:
    """A model from options, as in a pool file.

    Raises:
        SpecError: an option is invalid; says which, what was given and what is expected.
    """
    settings = AnthropicSettings.of(options, f"model {name!r}", name)
    known = {**options, "model": settings.model}  # by which it is known there, whatever it is called here
    return ModelSpec(
        name,
        partial(_open, known),
        description=f"{settings.model} at {settings.base_url}.",
        prices=_prices(settings),
        context=settings.preset.context,
        timeout=TIMEOUT,
        max_tokens=RESERVED,
        options=known,
        endpoint=settings.base_url,
        accepts=settings.accepts,
        lacks=partial(lacking, settings.key_env),
    )


def _prices(settings: AnthropicSettings) -> Prices | None:
    """Those of the table, at Anthropic's own address only: at any other, a model of this name may cost anything."""
    prices = settings.preset.prices
    if prices is None or not settings.own_address:
        return None
    written = {"5m": prices.cache_write, "1h": settings.preset.cache_write_1h, "": None}[settings.cache]
    return replace(prices, cache_write=written)


def listed_models() -> list[ModelSpec]:
    """The models of the table, where the key is in the environment; none at another address than Anthropic's."""
    if not os.environ.get(KEY_ENV) or os.environ.get(BASE_URL_ENV):
        return []
    return [declare(name, {}) for name in presets()]


def _open(options: Mapping[str, Any]) -> Model:
    from .client import AnthropicModel

    return AnthropicModel(**options)
