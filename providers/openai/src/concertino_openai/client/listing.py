"""The list of a server's models, and whether the model that is asked for is among them.

Some servers answer to any model name with the model that they have loaded, and repeat the name in the reply. Only the
list can show that a name is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from concertino import FailureClass, ProviderError
from concertino.core.display_text import is_plain_name
from concertino.schema import suggestion

from concertino_openai.failures import from_error, shorten
from concertino_openai.keys import redact
from concertino_openai.options import OpenAISettings

from .http import ServerClient


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model in a server's list.

    Attributes:
        id: the name by which to ask for it.
        context: tokens of its context window; None if the server does not say.
        owner: who owns it, in the server's words.
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
        SpecError: an option is invalid.
        ProviderError: the server did not answer with a list.
    """
    client = ServerClient(OpenAISettings.of(options, "list_models", "(any)"))
    try:
        return await fetch_models(client)
    finally:
        await client.close()


async def fetch_models(client: ServerClient) -> tuple[ListedModel, ...]:
    """The models that the server of a client lists.

    Raises:
        ProviderError: it did not answer with a list.
    """
    data = await client.request_json("GET", "models")
    if isinstance(data, dict) and data.get("error"):
        raise from_error(data["error"], client.base_url, begun=False)
    rows = data.get("data") if isinstance(data, dict) else data
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        text = redact(f"{client.base_url}/models answered with no list: {shorten(json.dumps(data))}")
        raise ProviderError(text, failure=FailureClass.CALLER)
    # A name with characters that nobody sees could pass for another one.
    return tuple(_listed(row) for row in rows if row.get("id") and is_plain_name(str(row["id"])))


async def check_served(client: ServerClient, model: str) -> None:
    """Check that a server lists a model. An empty list proves nothing, and passes.

    Raises:
        ProviderError: it lists other models only, or did not answer.
    """
    names = [listed.id for listed in await fetch_models(client)]
    # Google lists "models/gemini-..." and answers to the name without the folder.
    if not names or model in names or f"models/{model}" in names:
        return
    hint = suggestion(model, names, f"it serves {', '.join(names[:6])}")
    raise ProviderError(f"{client.base_url} does not serve {model!r}; {hint}", failure=FailureClass.CALLER, status=404)


def _listed(row: Mapping[str, Any]) -> ListedModel:
    # Every server has its own name for it; llama.cpp keeps it under `meta`.
    sizes = [row.get("max_model_len"), row.get("context_length"), row.get("context_window")]
    meta = row.get("meta")
    if isinstance(meta, dict):
        sizes += [meta.get("n_ctx"), meta.get("n_ctx_train")]
    context = next((size for size in sizes if type(size) is int and size > 0), None)
    return ListedModel(str(row["id"]), context, str(row.get("owned_by") or ""))
