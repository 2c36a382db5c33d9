"""An open index of a corpus: BM25, and with an embedder vectors too. It is read-only and never changes."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concertino_search.analysis import analyser
from concertino_search.errors import CorpusError, IndexDamaged
from concertino_search.options import FORMAT, Mode, TextEmbedder
from concertino_search.snippets import sentences

from .bm25 import Bm25
from .embedding import embed_all
from .passages import Passage, PassageStore
from .ranking import Ranked, fuse
from .vectors import VectorIndex

META = "meta.json"
_AT_ONCE = 64
"""Queries that BM25 ranks at once; between them, other tasks run."""
_SPLIT = 500
"""Long passages whose sentences are cached; the rounds of an agent find the same ones again."""
_FUSED_DEPTH = 5
"""A hybrid search fuses the best `5 k` of each ranking, 50 at least."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, and its score: BM25, cosine or fused, comparable within one query only."""

    passage: Passage
    score: float


class Index:
    """An open index; read-only, and safe to use from several threads.

    Args:
        folder: one that `open_index` or `build_index` gave.
        embedder: the one that it was built with; without it, only BM25 is searched.

    Raises:
        IndexDamaged: the folder holds no complete index.
    """

    def __init__(self, folder: Path, embedder: TextEmbedder | None = None) -> None:
        meta = read_meta(folder)
        if meta is None:
            raise IndexDamaged(f"{folder}: no complete index; delete the folder, and it is built again")
        built_with = meta["options"]["embedder"]
        if embedder is not None and embedder.name != built_with:
            raise CorpusError(f"{folder} was built with embedder {built_with!r}, and {embedder.name!r} is given")
        self.folder = folder
        self.options: dict[str, Any] = meta["options"]
        self.passages = PassageStore(folder)
        self._analyse = analyser(self.options["analyser"])
        # Made for each index and not by a decorator, so that the cache goes when the index does.
        self.sentences = functools.lru_cache(_SPLIT)(functools.partial(sentences, terms=self._analyse))
        self._bm25 = Bm25.open(folder)
        self._embedder = embedder
        self._vectors = VectorIndex(folder) if embedder is not None else None

    @property
    def mode(self) -> Mode:
        """How it searches by default: `hybrid` with an embedder, else `bm25`."""
        return "hybrid" if self._vectors is not None else "bm25"

    def terms(self, text: str) -> list[str]:
        """The terms of a text, as this index counts them."""
        return self._analyse(text)

    def read(self, passage_id: str) -> Passage | None:
        """The passage of an id, None if there is none."""
        position = self.passages.find(passage_id)
        return None if position is None else self.passages[position]

    async def search(
        self, queries: Sequence[str], k: int = 10, *, mode: Mode | None = None, weights: tuple[float, float] = (1, 1)
    ) -> list[list[Hit]]:
        """The best passages of each query; equal queries are computed once.

        It computes on the running loop, and gives others their turn between parts of a batch.

        Args:
            queries: any number of them.
            k: passages per query, at most.
            mode: what to search; by default the index's own.
            weights: of BM25 and of the vectors in a hybrid search.

        Raises:
            CorpusError: a mode without vectors, or arguments out of range.
        """
        mode = mode or self.mode
        if k < 1 or min(weights) < 0 or mode not in ("bm25", "dense", "hybrid"):
            raise CorpusError(f"k={k}, mode={mode!r}, weights={weights}; expected k >= 1, bm25|dense|hybrid, >= 0")
        if mode != "bm25" and self._vectors is None:
            raise CorpusError(f"mode {mode!r} needs an embedder; this index was opened without one")
        distinct = list(dict.fromkeys(queries))
        depth = k if mode != "hybrid" else min(max(50, _FUSED_DEPTH * k), len(self.passages))
        near = await self._near(distinct, depth) if mode != "bm25" else []
        ranked = near if mode == "dense" else await self._worded(distinct, depth)
        if mode == "hybrid":
            ranked = [fuse(pair, weights, k) for pair in zip(ranked, near, strict=True)]
        hits = dict(zip(distinct, map(self._hits, ranked), strict=True))
        return [hits[query] for query in queries]

    async def _worded(self, queries: list[str], k: int) -> list[Ranked]:
        """The rankings by BM25."""
        found: list[Ranked] = []
        for start in range(0, len(queries), _AT_ONCE):
            found += self._bm25.search([self._analyse(query) for query in queries[start : start + _AT_ONCE]], k)
            await asyncio.sleep(0)
        return found

    async def _near(self, queries: list[str], k: int) -> list[Ranked]:
        if not queries or self._embedder is None or self._vectors is None:
            return []
        return self._vectors.search(await embed_all(self._embedder, queries, "query"), k)

    def _hits(self, ranked: Ranked) -> list[Hit]:
        positions, scores = ranked
        pairs = zip(positions.tolist(), scores.tolist(), strict=True)
        return [Hit(self.passages[position], score) for position, score in pairs]


def read_meta(folder: Path) -> dict[str, Any] | None:
    """The description of the index in a folder; None if the folder holds no complete index."""
    try:
        meta: dict[str, Any] = json.loads((folder / META).read_bytes())
        whole = all((folder / name).stat().st_size == size for name, size in meta["files"].items())
    except (OSError, ValueError, KeyError, AttributeError):
        return None
    return meta if whole and meta["options"].get("format") == FORMAT else None
