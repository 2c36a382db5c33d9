"""The start of a server, from the command until it has answered once; or what is wrong, in one sentence.

A start waits for the health check, asks for a few tokens (the first requests compile code), and gives back the weights
and adapters that the server had before. It runs in an event loop of its own, so that no waiting request owns it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from concertino import ConcertinoError, FailureClass, ProviderError
from concertino.core.logs import logger_of
from concertino.executor import awaitable

from concertino_vllm.errors import VllmServerError
from concertino_vllm.settings import VllmSettings

from .client import VllmClient, load_folder
from .end_causes import explain_end, last_line, quote, read_end
from .process import PortTaken, VllmProcess
from .state import ServedState, ServerAddress, StartProgress

logger = logger_of("vllm")

PORTS = 4
"""How many free ports are tried."""


class Startup:
    """One start.

    Args:
        settings: of the server.
        served: what it is given once it runs.
        on_process: takes each process that is started, so that it can be stopped meanwhile.
        on_progress: called about once a second with how far the start has come.
        unwanted: whether it was told to end meanwhile.
    """

    def __init__(
        self,
        settings: VllmSettings,
        served: ServedState,
        on_process: Callable[[VllmProcess], None],
        on_progress: Callable[[StartProgress], None],
        unwanted: Callable[[], bool],
    ) -> None:
        self.settings = settings
        self.served = served
        self._on_process = on_process
        self._on_progress = on_progress
        self._unwanted = unwanted

    async def run(self) -> ServerAddress:
        """Start the server, or find the one that somebody else runs.

        Raises:
            VllmServerError: it cannot be used; says why.
        """
        return await (self._attach() if self.settings.attach else self._start())

    async def _attach(self) -> ServerAddress:
        try:
            async with VllmClient(self.settings.base, self.settings.key()) as wire:
                await wire.get("/health", seconds=10)
                model, root = await _base_model(wire)
                return ServerAddress(self.settings.base, self.settings.model or model, root)
        except ProviderError as error:
            raise VllmServerError(
                f"attach = {self.settings.attach!r}: no vLLM answers there; start it, or correct the address: {error}",
                failure=FailureClass.NOT_EXECUTED,
            ) from error

    async def _start(self) -> ServerAddress:
        for _ in range(PORTS):
            process = None
            try:
                process = VllmProcess(self.settings)
                self._on_process(process)
                pid = await awaitable(process.started)
                log = process.log
                logger.info(
                    "started vLLM with %s (pid %d, port %d, log %s)", self.settings.model, pid, process.port, log
                )
                return await self._until_ready(process)
            except PortTaken:
                if process is not None:
                    await awaitable(process.ended)
                    process.discard_log()
                if self.settings.port:
                    raise VllmServerError(
                        f"port = {self.settings.port}: another program has it; end that, or use port = 0 for a free one"
                    ) from None
            except BaseException:
                if process is not None:
                    process.stop(failed=True)
                    await awaitable(process.ended)
                raise
        raise VllmServerError(f"{PORTS} free ports in a row were taken away before vLLM had them")

    async def _until_ready(self, process: VllmProcess) -> ServerAddress:
        """Poll until it answers; then warm it up and give it what it had."""
        settings, log = self.settings, process.log
        url = address_of(process, self.settings)
        began, due = time.monotonic(), 10.0
        exited = awaitable(process.exited)
        async with VllmClient(url, settings.key()) as wire:
            work: asyncio.Future[tuple[str, str]] = asyncio.create_task(self._prepare(wire))
            try:
                either: tuple[asyncio.Future[Any], ...] = (work, exited)
                while not work.done():
                    await asyncio.wait(either, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                    seconds = time.monotonic() - began
                    if work.done() and work.exception() is not None:
                        # The connection may break a moment before the system reports the end.
                        await asyncio.wait([exited], timeout=1.0)
                    if exited.done() and not (work.done() and work.exception() is None):
                        raise self._early_end(exited.result(), log)
                    if not work.done() and seconds >= settings.startup_seconds:
                        raise VllmServerError(
                            f"vLLM was not ready after {settings.startup_seconds:g} s; if it was only slow, raise "
                            f"startup_seconds{quote(log)}",
                            log=str(log),
                        )
                    if not work.done():
                        progress = StartProgress(settings.model, seconds, settings.startup_seconds, last_line(log))
                        if seconds >= due:
                            logger.info("%s", progress)
                            due += 10.0
                        self._on_progress(progress)
                model, root = work.result()
            except ProviderError as error:
                if isinstance(error, VllmServerError):
                    raise
                raise VllmServerError(
                    f"vLLM started and then refused what it was asked: {error}{quote(log)}", log=str(log)
                ) from error
            finally:
                exited.cancel()
                await _cancelled(work)
        logger.info("vLLM with %s is ready at %s after %.0f s", settings.model, url, time.monotonic() - began)
        return ServerAddress(url, model, root)

    async def _prepare(self, wire: VllmClient) -> tuple[str, str]:
        """Wait for the health check, ask once, give weights and adapters back; the model's name and origin."""
        while True:
            try:
                await wire.get("/health", seconds=5)
                break
            except ProviderError:
                await asyncio.sleep(0.2)
        model, root = await _base_model(wire)
        await _warm_up(wire, model)
        await self._give_back(wire)
        return model, root

    async def _give_back(self, wire: VllmClient) -> None:
        """After an end: the weights and adapters it had."""
        served = self.served
        served.restarted()
        if served.weights is not None:
            await load_folder(wire, served.weights, extended=self.settings.extended)
            # The warm-up has filled it under the weights of the start.
            await wire.post("/reset_prefix_cache")
            await wire.post("/update_weight_version", {"new_version": str(served.version)})
        for name, (folder, _) in served.adapters.items():
            await wire.post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)})

    def _early_end(self, code: int, log: Path) -> BaseException:
        lines = read_end(log)
        if self._unwanted():
            return VllmServerError("vLLM was stopped while it was starting", failure=FailureClass.NOT_EXECUTED)
        if not self.settings.port and any("Address already in use" in line for line in lines):
            return PortTaken()
        return VllmServerError(
            f"vLLM did not start: {explain_end(code, lines)}{quote(log)}", log=str(log), failure=FailureClass.CALLER
        )


