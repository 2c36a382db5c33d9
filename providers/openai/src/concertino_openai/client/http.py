"""`ServerClient`: requests to one server, with its key, its timeouts and its size limits.

A failed request becomes a `ProviderError` whose class says whether the server may have executed it. Nothing is retried
here, and redirects are not followed: the executor retries, and a key must not reach another host.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp
from aiohttp import ClientResponse, ClientTimeout, StreamReader
from concertino import FailureClass, ProviderError, keep_headers, keep_secret
from concertino.text import read_stranger_json
from yarl import URL

from concertino_openai.failures import from_response, not_an_api, shorten
from concertino_openai.keys import ApiKey, redact
from concertino_openai.options import OpenAISettings

from .sessions import Sessions

ERROR_BYTES = 64 * 1024
"""Bytes of an error's body that are read."""
ERROR_SECONDS = 2.0
"""Seconds to wait for the body of an error."""
DRAIN_SECONDS = 0.2
"""Seconds to wait for the end of the body after a complete reply."""


class ServerClient:
    """An HTTP client for one server.

    Attributes:
        base_url: the server's address, up to and including `/v1`.
    """

    def __init__(self, settings: OpenAISettings) -> None:
        self.base_url = settings.base_url
        self.chat_url = URL(f"{settings.base_url}/chat/completions")
        self._max_reply_bytes = settings.max_reply_bytes
        self._key = ApiKey(settings.key_env, settings.dialect.key_header)
        self._headers = {"Content-Type": "application/json", **(settings.headers or {})}
        # No `total`: long reasoning is not a fault, and the executor keeps the deadline.
        self._timeout = ClientTimeout(sock_connect=settings.connect_timeout, sock_read=settings.idle_timeout)
        self._proxy = settings.proxy
        keep_headers(settings.headers or {})
        for address in (settings.base_url, settings.proxy or ""):
            if "@" in address:
                keep_secret(address)
        self._sessions = Sessions()

    @asynccontextmanager
    async def send(
        self, method: str, url: URL, content: bytes | None = None, *, idempotency_key: str = ""
    ) -> AsyncIterator[ClientResponse]:
        """Send a request; yields the response, whatever its status, with its body still unread.

        Raises:
            ProviderError: the key is missing.
        """
        headers = {**self._headers, **self._key.headers()}
        if idempotency_key:
            quoted = idempotency_key if idempotency_key.isalnum() else quote(idempotency_key)
            # vLLM makes `X-Request-Id` part of the reply's id, by which its log and a trace can be matched.
            headers |= {"X-Request-Id": quoted, "Idempotency-Key": quoted}
        async with (
            self._sessions.using() as session,
            session.request(
                method,
                url,
                data=content,
                headers=headers,
                timeout=self._timeout,
                proxy=self._proxy,
                # A redirect could carry the key to another host.
                allow_redirects=False,
            ) as response,
        ):
            yield response

    async def request_json(self, method: str, path: str, body: Any = None) -> Any:
        """Send any request but a chat, and return the JSON data of the answer.

        Raises:
            ProviderError: the server did not answer with JSON.
        """
        content = None if body is None else json.dumps(body).encode()
        try:
            async with self.send(method, URL(f"{self.base_url}/{path}"), content) as response:
                await self.raise_for_error(response)
                raw = await self.read(response)
            return await asyncio.to_thread(read_stranger_json, raw)
        except (ProviderError, aiohttp.ClientError, OSError) as error:
            failure = self.provider_error(error, begun=False)
        except (ValueError, RecursionError):
            shown = shorten(raw.decode("utf-8", "replace"))
            failure = ProviderError(
                redact(f"{self.base_url}/{path} answered with invalid JSON: {shown}"),
                failure=FailureClass.MAYBE_EXECUTED,
            )
        raise failure  # outside of the handler: an exception in its context could show the key

    async def exchange(self, body: Any) -> tuple[int, str, bytes]:
        """Send a chat request, and return status, content type and body of the answer, uninterpreted.

        Raises:
            ProviderError: there was no answer.
        """
        try:
            async with self.send("POST", self.chat_url, json.dumps(body).encode()) as response:
                return response.status, response.headers.get("Content-Type", ""), await self.read(response)
        except (aiohttp.ClientError, OSError) as error:
            failure = self.provider_error(error, begun=False)
        raise failure

    async def raise_for_error(self, response: ClientResponse) -> None:
        """Check that a response can hold a reply.

        Raises:
            ProviderError: the status is an error, or the body is a web page.
        """
        content_type = response.headers.get("Content-Type", "")
        if 200 <= response.status < 300 and "html" not in content_type:
            return
        body = await _read_soon(response.content)
        if response.status < 300:
            raise not_an_api(response.status, body.decode("utf-8", "replace"), self.base_url)
        raise from_response(response.status, response.headers, body, self.base_url)

    async def read(self, response: ClientResponse) -> bytes:
        """Read the whole body of a response.

        Raises:
            ProviderError: it is larger than `max_reply_bytes` after decompression.
        """
        body = bytearray()
        while data := await response.content.readany():
            body += data
            if len(body) > self._max_reply_bytes:
                # Not retried: the reply was paid for, and would be as large the next time.
                raise ProviderError(
                    f"{self.base_url} sent a reply of more than {self._max_reply_bytes:,} bytes; if that is right, "
                    "raise max_reply_bytes",
                    failure=FailureClass.CUT_OFF,
                )
        return bytes(body)

    def provider_error(self, error: BaseException, *, begun: bool) -> ProviderError:
        """Classify an exception of a request.

        Args:
            error: raised by aiohttp, or a `ProviderError`, which is returned unchanged.
            begun: whether part of the reply has arrived.
        """
        if isinstance(error, ProviderError):
            if error.failure is FailureClass.AUTH:
                self._key.forget()  # it may have been replaced since it was looked up
            return error
        failure, text = _classify(error)
        if begun:
            failure, text = FailureClass.CUT_OFF, f"{text} in the middle of the reply"
        return ProviderError(redact(f"{self.base_url}: {text}"), failure=failure)

    async def close(self) -> None:
        """Release the connections."""
        await self._sessions.close()


