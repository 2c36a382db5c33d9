"""`Embedder`: an embedding model behind an OpenAI-compatible server. It is seldom the server of the chat."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from concertino import FailureClass, ProviderError, Usage

from concertino_openai.chat.usage import read_usage
from concertino_openai.failures import from_error, shorten
from concertino_openai.keys import redact
from concertino_openai.options import OpenAISettings

from .http import ServerClient


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of texts.

    Attributes:
        vectors: one per text, in the order of the texts, all of one length.
        usage: what was consumed.
    """

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage


class Embedder:
    """An embedding model behind an OpenAI-compatible server.

        embedder = Embedder(model="text-embedding-3-small")
        vectors = (await embedder.embed(["one", "two"])).vectors

    Args:
        dimensions: length of the vectors, for models that can shorten them.
        batch: texts per request; more texts are several requests, one after another.
        options: as for a model.

    Raises:
        SpecError: an option is invalid.
    """

    def __init__(self, *, dimensions: int | None = None, batch: int = 256, **options: Any) -> None:
        self.settings = OpenAISettings.of(options, "Embedder")
        self._client = ServerClient(self.settings)
        self._fixed: dict[str, Any] = {"model": self.settings.model, "encoding_format": "float"}
        if dimensions is not None:
            self._fixed["dimensions"] = dimensions
        self._fixed.update(self.settings.extra_body or {})
        self._batch = max(1, batch)

    def __repr__(self) -> str:
        return f"Embedder({self.settings.model!r} at {self.settings.base_url})"

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """The vectors of texts.

        Raises:
            ProviderError: says how the failure may be treated.
        """
        vectors: list[tuple[float, ...]] = []
        usage = Usage()
        for start in range(0, len(texts), self._batch):
            part = await self._ask(list(texts[start : start + self._batch]))
            vectors += part.vectors
            usage = usage.plus(part.usage)
        return Embeddings(tuple(vectors), usage)

    async def close(self) -> None:
        """Give up the connections."""
        await self._client.close()

    async def _ask(self, texts: list[str]) -> Embeddings:
        data = await self._client.request_json("POST", "embeddings", {**self._fixed, "input": texts})
        if not isinstance(data, dict) or data.get("error"):
            raise from_error(data.get("error") if isinstance(data, dict) else data, self._client.base_url, begun=False)
        try:
            # The protocol promises an index, not an order.
            lines = sorted(data["data"], key=lambda line: line["index"])
            vectors = tuple(tuple(map(float, line["embedding"])) for line in lines)
        except (KeyError, TypeError, ValueError):
            text = redact(f"{self._client.base_url}/embeddings answered with no vectors: {shorten(json.dumps(data))}")
            raise ProviderError(text, failure=FailureClass.CALLER) from None
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
            raise ProviderError(
                f"{self._client.base_url}/embeddings gave {len(vectors)} vectors of {sorted(set(map(len, vectors)))} "
                f"numbers for {len(texts)} texts; expected one per text, all of one length",
                failure=FailureClass.CALLER,
            )
        reported = data.get("usage")
        if isinstance(reported, dict):
            return Embeddings(vectors, read_usage(reported))
        estimate = sum(len(text.encode("utf-8", "surrogatepass")) // 3 + 1 for text in texts)
        return Embeddings(vectors, Usage(input_tokens=estimate, estimated=1))
