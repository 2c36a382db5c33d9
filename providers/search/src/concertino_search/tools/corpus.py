"""The tools over a corpus: `search` asks many questions at once, `read` gives passages whole.

    pool = Pool([*corpus_tools("wiki.jsonl"), …])

The index is opened at the first call, and built where there is none; `open_index` does it in advance.

Invariant: a result is never cut by its caller. Texts are shortened to fit, from the least relevant end, and a note says
so.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from concertino import ToolSpec

from concertino_search.options import PASSAGE_CHARS, IndexOptions, Mode
from concertino_search.snippets import snippet

from .schemas import queries_schema

if TYPE_CHECKING:
    from concertino_search.index.index import Hit, Index

MAX_QUERIES = 32
MAX_TOP_K = 50
MAX_IDS = 20
_LEAST_TEXT = 80
"""Characters of a text below which passages are left out rather than shortened further."""
_ESCAPED = 6
"""Characters of JSON that one character of a text may take."""
_SCORE_STEPS = 10_000
"""Scores are shown to a ten-thousandth; of a whole number, rounding takes a tenth of the time."""
_WAIT = 0.05
"""Seconds between two looks at an index that another thread builds."""


class Corpus:
    """A corpus whose index is opened at first use, once per process.

    Args:
        path: a JSON Lines file, a document, or a folder of these.
        options: how it is indexed.
        cache: where indexes are kept.
    """

    def __init__(self, path: str | Path, options: IndexOptions | None = None, *, cache: Path | None = None) -> None:
        self.path = Path(path)
        self.options = options or IndexOptions()
        self._cache = cache
        self._index: Index | None = None
        self._opening = threading.Lock()

    async def index(self) -> Index:
        """The open index; calls at the same time, from any loop, wait for one that builds it.

        Raises:
            CorpusError: the corpus cannot be read.
        """
        from concertino_search.index import open_index

        while self._index is None:
            # The holder may be on another loop or thread, and waiting must not block this loop.
            if not self._opening.acquire(blocking=False):
                await asyncio.sleep(_WAIT)
                continue
            try:
                # The earlier holder of the lock may have opened it.
                self._index = self._index or await open_index(self.path, self.options, cache=self._cache)
            finally:
                self._opening.release()
        return self._index

    def refresh(self) -> Self:
        """Make the next use check whether the corpus changed."""
        self._index = None
        return self


def corpus_tools(
    corpus: str | Path | Corpus,
    *,
    cache: Path | None = None,
    provider: str = "",
    about: str = "",
    mode: Mode | None = None,
    weights: tuple[float, float] = (1, 1),
    top_k: int = 5,
    max_queries: int = MAX_QUERIES,
    snippet_chars: int = PASSAGE_CHARS,
    max_chars: int = 16_000,
    timeout: float | None = 60.0,
    **options: Any,
) -> list[ToolSpec]:
    """The tools `search` and `read` over a corpus.

    Args:
        corpus: a file or folder, or a `Corpus`.
        cache: where indexes are kept, by default `default_cache()`.
        provider: is put before the names (`provider/search`), to have several corpora in one pool.
        about: what the corpus holds, for the model that chooses ("Wikipedia of 2018").
        mode: `bm25`, `dense` or `hybrid`; by default hybrid with an embedder, else BM25.
        weights: of BM25 and of the vectors in a hybrid search.
        top_k: passages per query where the call does not say.
        max_queries: queries of one call, at most.
        snippet_chars: characters of a passage that `search` shows, at most; what is cut from documents is shown whole.
        max_chars: characters of one result, at most.
        timeout: seconds for one call, the building of an index included.
        options: fields of `IndexOptions`.

    Raises:
        CorpusError: an option is invalid.
    """
    if not isinstance(corpus, Corpus):
        corpus = Corpus(corpus, IndexOptions(**options), cache=cache)
    elif options:
        corpus = Corpus(corpus.path, replace(corpus.options, **options), cache=cache)
    prefix = f"{provider}/" if provider else ""
    what = about or "a local collection of passages"
    searching = _SearchTool(corpus, mode, weights, top_k, snippet_chars, max_chars)
    common: dict[str, Any] = {
        "timeout": timeout,
        "retry_safe": True,
        # Ranking computes without giving way; on the run's own loop it would hold up other calls.
        "isolation": "thread",
        # Above what a result may have, so that the executor never cuts one.
        "max_chars": max_chars + 256,
    }
    return [
        ToolSpec.from_schema(
            f"{prefix}search",
            f"Search {what}. Takes a list of queries, which are searched together, and returns for each the best "
            "passages with id, title, text and score. Ask several precise queries at once; full sentences and "
            "keywords both work.",
            queries_schema(max_queries, 2000, top_k, MAX_TOP_K, "passages"),
            searching,
            **common,
        ),
        ToolSpec.from_schema(
            f"{prefix}read",
            f"Read passages of {what} whole, by the ids that search returned.",
            _READ_SCHEMA,
            _ReadTool(corpus, max_chars),
            **common,
        ),
    ]


_READ_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ids": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "minItems": 1,
            "maxItems": MAX_IDS,
            "description": "ids of passages, as search returned them.",
        }
    },
    "required": ["ids"],
    "additionalProperties": False,
}


class _SearchTool:
    """The function of a `search` tool."""

    def __init__(
        self, corpus: Corpus, mode: Mode | None, weights: tuple[float, float], top_k: int, shown: int, room: int
    ) -> None:
        self._corpus, self._mode, self._weights = corpus, mode, weights
        self._top_k, self._shown, self._room = top_k, shown, room

    async def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        index = await self._corpus.index()
        queries: list[str] = arguments["queries"]
        found = await index.search(queries, arguments.get("top_k", self._top_k), mode=self._mode, weights=self._weights)
        return present(queries, found, index, self._shown, self._room)


class _ReadTool:
    """The function of a `read` tool."""

    def __init__(self, corpus: Corpus, room: int) -> None:
        self._corpus, self._room = corpus, room

    async def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        index = await self._corpus.index()
        ids = list(dict.fromkeys(arguments["ids"]))
        found = {passage_id: index.read(passage_id) for passage_id in ids}
        unknown = [passage_id for passage_id, passage in found.items() if passage is None]
        known = [passage for passage in found.values() if passage is not None]
        if not known:
            raise ValueError(f"no passage has the id {', '.join(map(repr, unknown))}; take ids that search returned")
        # 200 characters for id, title and the JSON around them.
        each = max(_LEAST_TEXT, self._room // len(known) - 200)
        shown = [
            {"id": p.id, "title": p.title, "text": p.text if len(p.text) <= each else f"{p.text[:each]}…"}
            for p in known
        ]
        return {"passages": shown, **({"unknown": unknown} if unknown else {})}


def present(queries: list[str], found: list[list[Hit]], index: Index, shown: int, room: int) -> dict[str, Any]:
    """The result of a search, no longer than `room` characters of JSON wherever that can be."""
    hits = sum(map(len, found))
    notes = []
    while True:
        frame = sum(len(json.dumps(query, ensure_ascii=False)) + 40 for query in queries) + 100
        frame += sum(len(hit.passage.id) + len(hit.passage.title) + 60 for part in found for hit in part)
        left = sum(map(len, found))
        each = min(shown, (room - frame) // left) if left else shown
        most = max(map(len, found), default=0)
        if each >= min(_LEAST_TEXT, shown) or most <= 1:
            break
        # The longest lists lose their last passage, so that no query loses its best.
        found = [part[: most - 1] for part in found]
    each = max(each, 2)
    results = [_result(query, part, index, each) for query, part in zip(queries, found, strict=True)]
    tight = left * each * _ESCAPED > room - frame
    over = len(json.dumps(results, ensure_ascii=False)) - room if tight else 0
    if over > 0 and left and each > _LEAST_TEXT:  # characters that JSON escapes take more room
        results = [_result(q, p, index, max(2, each - over // left - 2)) for q, p in zip(queries, found, strict=True)]
    if left < hits:
        notes.append(f"{hits - left} of {hits} passages are left out to keep this short; ask fewer queries at once")
    if each < shown:
        notes.append(f"texts are shortened to {each} characters; read them by id")
    return {"results": results, **({"note": "; ".join(notes)} if notes else {})}


def _result(query: str, hits: list[Hit], index: Index, limit: int) -> dict[str, Any]:
    wanted: set[str] | None = None
    passages = []
    for hit in hits:
        text = hit.passage.text
        if len(text) > limit:
            wanted = set(index.terms(query)) if wanted is None else wanted
            text = snippet(text, wanted, limit, index.sentences)
        shown = {
            "id": hit.passage.id,
            "title": hit.passage.title,
            "text": text,
            "score": round(hit.score * _SCORE_STEPS) / _SCORE_STEPS,
        }
        passages.append(shown)
    return {"query": query, "passages": passages}