async def drain(content: StreamReader) -> None:
    """Read what follows a complete reply, so that the connection can be reused, but do not wait long for it."""
    if content.is_eof():
        return
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while await content.readany():
                pass
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass


async def _read_soon(content: StreamReader) -> bytes:
    """The beginning of a body, as far as it arrives soon: an error must not take as long as a reply."""
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_SECONDS):
            while len(body) < ERROR_BYTES and (data := await content.readany()):
                body += data
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    return bytes(body[:ERROR_BYTES])


def _classify(error: BaseException) -> tuple[FailureClass, str]:
    """The failure class of an exception of aiohttp, and its message."""
    detail = " ".join(str(error).split())
    # The order matters: aiohttp's connection errors inherit from each other and from OSError and TimeoutError.
    match error:
        case aiohttp.ConnectionTimeoutError():
            return FailureClass.NOT_EXECUTED, f"connecting took too long ({detail})"
        case aiohttp.ClientConnectorDNSError():
            return FailureClass.NOT_EXECUTED, f"its name cannot be resolved ({detail}); is base_url right?"
        case aiohttp.ClientSSLError():
            return FailureClass.NOT_EXECUTED, f"no TLS connection ({detail}); is base_url right, http or https?"
        case aiohttp.ClientConnectorError() | aiohttp.ClientProxyConnectionError():
            # In the words of the system: those of aiohttp speak of TLS, also where there is none.
            words = os.strerror(error.os_error.errno) if error.os_error.errno else detail
            return FailureClass.NOT_EXECUTED, f"no connection ({words}); is the server running?"
        case TimeoutError():
            return FailureClass.MAYBE_EXECUTED, f"silent for too long ({detail or 'timeout'}); see idle_timeout"
        case aiohttp.ServerDisconnectedError():
            return FailureClass.MAYBE_EXECUTED, "closed the connection without an answer"
        case aiohttp.ClientResponseError():
            return FailureClass.CALLER, f"does not speak HTTP ({detail}); is base_url right, http or https?"
        case aiohttp.ClientPayloadError():
            return FailureClass.MAYBE_EXECUTED, f"the answer broke off ({detail})"
        case _:
            return FailureClass.MAYBE_EXECUTED, f"the connection broke ({detail or type(error).__name__})"