def address_of(process: VllmProcess, settings: VllmSettings) -> str:
    """Where a started process listens, as seen from here."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{process.port}"


def not_started(error: BaseException) -> VllmServerError:
    """The error of a start that concertino itself could not make."""
    said = str(error) if isinstance(error, ConcertinoError) else repr(error)
    failed = VllmServerError(f"vLLM could not be started: {said}")
    failed.__cause__ = error
    return failed


async def _base_model(wire: VllmClient) -> tuple[str, str]:
    """The name that a server serves its model under, adapters left out, and what it was loaded from."""
    cards = (await wire.get("/v1/models"))["data"]
    # vLLM lists adapters too, with their model as parent.
    base = next((card for card in cards if not card.get("parent")), None)
    if base is None:
        raise ProviderError(f"{wire.base}/v1/models lists no model, only {len(cards)} adapters")
    return str(base["id"]), str(base.get("root") or "")


async def _warm_up(wire: VllmClient, model: str) -> None:
    """Ask for a few tokens, greedily and sampled: the first requests compile code, which takes up to half a minute."""
    for temperature in (0, 1):
        # Log-probabilities have code of their own: their first request took 16 s on a cold CPU.
        body = {"model": model, "prompt": [1, 2, 3], "max_tokens": 2, "temperature": temperature, "logprobs": 1}
        try:
            await wire.post("/v1/completions", body)
        except ProviderError as error:
            if error.failure is not FailureClass.CALLER:  # a model that completes nothing needs no warming up
                raise


async def _cancelled(task: asyncio.Future[Any]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
