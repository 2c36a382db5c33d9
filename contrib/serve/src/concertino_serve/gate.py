"""Who reaches the routes: the first thing that a request meets.

Invariants: a request for a foreign name, or from the page of another site, is refused before anything of it is read
(DNS rebinding, forged requests); a body is never longer than allowed, and never takes longer than allowed; no error of
a request ends the server or tells what is inside it.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any
from urllib.parse import urlsplit

from concertino.core.logs import logger_of
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .api_error import ApiError
from .event_stream import JsonAnswer
from .serve_settings import Limits

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
_MOST_HEADERS = 1 << 15
"""Bytes of names and values."""
logger = logger_of("serve")


class Gate:
    """Lets requests in, and counts them.

    Args:
        hosts: names under which this server may be asked, without a port.
        origins: of pages that may ask, beside those of the server itself.
        statuses: counts how many requests ended with which status.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], origins: Iterable[str], statuses: Counter[int]) -> None:
        self._app = app
        self._hosts = {host.lower() for host in hosts}
        self._origins = set(origins)
        self._statuses = statuses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def counted(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                self._statuses[message["status"]] += 1
            await send(message)

        try:
            self._check(scope["headers"])
            await self._app(scope, receive, counted)
        except ApiError as error:
            await JsonAnswer(error.to_json(), error.status, error.headers)(scope, receive, counted)
        except ClientDisconnect:
            pass
        except Exception:
            logger.exception("a request failed")
            if begun:
                raise
            failed = ApiError(500, "the server failed; its log says why", code="internal_error")
            await JsonAnswer(failed.to_json(), 500, failed.headers)(scope, receive, counted)

    def _check(self, headers: Collection[tuple[bytes, bytes]]) -> None:
        if sum(len(name) + len(value) for name, value in headers) > _MOST_HEADERS:
            raise ApiError(431, f"the headers have more than {_MOST_HEADERS} bytes", code="too_large")
        hosts = [value for name, value in headers if name == b"host"]
        origins = [value for name, value in headers if name == b"origin"]
        sites = [value for name, value in headers if name == b"sec-fetch-site"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if _name(host) not in self._hosts:
            raise ApiError(421, "this server has another name; ask for it as it listens, or add `hosts`", code="host")
        own = {f"http://{host}", f"https://{host}"} | self._origins
        if any(origin.decode("latin-1") not in own for origin in origins):
            raise ApiError(403, "a page of another site asks; add `origins` if it may", code="origin")
        if not origins and any(site not in (b"none", b"same-origin") for site in sites):
            raise ApiError(403, "a page of another site asks; add `origins` if it may", code="origin")


def _name(host: str) -> str:
    """A host without its port, in small letters; empty for what is none."""
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname or "", parts.port
    except ValueError:
        return ""
    return name if host.lower() in (name, f"{name}:{parts.port}", f"[{name}]", f"[{name}]:{parts.port}") else ""


async def read_bytes(request: Request, limits: Limits) -> bytes:
    """The body.

    Raises:
        ApiError: it is too long, too slow, or no JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # What a form of a foreign page may send without asking is never JSON.
        raise ApiError(415, f"content-type {kind or 'is missing'}; expected application/json", code="content_type")
    pieces, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for piece in request.stream():
                size += len(piece)
                if size > limits.body_bytes:
                    raise ApiError(413, f"the body has more than {limits.body_bytes} bytes", code="too_large")
                pieces.append(piece)
    except TimeoutError:
        error = ApiError(408, f"the body has not come within {limits.body_seconds:g} s", code="too_slow")
        raise error from None
    return b"".join(pieces)


async def read_body(request: Request, limits: Limits) -> tuple[bytes, dict[str, Any]]:
    """The body, and the object in it.

    Raises:
        ApiError: as `read_bytes`; or it is no JSON object.
    """
    body = await read_bytes(request, limits)
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is invalid JSON", code="invalid_json") from None
    if not isinstance(data, dict):
        raise ApiError(400, "expected a JSON object", code="invalid_json")
    return body, data
