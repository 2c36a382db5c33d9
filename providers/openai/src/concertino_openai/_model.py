"""`OpenAIModel`: a chat model behind an OpenAI-compatible server.

It streams on the wire for single replies too, since cancelling a stream ends the work on every server. It never
repeats, never waits and never queues: that is the executor's, and there must be one of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from concertino import ChatRequest, FailureClass, Model, ProviderError, Reply, ToolCall

from ._endpoint import Endpoint, drain
from ._fold import Fold
from ._listing import verify
from ._options import Settings
from ._reading import StreamReading, conclude, read_plain
from ._request import RequestWriter
from ._tool_text import NO_NAME

if TYPE_CHECKING:
    from aiohttp import ClientResponse


class OpenAIModel(Model):
    """A chat model behind an OpenAI-compatible server.

        model = OpenAIModel(server="vllm", model="Qwen/Qwen3-8B", base_url="http://127.0.0.1:8000/v1")

    Args:
        options: as in the README; `model` is needed, the rest has defaults.

    Raises:
        SpecError: an option cannot be; says which, what was given and what is expected.
    """

    def __init__(self, **options: Any) -> None:
        settings = Settings.of(options, "OpenAIModel")
        self.settings = settings
        self._endpoint = Endpoint(settings)
        self._writer = RequestWriter(settings.model, settings.dialect, settings.endpoint, settings.extra_body or {})
        self._unverified = settings.verify_model
        self._verifying = asyncio.Lock()

    def __repr__(self) -> str:
        return f"OpenAIModel({self.settings.model!r} at {self.settings.base_url})"

    async def chat(self, request: ChatRequest) -> Reply:
        """Answer a request.

        Raises:
            ProviderError: says how the failure may be treated.
        """
        reply = None
        async for answer in self._answer(request, pieces=False):
            reply = answer
        assert isinstance(reply, Reply), "an answer ends with its reply"
        return reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Reply]:
        """Yield the text piece by piece, then the reply.

        Raises:
            ProviderError: says how the failure may be treated.
        """
        async for answer in self._answer(request, pieces=True):
            yield answer

    async def close(self) -> None:
        """Give up the connections; the last user in an event loop closes them."""
        await self._endpoint.close()

    async def _answer(self, request: ChatRequest, *, pieces: bool) -> AsyncIterator[str | Reply]:
        """The pieces of the text if they are wanted, then the reply."""
        import aiohttp

        settings, tools = self.settings, bool(request.tools)
        fold = Fold(settings.dialect, tools, settings.endpoint, request.sampling.stop)
        failure: ProviderError | None = None
        try:
            if self._unverified:
                await self._verify()
            body = self._writer.write(request)
            async with self._endpoint.post_chat(body, request.idempotency_key) as response:
                await self._endpoint.check(response)
                if self._is_stream(response):
                    reading = StreamReading(fold, settings, tools)
                    while data := await _more(response, reading):
                        piece = reading.feed(data)
                        if pieces and piece:
                            yield piece
                    piece = reading.finish()
                    await drain(response.content)
                else:
                    piece = read_plain(await self._endpoint.body(response), fold, settings)
                if pieces and piece:
                    yield piece
        except (ProviderError, aiohttp.ClientError, OSError) as error:
            failure = self._failure(error, fold, request)
        if failure is not None:
            # Outside of the handler, so that nothing of the request, such as its headers, hangs on the exception.
            raise failure
        last, reply = conclude(fold, request, self.count_tokens, settings)
        if pieces and last:
            yield last
        yield reply

    def _is_stream(self, response: ClientResponse) -> bool:
        """Some servers answer plainly to a request for a stream, and some forget to say that it is one."""
        kind = response.headers.get("Content-Type", "")
        return "event-stream" in kind or (self.settings.dialect.stream and "json" not in kind)

    def _failure(self, error: Exception, fold: Fold, request: ChatRequest) -> ProviderError | None:
        """What an exception means; None if it means a call that the server could not read."""
        failed = self._endpoint.failed(error, begun=fold.begun)
        unread = failed.status == 500 and failed.failure is FailureClass.MAYBE_EXECUTED
        if unread and request.tools and self.settings.dialect.call_errors:
            fold.broken_call(ToolCall(NO_NAME, str(failed)))
            return None
        if failed.failure is FailureClass.CUT_OFF and failed.usage is None:
            failed.usage = fold.usage(request, self.count_tokens)
        return failed

    async def _verify(self) -> None:
        """Ask the server once whether it serves this model."""
        async with self._verifying:
            if self._unverified:
                await verify(self._endpoint, self.settings)
                self._unverified = False


async def _more(response: ClientResponse, reading: StreamReading) -> bytes:
    """The next bytes; none at the end, and none when the connection breaks after the reply was complete."""
    if reading.done:
        return b""
    try:
        return await response.content.readany()
    except Exception:
        if reading.complete:
            return b""
        raise
