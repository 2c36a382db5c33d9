"""The transport: requests of the vendor's SDK, and events as they come.

The SDK connects, signs, sends and reads event streams. Its own retries are off, because the executor repeats requests,
and redirects are not followed, because a key must not reach another host. Events are taken as the data that came, so
that one which is newer than the SDK is no obstacle.

Importing the SDK takes seconds, so this module is imported in a thread, at the first request.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import lru_cache
from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

import anthropic
import httpx2
from concertino import FailureClass, ProviderError, keep_headers
from concertino.text import TooManyValues, read_stranger_json

from .bounded_stream import BoundedStream
from .failures import RAISED, WRONG_FORM, no_reply, not_an_api, provider_error, wrong_form
from .keys import look_up
from .options import AnthropicSettings
from .reply import ReplyFold

Events = anthropic.AsyncStream[object]
_PATH = "/v1/messages"
_NO_KEY = "none"
"""What a server without keys is sent, as the SDK always sends one."""
DRAIN_SECONDS = 0.2
"""Seconds to wait for the end of the stream after a complete reply, so that the connection can be used again."""
PAGE_SECONDS = 2.0
"""Seconds to wait for a page that is no answer."""


class Transport:
    """Requests of one model."""

    def __init__(self, settings: AnthropicSettings) -> None:
        self._settings = settings
        self._where = settings.base_url
        self._key: str | None = None
        # An HTTP client belongs to the loop that it was first used in.
        self._clients: WeakKeyDictionary[AbstractEventLoop, anthropic.AsyncAnthropic] = WeakKeyDictionary()

    async def pieces(self, body: dict[str, Any], key: str, fold: ReplyFold) -> AsyncGenerator[str, None]:
        """Ask, and give what can be shown of the answer as it comes.

        Args:
            body: of the request.
            key: the idempotency key.
            fold: gathers the answer.

        Raises:
            ProviderError: its failure class says whether the request may be retried.
        """
        failure: ProviderError | None = None
        try:
            async with await self._send(body, key) as events:
                fold.request_id = events.response.headers.get("request-id", "")
                streamed = "event-stream" in events.response.headers.get("content-type", "")
                async with aclosing(self._streamed(events, fold) if streamed else self._whole(events, fold)) as answer:
                    async for piece in answer:
                        yield piece
        except (ProviderError, *RAISED) as error:
            # A connection that breaks after the stop reason has lost nothing.
            if not fold.stop_reason:
                failure = provider_error(error, self._where, begun=fold.begun)
        if failure is None and not fold.stop_reason:
            failure = no_reply(self._where, begun=fold.begun)
        if failure is not None:
            if failure.failure is FailureClass.AUTH:
                self._key = None  # it may have been replaced since it was looked up
            raise failure  # outside of the handler: an exception in its context could show the key

    async def close(self) -> None:
        """Release the connections. May be called at any time and repeatedly."""
        for loop, client in list(self._clients.items()):
            self._clients.pop(loop, None)
            if loop is asyncio.get_running_loop():
                await client.close()
            elif loop.is_running():
                # Connections have to be closed on their own loop.
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(client.close(), loop))

    async def _send(self, body: dict[str, Any], key: str) -> Events:
        client = await self._client()
        headers = {**self._settings.headers, **({"Idempotency-Key": quote(key)} if key else {})}
        options: anthropic.RequestOptions = {"headers": headers, "follow_redirects": False}
        return await client.post(_PATH, cast_to=object, body=body, options=options, stream=True, stream_cls=Events)

    async def _streamed(self, events: Events, fold: ReplyFold) -> AsyncGenerator[str, None]:
        async for event in events:
            try:
                piece = fold.feed(event) if isinstance(event, dict) else ""
            except WRONG_FORM as error:
                raise wrong_form(error, event, self._where, begun=fold.begun) from None
            if piece:
                yield piece
            if fold.stopped:
                await _drain(events)
                return

    async def _whole(self, events: Events, fold: ReplyFold) -> AsyncGenerator[str, None]:
        """A message that came as one, because that was asked for or because the server does not stream."""
        message = await self._message(events.response)
        try:
            shown = fold.whole(message)
        except WRONG_FORM as error:
            raise wrong_form(error, message, self._where, begun=False) from None
        for piece in shown:
            yield piece

    async def _message(self, response: httpx2.Response) -> Any:
        if "json" not in response.headers.get("content-type", ""):
            page = b""
            with suppress(TimeoutError):
                async with asyncio.timeout(PAGE_SECONDS):
                    page = await response.aread()
            raise not_an_api(response.status_code, page.decode("utf-8", "replace"), self._where)
        data = await response.aread()
        if not data.strip():
            raise no_reply(self._where, begun=False)
        try:
            return await asyncio.to_thread(read_stranger_json, data)
        except TooManyValues as error:
            raise ProviderError(f"{self._where} sent a reply with {error}", failure=FailureClass.CUT_OFF) from None
        except (ValueError, RecursionError) as error:
            # The work was done and has to be paid for.
            raise wrong_form(error, data.decode("utf-8", "replace"), self._where, begun=True) from None

    async def _bound(self, response: httpx2.Response) -> None:
        """Bound the body of a response before anybody reads it."""
        response.stream = BoundedStream(response, self._where)

    async def _client(self) -> anthropic.AsyncAnthropic:
        """The client of the running loop, made at first use."""
        settings, loop = self._settings, asyncio.get_running_loop()
        if self._key is None:
            keep_headers(settings.headers)
            self._key = look_up(settings.key_env) if settings.key_env else _NO_KEY
        found = self._clients.get(loop)
        if found is None:
            # To read the certificates takes a tenth of a second, once per process.
            verify = await asyncio.to_thread(_certificates) if settings.base_url.startswith("https:") else False
            timeout = anthropic.Timeout(settings.idle_timeout, connect=settings.connect_timeout, pool=None)
            client = anthropic.AsyncAnthropic(
                api_key=self._key,
                base_url=settings.base_url,
                max_retries=0,
                timeout=timeout,
                http_client=anthropic.DefaultAsyncHttpxClient(verify=verify, event_hooks={"response": [self._bound]}),
                # The encoding whose size can be bounded while it is decoded.
                default_headers={"Accept-Encoding": "gzip"},
            )
            found = self._clients.setdefault(loop, client)
        found.api_key = self._key
        return found


async def _drain(events: Events) -> None:
    """Read what follows a complete reply, but do not wait long for it."""
    with suppress(TimeoutError, *RAISED):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in events:
                pass


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    return httpx2.create_ssl_context()
