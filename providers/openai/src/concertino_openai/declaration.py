"""Declarations: options become a `ModelSpec`, from Python, from a pool file, or from the price table.

No server is asked, and aiohttp is not imported: a declared model costs nothing until it is used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from concertino import Model, ModelSpec, Prices, SpecError

from .dialects import PRESETS
from .keys import lacking
from .options import PLACEHOLDER, OpenAISettings
from .prices import PriceEntry, find_price, price_table

# None already means that the price is unknown, so "not given" needs a value of its own.
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
    known_as = model or name.removeprefix("openai/")
    given: dict[str, Any] = {"server": server, "model": known_as, "base_url": base_url, "key_env": key_env, **options}
    chosen = {key: value for key, value in given.items() if value is not None and (key, value) != ("server", "openai")}
    spec = declare(name, chosen)
    further = {"concurrency": concurrency, "context": context, "description": description or None}
    changes: dict[str, Any] = {name: value for name, value in further.items() if value is not None}
    if prices is not _UNKNOWN:
        changes["prices"] = prices
    return spec.with_(timeout=timeout, max_tokens=max_tokens, **changes)


def declare(name: str, options: Mapping[str, Any], service: str = "") -> ModelSpec:
    """A model from options, as in a pool file.

    Args:
        service: the preset whose provider declares it; its options then name no server.

    Raises:
        SpecError: an option is invalid; says which, what was given and what is expected.
    """
    place = f"model {name!r}"
    if service and options.get("server", service) != service:
        raise SpecError(
            f"{place}: server = {options['server']!r}; a model of {service!r} is at that service; declare it under "
            "'openai' for another server"
        )
    given = {**options, "server": service} if service else options
    settings = OpenAISettings.of(given, place, name)
    server, entry = settings.dialect.name, None
    if settings.own_address:  # at any other address, a model of this name may cost anything
        entry = find_price(server, settings.model, settings.price_file)
    return ModelSpec(
        name,
        partial(_open, {**given, "model": settings.model}),
        description=DESCRIPTION.format(model=settings.model, place=settings.base_url),
        prices=entry.prices if entry else None,
        context=entry.context if entry else None,
        concurrency=settings.dialect.concurrency,
        options={**options, "model": settings.model},  # by which it is known there, whatever it is called here
        endpoint=settings.base_url,
        accepts=settings.dialect.accepts,
        lacks=partial(lacking, settings.key_env),
    )


def priced_models(service: str) -> list[ModelSpec]:
    """The models of the price table of a service whose key is in the environment; none at another address than its own.

    Raises:
        SpecError: the price file of the environment cannot be read.
    """
    preset = PRESETS[service]
    if not os.environ.get(preset.key_env) or os.environ.get(preset.base_url_env):
        return []
    if any(not os.environ.get(name) for name in PLACEHOLDER.findall(preset.base_url)):
        return []
    return [_priced(entry) for entry in price_table().values() if entry.server == service]


def _priced(entry: PriceEntry) -> ModelSpec:
    spec = declare(entry.model, {}, entry.server)
    return spec if not entry.note else spec.with_(description=f"{spec.description} Prices: {entry.note}.")


def _open(options: Mapping[str, Any]) -> Model:
    from .late import LateModel

    return LateModel(options)
