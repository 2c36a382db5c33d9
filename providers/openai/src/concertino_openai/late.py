"""`LateModel`: an `OpenAIModel` that is made at its first request, with what it needs imported in a thread.

aiohttp reads the certificates of the machine as it is imported, which takes from 0.2 s to over a second. On the event
loop, every other call would stand still meanwhile, and the executor would name the model as what blocked it.

Invariant: once the model is made, a request costs nothing more than one to the model itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from concertino import ChatRequest, Model, Reply

from .options import OpenAISettings

if TYPE_CHECKING:
    from .client import OpenAIModel


class LateModel(Model):
    """A chat model behind an OpenAI-compatible server.

    Args:
        options: those of `OpenAIModel`.

    Attributes:
        model: the client, None before the first request.

    Raises:
        SpecError: an option is invalid; says which, what was given and what is expected.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.settings = OpenAISettings.of(options, "OpenAIModel")
        self._options = dict(options)
        self.model: OpenAIModel | None = None

    def __repr__(self) -> str:
        return f"OpenAIModel({self.settings.model!r} at {self.settings.base_url})"

    # Neither is a coroutine itself: after the first request, those of the model are given out as they are.

    def chat(self, request: ChatRequest) -> Coroutine[Any, Any, Reply]:
        """Answer a request; raises as `OpenAIModel.chat`."""
        return self._first_chat(request) if self.model is None else self.model.chat(request)

    def stream(self, request: ChatRequest) -> AsyncGenerator[str | Reply, None]:
        """Yield thoughts and text piece by piece, then the reply; raises as `OpenAIModel.stream`."""
        return self._first_stream(request) if self.model is None else self.model.stream(request)

    async def close(self) -> None:
        """Release the connections; the last user in an event loop closes them."""
        if self.model is not None:
            await self.model.close()

    async def _first_chat(self, request: ChatRequest) -> Reply:
        return await (await self._made()).chat(request)

    async def _first_stream(self, request: ChatRequest) -> AsyncGenerator[str | Reply, None]:
        # Closed at once when it is cancelled: an open connection keeps the server working.
        async with aclosing((await self._made()).stream(request)) as parts:
            async for part in parts:
                yield part

    async def _made(self) -> OpenAIModel:
        if self.model is None:
            make = await asyncio.to_thread(_openai_model)
            if self.model is None:  # another request may have made it meanwhile
                self.model = make(**self._options)
        return self.model


def _openai_model() -> type[OpenAIModel]:
    from .client import OpenAIModel

    return OpenAIModel
