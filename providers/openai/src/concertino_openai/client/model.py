"""`OpenAIModel`: a chat model behind an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import aiohttp
from aiohttp import ClientResponse
from concertino import ChatRequest, FailureClass, Model, ProviderError, Reply, Thought, ToolCall
from concertino.text import NAMELESS

from concertino_openai.chat.accumulator import ReplyAccumulator
from concertino_openai.chat.request import RequestWriter
from concertino_openai.chat.stream import StreamDecoder, read_plain, reply_of
from concertino_openai.options import OpenAISettings

from .http import ServerClient, drain
from .listing import check_served

TURN_BYTES = 64 * 1024
"""Up to so many bytes are read in one turn of the event loop, within a few milliseconds; more in a thread."""
_aside = asyncio.to_thread


class OpenAIModel(Model):
    """A chat model behind an OpenAI-compatible server.

        model = OpenAIModel(server="vllm", model="Qwen/Qwen3-8B", base_url="http://127.0.0.1:8000/v1")

    Single replies are streamed on the wire too, because every server stops working on a stream that is cancelled. The
    model never retries, waits or queues; that is the executor's task.

    Args:
        options: as in the README; `model` is required, the rest has defaults.

    Raises:
        SpecError: an option is invalid; says which, what was given and what is expected.
    """

    def __init__(self, **options: Any) -> None:
        settings = OpenAISettings.of(options, "OpenAIModel")
        self.settings = settings
        self._client = ServerClient(settings)
        self._writer = RequestWriter(settings.model, settings.dialect, settings.endpoint, settings.extra_body or {})
        self._unverified = settings.verify_model
        self._verifying = asyncio.Lock()

    def __repr__(self) -> str:
        return f"OpenAIModel({self.settings.model!r} at {self.settings.base_url})"

    async def chat(self, request: ChatRequest) -> Reply:
        """Answer a request.

        Raises:
            ProviderError: its failure class says whether the request may be retried.
        """
        async for part in self.stream(request):
            if isinstance(part, Reply):
                return part
        raise AssertionError("a stream ends with its reply")

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | Reply, None]:
        """Yield thoughts and text piece by piece, then the reply.

        Raises:
            ProviderError: its failure class says whether the request may be retried.
        """
        reply = ReplyAccumulator(
            self.settings.dialect, bool(request.tools), self.settings.endpoint, request.sampling.stop
        )
        failure: ProviderError | None = None
        size = 0
        try:
            if self._unverified:
                await self._verify()
            content = self._writer.write(request)
            key = request.idempotency_key
            async with self._client.send("POST", self._client.chat_url, content, idempotency_key=key) as response:
                await self._client.raise_for_error(response)
                if self._is_stream(response):
                    decoder = StreamDecoder(reply, self.settings, tools=bool(request.tools))
                    while data := await _next_bytes(response, decoder):
                        size = len(data) + decoder.held
                        piece = await _aside(decoder.feed, data) if size > TURN_BYTES else decoder.feed(data)
                        size = decoder.size
                        for part in _new(reply, piece):
                            yield part
                    piece = await _aside(decoder.finish) if decoder.held > TURN_BYTES else decoder.finish()
                    await drain(response.content)
                else:
                    body = await self._client.read(response)
                    size = len(body)
                    given = (body, reply, self.settings)
                    piece = await _aside(read_plain, *given) if size > TURN_BYTES else read_plain(*given)
                for part in _new(reply, piece):
                    yield part
        except (ProviderError, aiohttp.ClientError, OSError) as error:
            told = (error, reply, request)
            failure = await _aside(self._failure, *told) if size > TURN_BYTES else self._failure(*told)
        if failure is not None:
            raise failure  # outside of the handler: an exception in its context could show the key
        made = (reply, request, self.count_tokens, self.settings)
        last, finished = await _aside(reply_of, *made) if size > TURN_BYTES else reply_of(*made)
        if last:
            yield last
        yield finished

    async def close(self) -> None:
        """Release the connections; the last user in an event loop closes them."""
        await self._client.close()

    def _is_stream(self, response: ClientResponse) -> bool:
        """Some servers answer a streaming request with plain JSON, and some omit the content type of a stream."""
        content_type = response.headers.get("Content-Type", "")
        return "event-stream" in content_type or (self.settings.dialect.stream and "json" not in content_type)

    def _failure(self, error: Exception, reply: ReplyAccumulator, request: ChatRequest) -> ProviderError | None:
        """The error to raise; None if the server failed to parse the model's call, which the reply then holds."""
        failure = self._client.provider_error(error, begun=reply.begun)
        # transformers serve answers 500 where it cannot parse what the model wrote as a call.
        unreadable_call = failure.status == 500 and failure.failure is FailureClass.MAYBE_EXECUTED
        if unreadable_call and request.tools and self.settings.dialect.call_errors:
            reply.add_unreadable_call(ToolCall(NAMELESS, str(failure)))
            return None
        # The tokens before the break were generated and have to be paid for.
        if failure.failure is FailureClass.CUT_OFF and failure.usage is None:
            failure.usage = reply.usage(request, self.count_tokens)
        return failure

    async def _verify(self) -> None:
        """Ask the server once whether it serves this model."""
        async with self._verifying:
            # Requests that waited for the lock find the answer here.
            if self._unverified:
                await check_served(self._client, self.settings.model)
                self._unverified = False


def _new(reply: ReplyAccumulator, piece: str) -> Iterator[str]:
    """What is new of a reply: thoughts first, then text."""
    if thought := reply.new_thoughts():
        yield Thought(thought)
    if piece:
        yield piece


async def _next_bytes(response: ClientResponse, decoder: StreamDecoder) -> bytes:
    """The next bytes of a stream; none at its end."""
    if decoder.done:
        return b""
    try:
        # Not by lines: aiohttp refuses lines above 512 KiB, and token ids come in longer ones.
        return await response.content.readany()
    except Exception:
        if decoder.complete:
            return b""  # a connection that breaks after a complete reply has lost nothing
        raise
