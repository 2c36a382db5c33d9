"""Web search: several services behind one tool, `web_search`, that answers like `search` does.

A *back-end* says how a query becomes a request and what of the answer is a result. Everything else is shared: one
session per call, queries side by side as far as the service allows, limits, repeats and errors.

Invariant: a key comes from the environment, goes into a header, and stands in no URL, error, result or trace. A service
that fails never counts against this provider's other tools.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from concertino import FailureClass, ProviderError, SpecError, ToolSpec

from ._breakers import HostBreakers

MAX_QUERIES = 8
MAX_TOP_K = 20
_MAX_BYTES = 2_000_000
_ATTEMPTS = 3
_LONGEST_WAIT = 5.0
"""Seconds that a service may ask to wait before the query is given up."""
_SHOWN = 200
_REFUSALS = {401: "refused the key", 402: "wants payment", 403: "refused", 432: "quota used up", 433: "quota used up"}
_TAG = re.compile(r"<[^>]{0,200}>")


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
        return _variable(self.url[1:], self.name) if self.url.startswith("$") else self.url


# -- the services ------------------------------------------------------------------------------------------------------


def _tavily(url: str, query: str, k: int, key: str) -> WebRequest:
    body = {"query": query, "max_results": k, "search_depth": "basic"}
    return WebRequest("POST", url, body=body, headers={"Authorization": f"Bearer {key}"})


def _serper(url: str, query: str, k: int, key: str) -> WebRequest:
    return WebRequest("POST", url, body={"q": query, "num": k}, headers={"X-API-KEY": key})


def _brave(url: str, query: str, k: int, key: str) -> WebRequest:
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
    """Results that stand in a list of objects at a path of the answer."""

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
            "tavily", "https://api.tavily.com/search", "TAVILY_API_KEY", _tavily,
            _listed("results", url="url", text="content"),
        ),
        WebBackend(
            "serper", "https://google.serper.dev/search", "SERPER_API_KEY", _serper,
            _listed("organic", url="link", text="snippet"),
        ),
        WebBackend(
            "brave", "https://api.search.brave.com/res/v1/web/search", "BRAVE_API_KEY", _brave,
            _listed("web", "results", url="url", text="description"), at_once=1,
        ),
        WebBackend(
            "searxng", "$SEARXNG_URL", "", _searxng, _listed("results", url="url", text="content"),
            hint="is `json` among `search: formats:` in its settings.yml?",
        ),
        WebBackend("duckduckgo", "https://api.duckduckgo.com/", "", _duckduckgo, _instant, at_once=2),
    )
}  # fmt: skip


def chosen_backend(named: str = "") -> WebBackend | None:
    """The back-end of a name, else the first with a key or address in the environment."""
    if named:
        return BACKENDS[named]
    return next((backend for backend in BACKENDS.values() if backend.needs and backend.configured), None)


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
        SpecError: there is no such back-end.
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
        _schema(max_queries, top_k, backend.query_chars),
        _WebSearch(backend, top_k, seconds, snippet_chars, max_chars),
        isolation="thread",
        timeout=max(30.0, _ATTEMPTS * (seconds + _LONGEST_WAIT)),
        retry_safe=True,
        max_chars=max_chars + 256,
    )


def _schema(max_queries: int, top_k: int, query_chars: int) -> dict[str, Any]:
    query = {"type": "string", "minLength": 1, "maxLength": query_chars, "pattern": "\\S"}
    return {
        "type": "object",
        "properties": {
            "queries": {
                "type": "array", "items": query, "minItems": 1, "maxItems": max_queries,
                "description": "what to look for; each is searched on its own.",
            },
            "top_k": {
                "type": "integer", "minimum": 1, "maximum": MAX_TOP_K, "default": top_k,
                "description": "results per query.",
            },
        },
        "required": ["queries"],
        "additionalProperties": False,
    }  # fmt: skip


class _WebSearch:
    """The function of the tool."""

    def __init__(self, backend: WebBackend, top_k: int, seconds: float, shown: int, room: int) -> None:
        self._backend, self._top_k, self._seconds = backend, top_k, seconds
        self._shown, self._room = shown, room
        self._breakers = HostBreakers()

    async def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        import asyncio

        import aiohttp

        backend, k = self._backend, arguments.get("top_k", self._top_k)
        key = _variable(backend.key_env, backend.name) if backend.key_env else ""
        endpoint, gate = backend.endpoint(), asyncio.Semaphore(backend.at_once)
        timeout = aiohttp.ClientTimeout(total=self._seconds)
        distinct = list(dict.fromkeys(arguments["queries"]))
        async with aiohttp.ClientSession(
            timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), trust_env=True
        ) as session:

            async def one(query: str) -> list[WebResult] | ProviderError:
                async with gate:
                    try:
                        request = backend.request(endpoint, query, k, key)
                        return self._results(await self._ask(session, request, key), k)
                    except ProviderError as error:
                        return error

            found = dict(zip(distinct, await asyncio.gather(*map(one, distinct)), strict=True))
        failures = [one for one in found.values() if isinstance(one, ProviderError)]
        if len(failures) == len(found):
            raise failures[0]
        return self._present(arguments["queries"], found)

    def _present(self, queries: list[str], found: Mapping[str, list[WebResult] | ProviderError]) -> dict[str, Any]:
        count = sum(len(hits) for hits in found.values() if isinstance(hits, list)) or 1
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

    def _results(self, data: Any, k: int) -> list[WebResult]:
        name = self._backend.name
        try:
            rows = list(self._backend.results(data))
            kept: dict[str, WebResult] = {}
            for row in rows:
                if re.match(r"https?://", row.url) and row.url not in kept:
                    kept[row.url] = WebResult(row.url[:2000], _plain(row.title), _plain(row.text), float(row.score))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _failed(f"{name} answered in a form that is not known ({type(error).__name__})") from None
        return list(kept.values())[:k]

    async def _ask(self, session: Any, request: WebRequest, key: str) -> Any:
        import asyncio

        import aiohttp

        name = self._backend.name
        if refusal := self._breakers.refusal(name):
            raise _failed(refusal)
        for attempt in range(1, _ATTEMPTS + 1):
            wait, problem = 0.5 * 2 ** (attempt - 1), ""
            try:
                async with session.request(
                    request.method, request.url, params=request.params, json=request.body,
                    headers=request.headers, allow_redirects=False,
                ) as response:  # fmt: skip
                    raw = await _body(response, name)
                    self._breakers.record(name, ok=response.status < 500)
                    if response.status == 200:
                        return _data(raw, name)
                    problem = self._said(response.status, raw, key)
                    if response.status != 429 and response.status < 500:
                        raise _failed(problem)
                    wait = _asked_wait(response.headers, wait)
            except (aiohttp.ClientError, TimeoutError) as error:
                self._breakers.record(name, ok=False)
                problem = f"{name} cannot be reached ({type(error).__name__})"
            if attempt == _ATTEMPTS or wait > _LONGEST_WAIT:
                break
            await asyncio.sleep(wait)
        raise _failed(f"{problem}; try later")

    def _said(self, status: int, raw: bytes, key: str) -> str:
        """What a service refused with, without the key."""
        text = _plain(raw[:4000].decode("utf-8", "replace"))
        if key:
            text = text.replace(key, "[key]")
        advice = f" ({self._backend.hint})" if self._backend.hint and status in (403, 404) else ""
        env = f" of {self._backend.key_env}" if status == 401 and self._backend.key_env else ""
        said = f"{self._backend.name} {_REFUSALS.get(status, 'answered')}{env}{advice}, status {status}"
        return f"{said}: {text[:_SHOWN]}" if text else said


async def _body(response: Any, name: str) -> bytes:
    raw = bytearray()
    async for piece in response.content.iter_chunked(65_536):
        raw += piece
        if len(raw) > _MAX_BYTES:
            raise _failed(f"{name} answered with more than {_MAX_BYTES:,} bytes")
    return bytes(raw)


def _data(raw: bytes, name: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise _failed(
            f"{name} answered with no JSON: {_plain(raw[:4000].decode('utf-8', 'replace'))[:_SHOWN]}"
        ) from None


def _asked_wait(headers: Mapping[str, str], default: float) -> float:
    """Seconds that a service asks to wait; Brave tells them for each of its windows, the shortest first."""
    for name in ("Retry-After", "X-RateLimit-Reset"):
        given = headers.get(name, "").split(",")[0].strip()
        if re.fullmatch(r"\d+(\.\d+)?", given):
            return float(given)
    return default


def _variable(name: str, backend: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value or not value.isascii() or not value.isprintable():
        what = "holds characters that no header can carry" if value else "is not set"
        raise _failed(f"{backend} needs the environment variable {name}, which {what}")
    return value


def _plain(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _failed(message: str) -> ProviderError:
    return ProviderError(message, failure=FailureClass.CALLER)
