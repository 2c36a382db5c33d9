"""An endpoint: requests to one server, with its key, its timeouts and its caps, and what can go wrong on the way.

Each failure of the connection becomes a `ProviderError` that says whether the request can have been executed. Nothing
is repeated here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from concertino import FailureClass, ProviderError

from ._failures import from_response, no_api, shorten
from ._keys import Key, redact
from ._options import Settings
from ._session import Sessions

if TYPE_CHECKING:
    from aiohttp import ClientResponse, StreamReader

ERROR_BYTES = 64 * 1024
"""Bytes of an error's body that are read."""
PATIENCE = 2.0
"""Seconds for the body of an error."""
FAREWELL = 0.2
"""Seconds for the end of the connection's part of a reply that is complete."""


class Exchange(NamedTuple):
    """An answer as it came: HTTP status, content type, body."""

    status: int
    kind: str
    body: bytes


class Endpoint:
    """One server as one model, an embedder or a listing sees it."""

    __slots__ = ("_chat", "_headers", "_key", "_proxy", "_sessions", "_settings", "_timeout", "where")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sessions = Sessions()
        self._key = Key(settings.key_env, settings.dialect.key_header)
        self._headers: dict[str, str] | None = None
        self._timeout: Any = None
        self._proxy = settings.proxy
        self._chat: Any = None
        self.where = settings.base_url

    @asynccontextmanager
    async def post_chat(self, body: bytes, idempotency_key: str) -> AsyncIterator[ClientResponse]:
        """A chat request; a context manager that gives the response."""
        headers = self._headers or self._prepare()
        if idempotency_key:
            value = idempotency_key if idempotency_key.isalnum() else quote(idempotency_key)
            headers = {**headers, "X-Request-Id": value, "Idempotency-Key": value}
        options = {"headers": headers, "timeout": self._timeout, "allow_redirects": False, "proxy": self._proxy}
        async with self._sessions.using() as session, session.post(self._chat, data=body, **options) as response:
            yield response

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Any other request than a chat; gives the JSON data of the answer.

        Raises:
            ProviderError: there is none; says how the failure may be treated.
        """
        import aiohttp

        failure: ProviderError | None = None
        try:
            headers = self._headers or self._prepare()
            data = None if body is None else json.dumps(body).encode()
            options = {"headers": headers, "timeout": self._timeout, "allow_redirects": False, "proxy": self._proxy}
            async with (
                self._sessions.using() as session,
                session.request(method, f"{self.where}/{path}", data=data, **options) as response,
            ):
                await self.check(response)
                raw = await self.body(response)
            return json.loads(raw)
        except (ProviderError, aiohttp.ClientError, OSError) as error:
            failure = self.failed(error, begun=False)
        except (ValueError, RecursionError):
            failure = ProviderError(
                redact(f"{self.where}/{path} answered with what is no JSON: {shorten(raw.decode('utf-8', 'replace'))}"),
                failure=FailureClass.MAYBE_EXECUTED,
            )
        raise failure

    async def exchange(self, body: Any) -> Exchange:
        """A chat request, and whatever comes back, unread.

        Raises:
            ProviderError: nothing came back.
        """
        import aiohttp

        try:
            async with self.post_chat(json.dumps(body).encode(), "") as response:
                kind = response.headers.get("Content-Type", "")
                return Exchange(response.status, kind, await self.body(response))
        except (aiohttp.ClientError, OSError) as error:
            failure = self.failed(error, begun=False)
        raise failure

    async def check(self, response: ClientResponse) -> None:
        """Check that a response is one.

        Raises:
            ProviderError: it is an error, or a page for people.
        """
        status = response.status
        kind = response.headers.get("Content-Type", "")
        if 200 <= status < 300 and "html" not in kind:
            return
        body = await _beginning(response.content)
        if status < 300:
            raise no_api(status, body.decode("utf-8", "replace"), self.where)
        raise from_response(status, response.headers, body, self.where)

    async def body(self, response: ClientResponse) -> bytes:
        """The whole body of a response.

        Raises:
            ProviderError: it is larger than allowed, after decompression.
        """
        limit = self._settings.max_reply_bytes
        pieces: list[bytes] = []
        while piece := await response.content.readany():
            limit -= len(piece)
            if limit < 0:
                raise self.too_large()
            pieces.append(piece)
        return b"".join(pieces)

    def too_large(self) -> ProviderError:
        """A reply has passed the cap. It was paid for, and would be as large again."""
        limit = self._settings.max_reply_bytes
        return ProviderError(
            f"{self.where} sent a reply of more than {limit:,} bytes; if that is right, raise max_reply_bytes",
            failure=FailureClass.CUT_OFF,
        )

    def failed(self, error: BaseException, *, begun: bool) -> ProviderError:
        """What an exception means.

        Args:
            error: raised by the connection, or a `ProviderError`, which stays what it is.
            begun: the reply has begun.
        """
        if isinstance(error, ProviderError):
            if error.failure is FailureClass.AUTH:
                self._key.forget()
                self._headers = None
            return error
        failure, text = _of_connection(error)
        if begun:
            failure, text = FailureClass.CUT_OFF, f"{text} in the middle of the reply"
        return ProviderError(redact(f"{self.where}: {text}"), failure=failure)

    async def close(self) -> None:
        """Give up the connections."""
        await self._sessions.close()

    def _prepare(self) -> dict[str, str]:
        """What is the same for every request, worked out once.

        Raises:
            ProviderError: the key is missing.
        """
        import aiohttp
        from yarl import URL

        settings = self._settings
        key = self._key.headers()
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=settings.connect_timeout, sock_read=settings.idle_timeout
        )
        self._chat = URL(f"{settings.base_url}/chat/completions")
        self._headers = {"Content-Type": "application/json", **(settings.headers or {}), **key}
        return self._headers


async def drain(content: StreamReader) -> None:
    """Read what follows on the end of a reply, so that the connection can be used again; but not for long."""
    import aiohttp

    if content.is_eof():
        return
    try:
        async with asyncio.timeout(FAREWELL):
            while await content.readany():
                pass
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass


async def _beginning(content: StreamReader) -> bytes:
    """The beginning of a body, as far as it comes soon."""
    import aiohttp

    pieces: list[bytes] = []
    try:
        async with asyncio.timeout(PATIENCE):
            while sum(map(len, pieces)) < ERROR_BYTES and (piece := await content.readany()):
                pieces.append(piece)
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    return b"".join(pieces)[:ERROR_BYTES]


def _of_connection(error: BaseException) -> tuple[FailureClass, str]:
    """The class and the text of an exception of the connection, before the first token."""
    import aiohttp

    words = " ".join(str(error).split())
    match error:
        case aiohttp.ConnectionTimeoutError():
            return FailureClass.NOT_EXECUTED, f"no connection in time ({words})"
        case aiohttp.ClientConnectorDNSError():
            return FailureClass.NOT_EXECUTED, f"its name cannot be resolved ({words}); is base_url right?"
        case aiohttp.ClientSSLError():
            return FailureClass.NOT_EXECUTED, f"no TLS connection ({words}); is base_url right, http or https?"
        case aiohttp.ClientConnectorError() | aiohttp.ClientProxyConnectionError():
            return FailureClass.NOT_EXECUTED, f"no connection ({words}); is the server running?"
        case TimeoutError():
            return FailureClass.MAYBE_EXECUTED, f"silent for too long ({words or 'timeout'}); see idle_timeout"
        case aiohttp.ServerDisconnectedError():
            return FailureClass.MAYBE_EXECUTED, "closed the connection without an answer"
        case aiohttp.ClientResponseError():
            return FailureClass.CALLER, f"does not speak HTTP ({words}); is base_url right, http or https?"
        case aiohttp.ClientPayloadError():
            return FailureClass.MAYBE_EXECUTED, f"broke off ({words})"
        case _:
            return FailureClass.MAYBE_EXECUTED, f"the connection broke ({words or type(error).__name__})"
