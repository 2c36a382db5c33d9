"""Listings: which models a server serves, and whether the one that is asked for is among them.

Some servers answer to any name with the model that they happen to have loaded, and repeat the name that they were
given. So the reply cannot tell; the listing can, where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from concertino import FailureClass, ProviderError
from concertino.schema import near_names

from ._endpoint import Endpoint
from ._failures import from_error, shorten
from ._keys import redact
from ._options import Settings


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model in a server's listing.

    Attributes:
        id: the name to ask for it.
        context: tokens of its context window, where the server says it.
        owner: whose it is, in the server's words.
    """

    id: str
    context: int | None = None
    owner: str = ""


async def list_models(**options: Any) -> tuple[ListedModel, ...]:
    """The models that a server lists.

        for model in await list_models(base_url="http://127.0.0.1:8000/v1", server="vllm"): ...

    Args:
        options: as for a model, without `model`.

    Raises:
        SpecError: an option cannot be.
        ProviderError: the server did not answer with a listing.
    """
    settings = Settings.of(options, "list_models", "(any)")
    endpoint = Endpoint(settings)
    try:
        return await listed(endpoint, settings)
    finally:
        await endpoint.close()


async def listed(endpoint: Endpoint, settings: Settings) -> tuple[ListedModel, ...]:
    """The models that an endpoint lists.

    Raises:
        ProviderError: it did not answer with a listing.
    """
    data = await endpoint.ask("GET", "models")
    if isinstance(data, dict) and data.get("error"):
        raise from_error(data["error"], endpoint.where, begun=False)
    lines = data.get("data") if isinstance(data, dict) else data
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        text = redact(f"{endpoint.where}/models is no listing: {shorten(json.dumps(data))}")
        raise ProviderError(text, failure=FailureClass.CALLER)
    return tuple(_model(line) for line in lines if line.get("id"))


async def verify(endpoint: Endpoint, settings: Settings) -> ListedModel | None:
    """Check that a server serves the model that is asked for.

    Returns:
        The model as it is listed; None if the server lists nothing at all, which says nothing.

    Raises:
        ProviderError: it lists others, or did not answer.
    """
    models = await listed(endpoint, settings)
    # Google lists "models/gemini-..." and answers to the name without the folder.
    for model in models:
        if settings.model in (model.id, model.id.removeprefix("models/")):
            return model
    if not models:
        return None
    names = [model.id for model in models]
    near = near_names(settings.model, names)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names[:6])}"
    raise ProviderError(
        f"{endpoint.where} does not serve {settings.model!r}; {hint}", failure=FailureClass.CALLER, status=404
    )


def _model(line: Mapping[str, Any]) -> ListedModel:
    sizes = [line.get("max_model_len"), line.get("context_length"), line.get("context_window")]
    meta = line.get("meta")
    if isinstance(meta, dict):
        sizes += [meta.get("n_ctx"), meta.get("n_ctx_train")]
    context = next((size for size in sizes if type(size) is int and size > 0), None)
    return ListedModel(str(line["id"]), context, str(line.get("owned_by") or ""))
