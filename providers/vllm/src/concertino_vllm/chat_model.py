"""A chat model on a vLLM server: the server is started when it is first asked, and the chat is `concertino_openai`'s.

Every reply says in `extra["vllm"]` what answered it: the name that the server knows, and the version of the weights or
the adapter. Invariant: a request goes to one version, and the reply names that one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, cast

from concertino import ChatRequest, Model, Reply

from .loop_end import at_loop_end
from .serving.server import ServerLease, VllmServer
from .serving.state import ServerAddress


class VllmModel(Model):
    """A chat model on a vLLM server, which its first request starts.

    Args:
        server: the server, shared with whoever has equal settings.
        adapter: the plain name of the LoRA adapter to use, "" for the model itself.
        options: options of `concertino_openai.model` about the chat.
    """

    def __init__(self, server: VllmServer, adapter: str = "", options: Mapping[str, Any] | None = None) -> None:
        self.server = server
        self.adapter = adapter
        self._options = dict(options or {})
        self._lease: ServerLease | None = None
        self._chats: dict[tuple[str, str], Model] = {}

    async def chat(self, request: ChatRequest) -> Reply:
        """Answer; before the first answer, start the server.

        Raises:
            VllmServerError: the server could not be started, or ended meanwhile.
            ProviderError: it refused the request.
        """
        await self._take()
        async with self.server.asked() as endpoint:
            # Inside the gate, so that no change of weights comes between this version and the answer.
            name, version = self.server.name_of(self.adapter, endpoint)
            with self.server.in_use(name):
                return _signed(await (await self._chat(endpoint, name)).chat(request), name, version)

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Reply]:
        """Yield the text as it comes, then the reply; raises as `chat` does."""
        await self._take()
        async with self.server.asked() as endpoint:
            name, version = self.server.name_of(self.adapter, endpoint)
            with self.server.in_use(name):
                pieces = (await self._chat(endpoint, name)).stream(request)
                # `Model.stream` promises an iterator; the chat's is a generator, which has to be closed.
                async with aclosing(cast("AsyncGenerator[str | Reply]", pieces)) as stream:
                    async for piece in stream:
                        yield piece if isinstance(piece, str) else _signed(piece, name, version)

    async def start(self) -> None:
        """Start the server now, so that the first request need not wait for it.

        Raises:
            VllmServerError: it could not be started.
        """
        await self._take()
        await self.server.ready()

    async def close(self) -> None:
        """Close the connections; the server is stopped unless another model needs it."""
        await _close_all(self._chats)
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.released()

    async def _take(self) -> None:
        """Need the server, until `close` or until the event loop ends."""
        if self._lease is None:
            self._lease = self.server.lease()
            # The dict alone: a reference to self would keep a forgotten model alive.
            await at_loop_end(self, VllmModel.close, partial(_close_all, self._chats))

    async def _chat(self, endpoint: ServerAddress, name: str) -> Model:
        """The chat of a served name. Those of names that are no longer used are closed."""
        key = (endpoint.url, name)
        chat = self._chats.get(key)
        if chat is None:
            from concertino_openai.late import LateModel

            # Every version of an adapter has its own name, so chats would pile up over a training.
            for old in [old for old in self._chats if old[0] != endpoint.url or not self.server.using[old[1]]]:
                await self._chats.pop(old).close()
            options = {"server": "vllm", "model": name, "key_env": self.server.settings.key_env, **self._options}
            chat = self._chats[key] = LateModel({**options, "base_url": f"{endpoint.url}/v1"})
        return chat


async def _close_all(chats: dict[tuple[str, str], Model]) -> None:
    while chats:
        await chats.popitem()[1].close()


def _signed(reply: Reply, name: str, version: int) -> Reply:
    """The reply with what answered it."""
    return replace(reply, extra={**reply.extra, "vllm": {"model": name, "version": version}})
