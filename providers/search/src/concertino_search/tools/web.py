"""The tool `web_search`: several services behind one tool that answers like `search` does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from concertino import ProviderError, SpecError, ToolSpec

from concertino_search.web.backends import BACKENDS, LONGEST_WAIT, MAX_ATTEMPTS, WebBackend, WebResult

from .schemas import queries_schema

if TYPE_CHECKING:
    from concertino_search.web.search import WebSearch

MAX_QUERIES = 8
MAX_TOP_K = 20


def web_search_tool(
    backend: str | WebBackend,
    *,
    provider: str = "",
    url: str = "",
    top_k: int = 5,
    max_queries: int = MAX_QUERIES,
    seconds: float = 10.0,
    snippet_chars: int = 1000,
    max_chars: int = 16_000,
) -> ToolSpec:
    """The tool `web_search`.

    Args:
        backend: `tavily`, `serper`, `brave`, `searxng`, `duckduckgo`, or one of your own.
        provider: is put before the name.
        url: of another endpoint than the service's own.
        top_k: results per query where the call does not say.
        max_queries: queries of one call, at most.
        seconds: for one request; a call has that for each of its attempts.
        snippet_chars: characters of a result's text, at most.
        max_chars: characters of one result of the tool, at most.

    Raises:
        SpecError: the back-end does not exist.
    """
    if isinstance(backend, str):
        if backend not in BACKENDS:
            raise SpecError(f"web back-end {backend!r}: expected one of {', '.join(BACKENDS)}")
        backend = BACKENDS[backend]
    if url:
        backend = replace(backend, url=url)
    return ToolSpec.from_schema(
        f"{provider}/web_search" if provider else "web_search",
        "Search the web. Takes a list of queries, which are searched in parallel, and returns for each the best pages "
        "with address (as id), title and a snippet. Fetch a page to read it.",
        queries_schema(max_queries, backend.query_chars, top_k, MAX_TOP_K, "results"),
        _WebSearchTool(backend, top_k, seconds, snippet_chars, max_chars),
        isolation="thread",
        timeout=max(30.0, MAX_ATTEMPTS * (seconds + LONGEST_WAIT)),
        retry_safe=True,
        max_chars=max_chars + 256,
    )


class _WebSearchTool:
    """The function of the tool."""

    def __init__(self, backend: WebBackend, top_k: int, seconds: float, shown: int, room: int) -> None:
        self._backend, self._top_k, self._seconds = backend, top_k, seconds
        self._shown, self._room = shown, room
        self._client: WebSearch | None = None

    async def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if self._client is None:
            from concertino_search.web.search import WebSearch

            self._client = WebSearch(self._backend, self._seconds)
        queries = arguments["queries"]
        found = await self._client.search(queries, arguments.get("top_k", self._top_k))
        return self._present(queries, found)

    def _present(self, queries: list[str], found: Mapping[str, list[WebResult] | ProviderError]) -> dict[str, Any]:
        count = sum(len(hits) for hits in found.values() if isinstance(hits, list)) or 1
        # 350 characters for address, title and the JSON around them.
        each = max(80, min(self._shown, self._room // count - 350))
        results: list[dict[str, Any]] = []
        for query in queries:
            hits = found[query]
            if isinstance(hits, ProviderError):
                results.append({"query": query, "passages": [], "error": str(hits)})
                continue
            passages = [
                {"id": hit.url, "title": hit.title[:200], "text": _cut(hit.text, each), "score": round(hit.score, 4)}
                for hit in hits
            ]
            results.append({"query": query, "passages": passages})
        while len(json.dumps(results, ensure_ascii=False)) > self._room:
            longest = max(results, key=lambda result: len(result["passages"]))
            if not longest["passages"]:
                break
            longest["passages"].pop()
        return {"results": results}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
