"""Search services: how a query becomes a request to each, and what of its answer is a result.

Invariant: a key comes from the environment, goes into a header, and appears in no URL, error, result or trace.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from concertino import read_secret

from concertino_search.errors import call_failed

MAX_ATTEMPTS = 3
LONGEST_WAIT = 5.0
"""Seconds that a service may ask to wait before the query is given up."""


@dataclass(frozen=True)
class WebRequest:
    """A request for one query."""

    method: str
    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WebResult:
    """One result; `score` is the service's own, 0 where it has none."""

    url: str
    title: str
    text: str
    score: float = 0.0


@dataclass(frozen=True)
class WebBackend:
    """A search service.

    Attributes:
        name: what the settings call it.
        url: of its endpoint, or the name of the variable that holds it, as `$SEARXNG_URL`.
        key_env: the environment variable of its key; empty for none.
        request: makes the request of a query: (url, query, results wanted, key).
        results: what of an answer is a result.
        at_once: requests at the same time.
        query_chars: the longest query that it takes.
        hint: what to look at when it refuses.
    """

    name: str
    url: str
    key_env: str
    request: Callable[[str, str, int, str], WebRequest]
    results: Callable[[Any], Iterable[WebResult]]
    at_once: int = 4
    query_chars: int = 400
    hint: str = ""

    @property
    def needs(self) -> list[str]:
        """The variables of the environment that it needs."""
        return [name for name in (self.key_env, self.url[1:] if self.url.startswith("$") else "") if name]

    @property
    def present(self) -> list[str]:
        """Those of them that are set."""
        return [name for name in self.needs if os.environ.get(name, "").strip()]

    @property
    def configured(self) -> bool:
        """Whether all of them are."""
        return self.present == self.needs

    def endpoint(self) -> str:
        """Its address.

        Raises:
            ProviderError: the variable that holds it is not set.
        """
        return variable(self.url[1:], self.name) if self.url.startswith("$") else self.url


# -- the services ------------------------------------------------------------------------------------------------------


def _tavily(url: str, query: str, k: int, key: str) -> WebRequest:
    body = {"query": query, "max_results": k, "search_depth": "basic"}
    return WebRequest("POST", url, body=body, headers={"Authorization": f"Bearer {key}"})


def _serper(url: str, query: str, k: int, key: str) -> WebRequest:
    return WebRequest("POST", url, body={"q": query, "num": k}, headers={"X-API-KEY": key})


def _brave(url: str, query: str, k: int, key: str) -> WebRequest:
    # Brave refuses longer queries.
    words = " ".join(query.split()[:50])
    params = {"q": words, "count": str(k), "text_decorations": "false", "result_filter": "web"}
    headers = {"X-Subscription-Token": key, "Accept": "application/json", "Cache-Control": "no-cache"}
    return WebRequest("GET", url, params, headers=headers)


def _searxng(url: str, query: str, k: int, key: str) -> WebRequest:
    return WebRequest("GET", f"{url.rstrip('/')}/search", {"q": query, "format": "json"})


def _duckduckgo(url: str, query: str, k: int, key: str) -> WebRequest:
    params = {"q": query, "format": "json", "no_html": "1", "no_redirect": "1", "skip_disambig": "1"}
    return WebRequest("GET", url, params)


def _listed(*path: str, url: str, text: str) -> Callable[[Any], Iterable[WebResult]]:
    """Results in a list of objects at a path of the answer."""

    def results(data: Any) -> Iterable[WebResult]:
        for name in path:
            data = data.get(name) or {}
        for row in data or ():
            words = [row.get(text) or "", *(row.get("extra_snippets") or ())]
            yield WebResult(row.get(url) or "", row.get("title") or "", " … ".join(words), row.get("score") or 0.0)

    return results


def _instant(data: Any) -> Iterable[WebResult]:
    """DuckDuckGo's instant answer, and the topics beside it."""
    if data.get("AbstractText"):
        yield WebResult(data.get("AbstractURL", ""), data.get("Heading", ""), data["AbstractText"])
    waiting = [*(data.get("Results") or ()), *(data.get("RelatedTopics") or ())]
    while waiting:
        row = waiting.pop(0)
        waiting = [*(row.get("Topics") or ()), *waiting]
        if row.get("FirstURL"):
            text = row.get("Text", "")
            yield WebResult(row["FirstURL"], text.partition(" - ")[0], text)


BACKENDS = {
    backend.name: backend
    for backend in (
        WebBackend(
            "tavily",
            "https://api.tavily.com/search",
            "TAVILY_API_KEY",
            _tavily,
            _listed("results", url="url", text="content"),
        ),
        WebBackend(
            "serper",
            "https://google.serper.dev/search",
            "SERPER_API_KEY",
            _serper,
            _listed("organic", url="link", text="snippet"),
        ),
        WebBackend(
            "brave",
            "https://api.search.brave.com/res/v1/web/search",
            "BRAVE_API_KEY",
            _brave,
            _listed("web", "results", url="url", text="description"),
            at_once=1,
        ),
        WebBackend(
            "searxng",
            "$SEARXNG_URL",
            "",
            _searxng,
            _listed("results", url="url", text="content"),
            hint="is `json` among `search: formats:` in its settings.yml?",
        ),
        WebBackend("duckduckgo", "https://api.duckduckgo.com/", "", _duckduckgo, _instant, at_once=2),
    )
}


def chosen_backend(named: str = "") -> WebBackend | None:
    """The back-end of a name, else the first with a key or address in the environment."""
    if named:
        return BACKENDS[named]
    return next((backend for backend in BACKENDS.values() if backend.needs and backend.configured), None)


def variable(name: str, backend: str) -> str:
    """The value of a variable that a back-end needs.

    Raises:
        ProviderError: it is not set, or no header can carry it.
    """
    value = read_secret(name)
    if not value or not value.isascii() or not value.isprintable():
        what = "holds characters that no header can carry" if value else "is not set"
        raise call_failed(f"{backend} needs the environment variable {name}, which {what}")
    return value
