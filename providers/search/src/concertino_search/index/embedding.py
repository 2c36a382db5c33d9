"""Embedders: text to vectors, as a protocol with adapters.

An embedder is anything with a `name`, which is part of an index's identity, and an async `embed`. Passages and queries
are told apart, since many models want a different prefix for each.

Invariant: `embed_all` gives unit vectors of one length, or an error that says what the embedder gave.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from concertino_search.analysis import analyser
from concertino_search.errors import CorpusError
from concertino_search.options import TextEmbedder, TextKind

Vectors = npt.NDArray[np.float32]
"""One unit vector per row."""


class ServedEmbedder:
    """An embedder whose `embed(texts)` gives an object with `vectors`, such as `concertino_openai.client.Embedder`.

    Args:
        served: the embedder.
        name: of its model; by default what its settings say.
        query_prefix: is put before each query (`"query: "` for the E5 models).
        passage_prefix: is put before each passage.
    """

    def __init__(self, served: Any, *, name: str = "", query_prefix: str = "", passage_prefix: str = "") -> None:
        named = name or getattr(getattr(served, "settings", None), "model", "")
        if not named:
            raise CorpusError(f"{type(served).__name__} does not say its model; give name=...")
        self.name = f"{named}|{query_prefix}|{passage_prefix}"
        self._served = served
        self._prefixes = {"query": query_prefix, "passage": passage_prefix}

    async def embed(self, texts: Sequence[str], kind: TextKind) -> Any:
        """The vectors of the server."""
        return (await self._served.embed([self._prefixes[kind] + text for text in texts])).vectors


class EncodingEmbedder:
    """An object with a blocking `encode(texts)`, such as a `SentenceTransformer`; it runs on a thread.

    Args:
        encoder: the object.
        name: of the model.
        query_prefix: is put before each query.
        passage_prefix: is put before each passage.
        batch: texts per call of `encode`; a cancelled build waits for one such call at most.
    """

    def __init__(
        self, encoder: Any, *, name: str, query_prefix: str = "", passage_prefix: str = "", batch: int = 64
    ) -> None:
        self.name = f"{name}|{query_prefix}|{passage_prefix}"
        self._encode: Callable[[list[str]], Any] = encoder.encode
        self._prefixes = {"query": query_prefix, "passage": passage_prefix}
        self._batch = max(1, batch)

    async def embed(self, texts: Sequence[str], kind: TextKind) -> Any:
        """The vectors that `encode` gives."""
        prefixed = [self._prefixes[kind] + text for text in texts]
        parts = []
        for start in range(0, len(prefixed), self._batch):
            encoding = asyncio.to_thread(self._encode, prefixed[start : start + self._batch])
            parts.append(np.asarray(await encoding, dtype=np.float32))
        return np.concatenate(parts) if parts else np.empty((0, 0), dtype=np.float32)


class HashingEmbedder:
    """Stems and pairs of stems, hashed into a vector: no model, no download, the same everywhere.

    It finds shared word forms and nothing of meaning: for tests, and to try dense retrieval out.

    Args:
        dimensions: length of the vectors.
    """

    def __init__(self, dimensions: int = 1024) -> None:
        self.name = f"hashing-{dimensions}"
        self._dimensions = dimensions
        self._analyse = analyser("english")
        self._places: dict[str, tuple[int, float]] = {}

    async def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        """The vectors; queries and passages alike."""
        vectors = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for feature, count in Counter(self._features(text)).items():
                place, sign = self._place(feature)
                vectors[row, place] += sign * (1 + math.log(count))
        return vectors

    def _features(self, text: str) -> list[str]:
        features = self._analyse(text)
        pairs = [f"{one} {other}" for one, other in itertools.pairwise(features)]
        return features + pairs

    def _place(self, feature: str) -> tuple[int, float]:
        found = self._places.get(feature)
        if found is None:
            number = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "big")
            # With random signs, features that share a place cancel out on average.
            found = (number >> 1) % self._dimensions, 1.0 if number & 1 else -1.0
            self._places[feature] = found
        return found


async def embed_all(embedder: TextEmbedder, texts: Sequence[str], kind: TextKind) -> Vectors:
    """Unit vectors of texts; a vector of zeros stays one.

    Raises:
        CorpusError: the embedder gave another number of vectors, or some that are no finite numbers.
    """
    given = await embedder.embed(texts, kind)
    try:
        vectors = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise CorpusError(f"embedder {embedder.name!r} gave no array of numbers: {error}") from None
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise CorpusError(
            f"embedder {embedder.name!r} gave an array of shape {vectors.shape} for {len(texts)} texts; expected one "
            "row of finite numbers per text"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return unit
