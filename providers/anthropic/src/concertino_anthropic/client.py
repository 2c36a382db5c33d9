"""`AnthropicModel`: a Claude model, through the vendor's SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from concertino import ChatRequest, FailureClass, Model, ProviderError, Reply

from .options import AnthropicSettings
from .reply import ReplyFold
from .request import RequestWriter

if TYPE_CHECKING:
    from .transport import Transport

__all__ = ["AnthropicModel"]


class AnthropicModel(Model):
    """A Claude model.

        model = AnthropicModel(model="claude-opus-5-5", effort="low")

    Single replies are streamed on the wire too: the vendor advises it for long replies, and a cancelled stream ends the
    work. The model never retries, waits or queues; that is the executor's task.

    Args:
        options: as in the README; `model` is required, the rest has defaults.

    Raises:
        SpecError: an option is invalid; says which, what was given and what is expected.
    """

    def __init__(self, **options: Any) -> None:
        self.settings = AnthropicSettings.of(options, "AnthropicModel")
        self._writer = RequestWriter(self.settings)
        self._transport: Transport | None = None

    def __repr__(self) -> str:
        return f"AnthropicModel({self.settings.model!r} at {self.settings.base_url})"

    async def chat(self, request: ChatRequest) -> Reply:
        """Answer a request.

        Raises:
            ProviderError: its failure class says whether the request may be retried.
        """
        async with aclosing(self.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, Reply):
                    return part
        raise AssertionError("a stream ends with its reply")

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | Reply, None]:
        """Yield thoughts and text piece by piece, then the reply.

        Raises:
            ProviderError: its failure class says whether the request may be retried.
        """
        written = self._writer.write(request)
        fold = ReplyFold(self.settings, written.prefix)
        transport = await self._opened()
        try:
            async with aclosing(transport.pieces(written.body, request.idempotency_key, fold)) as pieces:
                async for piece in pieces:
                    yield piece
        except ProviderError as failure:
            # The tokens before the break were generated and have to be paid for.
            if failure.failure is FailureClass.CUT_OFF and failure.usage is None:
                failure.usage = fold.usage(request, self.count_tokens)
            raise
        yield fold.reply(request, self.count_tokens)

    def count_tokens(self, text: str) -> int:
        """An estimate on the high side: the tokenizer of these models makes a token of some 2.5 characters."""
        return len(text.encode("utf-8", "surrogatepass")) // 2 + 1

    async def close(self) -> None:
        """Release the connections. May be called at any time and repeatedly."""
        if self._transport is not None:
            await self._transport.close()

    async def _opened(self) -> Transport:
        if self._transport is None:
            make = await asyncio.to_thread(_transport)
            if self._transport is None:  # another request may have made it meanwhile
                self._transport = make(self.settings)
        return self._transport


def _transport() -> type[Transport]:
    from .transport import Transport

    return Transport
