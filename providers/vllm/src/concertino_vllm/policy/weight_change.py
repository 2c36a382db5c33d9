"""One change of the weights of a running server, from the pause to the first answer, and what follows if it fails.

    pause -> send (a folder, or vLLM's four phases) -> empty the cache -> state the version -> resume -> first answer

The invariants: a version counts only after all of it; weights that came from a folder are followed by those of the
folder before when a step fails; and weights that came as tensors, which are in no folder, are followed by nothing: the
server answers nobody until a later change succeeds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concertino import ProviderError

from concertino_vllm.errors import NotSupported, SwapError, VllmServerError
from concertino_vllm.serving.client import VllmClient
from concertino_vllm.serving.server import VllmServer
from concertino_vllm.serving.state import ServerAddress

from .transfer import FolderTransfer, WeightTransfer
from .weights import is_same

NO_CONTROL = "{}: the server has no such endpoint; start it with {}=1, on a loopback address"


@dataclass
class WeightChange:
    """A change that is about to be made, by whoever holds the server's gate.

    Attributes:
        server: that changes.
        transfer: how the weights get there.
        version: their number.
        before: the folder of the weights in use, None if there is none.
        connect: gives the connection to a start of the server.
        empty_cache: empties the prefix cache.
        check: looks at the first answer of the model of a name.
        asleep: the server has given its memory back: it gets room for the weights first, and for the cache afterwards.
    """

    server: VllmServer
    transfer: WeightTransfer
    version: int
    before: Path | None
    connect: Callable[[ServerAddress], Awaitable[VllmClient]]
    empty_cache: Callable[[VllmClient], Awaitable[None]]
    check: Callable[[VllmClient, str], Awaitable[None]]
    asleep: bool = False

    @property
    def folder(self) -> Path | None:
        """Where the new weights are, None if they are in no folder."""
        return self.transfer.folder if isinstance(self.transfer, FolderTransfer) else None

    async def make(self, endpoint: ServerAddress) -> None:
        """Make it. A cancellation waits for its end.

        Raises:
            SwapError: it failed; says which version answers.
        """
        wire = await self.connect(endpoint)
        seconds = self.server.settings.transfer_seconds
        try:
            # A server that sleeps is paused.
            if not self.asleep:
                await wire.post("/pause?mode=wait", seconds=seconds)
        # The server may have paused all the same, although the caller was cancelled or got no answer.
        except BaseException as error:
            if isinstance(error, ProviderError) and error.status == 404:
                raise NotSupported(NO_CONTROL.format(error, "VLLM_SERVER_DEV_MODE")) from error
            await to_the_end(_let_go(wire))
            raise
        await to_the_end(self._swap(wire, endpoint))

    async def _swap(self, wire: VllmClient, endpoint: ServerAddress) -> None:
        """With the server paused: the change, or the way back."""
        served = self.server.served
        try:
            await self._exchange(wire, endpoint, self.transfer, self.version, asleep=self.asleep)
        # What sends tensors meets errors of torch and of the device, too; after none of them the weights are known.
        except Exception as error:
            reason = await self.server.explained(error) if isinstance(error, ProviderError) else error
            if self.folder is None:
                await self._lose(reason)
            if not isinstance(error, (ProviderError, OSError)):
                raise
            await self._go_back(reason)
            served.broken = ""
            raise SwapError(
                f"{self.folder} is not in use: {reason}; version {served.version} answers again", served.version
            ) from error
        served.version, served.weights, served.sent = self.version, self.folder, self.folder is None
        served.broken = ""

    async def _exchange(
        self, wire: VllmClient, endpoint: ServerAddress, transfer: WeightTransfer, version: int, *, asleep: bool = False
    ) -> None:
        """Send, empty the cache, resume, check; with the server paused, and paused still if sending fails."""
        seconds = self.server.settings.transfer_seconds
        if asleep:
            await wire.post("/wake_up?tags=weights", seconds=seconds)
        await transfer.send(wire, endpoint, seconds)
        if asleep:
            await wire.post("/wake_up?tags=kv_cache", seconds=seconds)
        # vLLM keeps the prefix cache of the old weights across a reload, and says nothing of it.
        await self.empty_cache(wire)
        await wire.post("/update_weight_version", {"new_version": str(version)}, seconds=seconds)
        stated = await wire.get("/weight_info")
        if not isinstance(stated, dict) or stated.get("weight_version") != str(version):
            raise ProviderError(f"the server says that it has {str(stated)[:100]}, not version {version}")
        # The gate is still closed, so the check below is answered before any request.
        await wire.post("/resume", seconds=seconds)
        await self.check(wire, endpoint.model)

    async def _lose(self, reason: Exception) -> None:
        """After tensors did not arrive: nobody knows what the server holds, and no folder holds what it had.

        Raises:
            SwapError: always.
        """
        own = not self.server.settings.attach
        more = "" if own else "; restart the server if it fails again"
        self.server.served.broken = (
            f"nothing answers: weights over {self.transfer.name} did not arrive ({reason}), and nobody knows which "
            f"weights the server holds; load_weights() again, which sends all of them{more}"
        )
        # Its workers may wait without end for what is not sent any more; the next change starts another one.
        if own:
            await self.server.stopped()
        raise SwapError(self.server.served.broken, None) from reason

    async def _go_back(self, reason: Exception) -> None:
        """After files were not loaded: the weights that were there before; if need be, by a new start of the server.

        Raises:
            SwapError: there is no way back.
        """
        server, before, version = self.server, self.before, self.server.served.version
        if self.asleep and not server.settings.attach:
            await server.stopped()  # half awake, it would take no further change
        health = await server.health()
        died = not server.settings.attach and health.state != "ready"
        # A server that died is started with its old weights, from the hub too; a living one needs a folder to load.
        if why := self._no_way_back(died):
            server.served.broken = (
                f"nothing answers: the weights in the server may be half old and half new, since loading failed "
                f"({reason}), and version {version} cannot be loaded again because {why}; load_weights() a good folder"
            )
            raise SwapError(server.served.broken, None) from reason
        try:
            if not died:
                assert before is not None
                endpoint = await server.ready()
                wire = await self.connect(endpoint)
                await wire.post("/pause?mode=wait", seconds=server.settings.transfer_seconds)
                back = FolderTransfer(before, extended=server.settings.extended)
                await self._exchange(wire, endpoint, back, version)
                return
        except ProviderError as failure:
            if server.settings.attach:
                server.served.broken = (
                    f"nothing answers: loading failed ({reason}), and so did the way back to version {version} "
                    f"({failure}); the server may be paused with weights that nobody knows: load_weights() a good "
                    "folder, or restart it"
                )
                raise SwapError(server.served.broken, None) from failure
            await server.stopped()
        try:
            await server.ready()  # a start gives it the weights that it had
        except VllmServerError as failure:
            server.served.broken = f"nothing answers: the server ended while it loaded weights, and {failure}"
            raise SwapError(server.served.broken, None) from failure

    def _no_way_back(self, died: bool) -> str:
        """Why the weights in use cannot be loaded again, "" if they can."""
        if self.server.served.sent:
            return "it was sent as tensors"
        # A trainer that saves into the served folder leaves no old weights to go back to.
        if self.before is not None and self.folder is not None and is_same(self.before, self.folder):
            return "its files were overwritten"
        return "it came from the hub, not from a folder" if self.before is None and not died else ""


async def _let_go(wire: VllmClient) -> None:
    with contextlib.suppress(ProviderError):
        await wire.post("/resume", seconds=30)


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Await something that must not be left half done: a cancellation waits for its end."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            # Retrieved, or asyncio would log it as an exception that nobody took.
            task.exception()
        raise
