"""A client of one search service: queries side by side as far as the service allows, limits, repeats and errors."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import aiohttp
from concertino import ProviderError

from concertino_search.errors import call_failed

from .backends import LONGEST_WAIT, MAX_ATTEMPTS, WebBackend, WebRequest, WebResult, variable
from .breakers import HostBreakers

_MAX_BYTES = 2_000_000
_SHOWN = 200
_REFUSALS = {401: "refused the key", 402: "wants payment", 403: "refused", 432: "quota used up", 433: "quota used up"}
_TAG = re.compile(r"<[^>]{0,200}>")


class WebSearch:
    """Asks one service."""

    def __init__(self, backend: WebBackend, seconds: float) -> None:
        self._backend, self._seconds = backend, seconds
        self._breakers = HostBreakers()

    async def search(self, queries: Iterable[str], k: int) -> dict[str, list[WebResult] | ProviderError]:
        """At most `k` results of each query, or why there are none.

        Raises:
            ProviderError: every query failed.
        """
        backend, distinct = self._backend, list(dict.fromkeys(queries))
        key = variable(backend.key_env, backend.name) if backend.key_env else ""
        endpoint, gate = backend.endpoint(), asyncio.Semaphore(backend.at_once)
        timeout = aiohttp.ClientTimeout(total=self._seconds)
        # The environment's proxy may be used: unlike a page, a service is named by the user.
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
        failures = [result for result in found.values() if isinstance(result, ProviderError)]
        if len(failures) == len(found):
            raise failures[0]
        return found

    def _results(self, data: Any, k: int) -> list[WebResult]:
        try:
            kept: dict[str, WebResult] = {}
            for row in self._backend.results(data):
                if re.match(r"https?://", row.url) and row.url not in kept:
                    kept[row.url] = WebResult(row.url[:2000], _plain(row.title), _plain(row.text), float(row.score))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            name = self._backend.name
            raise call_failed(f"{name} answered in an unknown form ({type(error).__name__})") from None
        return list(kept.values())[:k]

    async def _ask(self, session: aiohttp.ClientSession, request: WebRequest, key: str) -> Any:
        name = self._backend.name
        if refusal := self._breakers.refusal(name):
            raise call_failed(refusal)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            wait = 0.5 * 2 ** (attempt - 1)
            try:
                async with session.request(
                    request.method,
                    request.url,
                    params=request.params,
                    json=request.body,
                    headers=request.headers,
                    # A redirect would take the key to another host.
                    allow_redirects=False,
                ) as response:
                    raw = await self._read(response)
                    self._breakers.record(name, ok=response.status < 500)
                    if response.status == 200:
                        return self._json(raw)
                    problem = self._refusal(response.status, raw, key)
                    if response.status != 429 and response.status < 500:
                        raise call_failed(problem)
                    wait = _asked_wait(response.headers, wait)
            except (aiohttp.ClientError, TimeoutError) as error:
                self._breakers.record(name, ok=False)
                problem = f"{name} cannot be reached ({type(error).__name__})"
            if attempt == MAX_ATTEMPTS or wait > LONGEST_WAIT:
                break
            await asyncio.sleep(wait)
        raise call_failed(f"{problem}; try later")

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        raw = bytearray()
        async for piece in response.content.iter_chunked(65_536):
            raw += piece
            if len(raw) > _MAX_BYTES:
                raise call_failed(f"{self._backend.name} answered with more than {_MAX_BYTES:,} bytes")
        return bytes(raw)

    def _json(self, raw: bytes) -> Any:
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise call_failed(f"{self._backend.name} answered with invalid JSON: {_beginning(raw)}") from None

    def _refusal(self, status: int, raw: bytes, key: str) -> str:
        """The service's reason, without the key."""
        text = _plain(raw[:4000].decode("utf-8", "replace"))
        if key:
            text = text.replace(key, "[key]")
        advice = f" ({self._backend.hint})" if self._backend.hint and status in (403, 404) else ""
        env = f" of {self._backend.key_env}" if status == 401 and self._backend.key_env else ""
        said = f"{self._backend.name} {_REFUSALS.get(status, 'answered')}{env}{advice}, status {status}"
        return f"{said}: {text[:_SHOWN]}" if text else said


def _asked_wait(headers: Mapping[str, str], default: float) -> float:
    """Seconds that a service asks to wait; Brave names them for each of its windows, the shortest first."""
    for name in ("Retry-After", "X-RateLimit-Reset"):
        given = headers.get(name, "").split(",")[0].strip()
        if re.fullmatch(r"\d+(\.\d+)?", given):
            return float(given)
    return default


def _beginning(raw: bytes) -> str:
    return _plain(raw[:4000].decode("utf-8", "replace"))[:_SHOWN]


def _plain(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())
