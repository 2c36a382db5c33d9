"""Weights broadcast by NCCL from this process to the workers on other GPUs, by vLLM's own engine for trainers.

The engine blocks: in a rendezvous, and in a broadcast that no time limit of NCCL ends. So it runs on a thread that does
not keep the process alive, and its requests come back to the event loop, where each has a time limit. The invariant:
whatever hangs, `send` ends in time, and a group of which any step failed is never used again.
"""

from __future__ import annotations

import asyncio
import importlib
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from concertino import FailureClass, ProviderError

from concertino_vllm.serving.client import VllmClient
from concertino_vllm.serving.state import ServerAddress

from .transfer import Phases, WeightTransfer, check_version
from .weights import State

_ENGINE = "vllm.distributed.weight_transfer"


class NcclTransfer(WeightTransfer):
    """A group of this process and all workers of one start of a server."""

    name = "nccl"

    def __init__(self) -> None:
        self._agreed: ServerAddress | None = None
        self._engine: Any = None
        self._requests = _Requests()
        self.state: State = {}

    async def send(self, wire: VllmClient, endpoint: ServerAddress, seconds: float) -> None:
        """See `WeightTransfer.send`."""
        known, self._agreed = self._agreed, None
        if known is not endpoint:
            self._engine, self._requests = None, _Requests()
        requests = self._requests
        requests.begin(Phases(wire, seconds))
        try:
            if self._engine is None:
                await check_version(wire)
                world = (await wire.get("/get_world_size", seconds=30))["world_size"]
                self._engine = await self._watched(lambda: self._join(wire.base, 1 + int(world)), seconds, "rendezvous")
            # Start, update and finish each have their own limit; this one is for a broadcast that nobody receives.
            await self._watched(self._engine.send_weights, 3 * seconds, "broadcast")
            self._agreed = endpoint
        finally:
            # A thread that was given up must not take part in a later change.
            requests.end()

    def _join(self, base: str, world: int) -> Any:
        try:
            engines = importlib.import_module(_ENGINE + ".factory")
            nccl = importlib.import_module(_ENGINE + ".nccl_engine")
            factory, info = engines.WeightTransferTrainerFactory, nccl.NCCLTrainerInitInfo
        except (ImportError, AttributeError) as error:
            raise ProviderError(
                f"weights = 'nccl' needs vLLM 0.28 or newer beside the trainer ({error}): pip install vllm, or set "
                "weights = 'folder'",
                failure=FailureClass.CALLER,
            ) from error
        address = _address_towards(urlsplit(base).hostname or "127.0.0.1")
        joined = info(master_address=address, master_port=_free_port(), world_size=world, rank=0)
        return factory.trainer_init(init_info=joined, client=self._requests, source=_Source(self))

    async def _watched(self, work: Callable[[], Any], seconds: float, what: str) -> Any:
        """What the engine does on a thread of its own, until it is done, a request of it failed, or time is up."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        # Retrieved, or asyncio would log the error of a thread that nobody waits for any more.
        done.add_done_callback(lambda over: over.cancelled() or over.exception())

        def run() -> None:
            try:
                result = work()
            except BaseException as error:
                _call(loop, _settle, done, None, error)
            else:
                _call(loop, _settle, done, result, None)

        threading.Thread(target=run, name="concertino-vllm-nccl", daemon=True).start()
        failed = self._requests.failed
        await asyncio.wait({done, failed}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        # The answer of the server says more than what the engine makes of it.
        if failed.done():
            raise failed.result()
        if not done.done():
            raise ProviderError(
                f"the {what} of NCCL has not ended after {seconds:g} s; see the log of the server, and set "
                "NCCL_DEBUG=INFO for both",
                failure=FailureClass.MAYBE_EXECUTED,
            )
        error = done.exception()
        if error is not None and not isinstance(error, ProviderError):
            raise ProviderError(f"the {what} of NCCL failed: {type(error).__name__}: {error}") from error
        return done.result()


class _Requests:
    """The four phases as vLLM's engine calls them, from any thread; they are made on the event loop."""

    def begin(self, phases: Phases) -> None:
        """Requests are made by these from now on."""
        self._phases, self._loop, self._over = phases, asyncio.get_running_loop(), False
        self.failed: asyncio.Future[BaseException] = self._loop.create_future()

    def end(self) -> None:
        """No request is made from now on."""
        self._over = True

    def init_weight_transfer_engine(self, init_info: Mapping[str, Any]) -> None:
        """Phase 1."""
        self._wait(self._phases.init(init_info))

    def start_weight_update(self) -> None:
        """Phase 2."""
        self._wait(self._phases.start())

    def update_weights(self, update_info: Mapping[str, Any]) -> None:
        """Phase 3, while the weights are broadcast."""
        self._wait(self._phases.update(update_info))

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Phase 4. The version is stated later, when the first answer was looked at."""
        self._wait(self._phases.finish())

    def _wait(self, request: Coroutine[Any, Any, None]) -> None:
        failed, loop = self.failed, self._loop
        if self._over or loop.is_closed():
            request.close()
            raise ProviderError("nobody waits for this transfer any more")
        try:
            asyncio.run_coroutine_threadsafe(request, loop).result()
        except BaseException as error:
            _call(loop, _settle, failed, error, None)
            raise


class _Source:
    """The weights as vLLM's engine reads them: what comes, then the tensors in the same order."""

    def __init__(self, transfer: NcclTransfer) -> None:
        self._transfer = transfer

    def metadata(self) -> list[Any]:
        """Name, dtype and shape of each."""
        meta = importlib.import_module(_ENGINE + ".base").ParamMeta
        return [meta(name, tensor.dtype, tensor.shape) for name, tensor in self._transfer.state.items()]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        import torch

        for name, tensor in self._transfer.state.items():
            read = tensor.read()
            # NCCL sends memory of a GPU only.
            yield name, read.cuda() if torch.cuda.is_available() else read


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if not future.done():
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: Any) -> None:
    """Have a loop call a function; nothing where nobody waits any more."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)


def _address_towards(host: str) -> str:
    """The address of this machine that a host reaches it by."""
    # Connecting a datagram socket sends nothing.
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))
        return str(probe.getsockname()[0])


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])
