"""One server and its life: idle, starting, ready, stopping, and again. Equal settings mean the same `VllmServer`.

It starts at the first request (or by `start`), in a thread of its own, so that no request, event loop or cancelled
caller owns the start. It stops when the last lease on it is released. A server that died is started again by the next
request, with the weights and adapters it had; one that keeps dying is not.

A `VllmServer` belongs to no event loop. Invariant: code inside `asked()` talks to a server that answered its
health check, and the weights do not change meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from concertino import FailureClass, ProviderError
from concertino.core.logs import logger_of
from concertino.executor import awaitable

from concertino_vllm.errors import VllmServerError
from concertino_vllm.settings import VllmSettings

from .client import VllmClient
from .end_causes import explain_end, quote, read_end
from .gate import RequestGate
from .metrics import ServerMetrics, read_metrics
from .process import VllmProcess
from .startup import Startup, address_of, not_started
from .state import ServedState, ServerAddress, ServerHealth, StartProgress, State

logger = logger_of("vllm")

ENDS, ENDS_WITHIN = 3, 600.0
"""A server that ended unasked so often within so many seconds is not started again."""
FAILED_FOR = 30.0
"""Seconds for which a failed start is answered with the same error, instead of another start."""
_REFUSALS = frozenset({FailureClass.CALLER, FailureClass.AUTH, FailureClass.THROTTLED})


class VllmServer:
    """One server of this process and its life; `server_of` gives the one of some settings."""

    def __init__(self, settings: VllmSettings) -> None:
        self.settings = settings
        self.gate = RequestGate()
        self.served = ServedState()
        self.using: Counter[str] = Counter()
        self.listeners: list[Callable[[StartProgress], None]] = []
        self._reset()

    def _reset(self) -> None:
        # Reentrant: a callback on a future that is done already runs at once, inside the lock.
        self._lock = threading.RLock()
        self._state: State = "idle"
        self._starting: Future[ServerAddress] | None = None
        self._process: VllmProcess | None = None
        self._failed: tuple[float, VllmServerError] | None = None
        self._times: deque[float] = deque(maxlen=ENDS)
        self._unwanted = False
        self._leases = 0
        self._last_used = time.monotonic()

    # -- being asked -------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def asked(self) -> AsyncIterator[ServerAddress]:
        """Around each request: waits until the server is ready and no weights are being changed.

        Raises:
            VllmServerError: it could not be started, or it ended meanwhile.
        """
        async with self.gate.shared():
            self._refuse_unknown()
            endpoint = await self.ready()
            # A start may have lost weights that were sent to the process before.
            self._refuse_unknown()
            self._last_used = time.monotonic()
            try:
                yield endpoint
            except ProviderError as error:
                raise await self.explained(error) from error
            finally:
                self._last_used = time.monotonic()
                if (process := self._process) is not None:
                    process.shorten_log()

    def _refuse_unknown(self) -> None:
        if self.served.broken:
            raise VllmServerError(self.served.broken)

    def name_of(self, adapter: str, endpoint: ServerAddress) -> tuple[str, int]:
        """The name that the server knows an adapter by (the model, for ""), and its version."""
        if not adapter:
            return endpoint.model, self.served.version
        name = self.served.current.get(adapter, adapter)
        return name, self.served.adapters[name][1] if name in self.served.adapters else 0

    @contextlib.contextmanager
    def in_use(self, name: str) -> Iterator[None]:
        """Around a request to a served name: an adapter is not unloaded meanwhile."""
        with self._lock:
            self.using[name] += 1
        try:
            yield
        finally:
            with self._lock:
                self.using[name] -= 1

    async def ready(self) -> ServerAddress:
        """Where it is; started if it is not.

        Raises:
            VllmServerError: it could not be started.
        """
        with self._lock:
            starting = self._start_if_needed()
        if starting.done() and starting.exception() is None:
            return starting.result()
        try:
            return await asyncio.wrap_future(starting)
        except VllmServerError as error:  # each who waits raises one of its own
            raise VllmServerError(str(error), log=error.log, failure=error.failure) from error.__cause__

    async def start(self, on_progress: Callable[[StartProgress], None] | None = None) -> ServerAddress:
        """Start the server; `on_progress` is called about once a second, from another thread."""
        if on_progress is None:
            return await self.ready()
        self.listeners.append(on_progress)
        try:
            return await self.ready()
        finally:
            self.listeners.remove(on_progress)

    async def explained(self, error: ProviderError) -> ProviderError:
        """The error of a request, with the server's end as its reason if it has ended or is ending."""
        process = self._process
        refused = error.status is not None and error.status < 500
        if process is None or refused or error.failure in _REFUSALS or isinstance(error, VllmServerError):
            return error
        if not await self._ends(process, broke=error.status is None):
            return error
        code = process.exited.result() if process.exited.done() else None
        log = str(process.log)
        why = explain_end(code, read_end(log))
        return VllmServerError(f"vLLM ended while it answered: {why}{quote(log)}", log=log, failure=error.failure)

    async def _ends(self, process: VllmProcess, *, broke: bool) -> bool:
        """Whether a server that failed to answer has ended. One whose engine is dead is given a moment, and ended.

        Args:
            broke: the connection broke, which may happen a moment before the system reports the end.
        """
        if await _within(1.0 if broke else 0.0, process.exited):
            return True
        with contextlib.suppress(ProviderError):
            async with VllmClient(address_of(process, self.settings), self.settings.key()) as wire:
                await wire.get("/health", seconds=5)
                return False
        if not await _within(5.0, process.exited):
            with self._lock:
                if process is self._process and self._state == "ready":
                    self._count_end(process)
                    self.stop(failed=True)
        return True

    async def health(self) -> ServerHealth:
        """How it is, without starting it."""
        process, state = self._process, self._state
        starting = self._starting
        if state != "ready" or starting is None or not starting.done():
            message = str(self._failed[1]) if self._failed else ""
            return ServerHealth(False, state, log=str(process.log) if process else "", message=message)
        endpoint = starting.result()
        pid = process.started.result() if process else 0
        log = str(process.log) if process else ""
        message = self.served.broken
        try:
            async with VllmClient(endpoint.url, self.settings.key()) as wire:
                await wire.get("/health", seconds=10)
        except ProviderError as error:
            message = str(await self.explained(error))
        return ServerHealth(not message, state, endpoint.url, pid, log, message)

    async def metrics(self) -> ServerMetrics:
        """Its counters, now.

        Raises:
            ProviderError: it does not answer, or is not vLLM.
        """
        endpoint = await self.ready()
        # vLLM asks for no key here.
        async with VllmClient(endpoint.url) as wire:
            try:
                return read_metrics(str(await wire.get("/metrics")))
            except ValueError as error:
                raise ProviderError(f"{endpoint.url}/metrics: {error}", failure=FailureClass.CALLER) from error

    # -- starting ----------------------------------------------------------------------------------------------

    def _start_if_needed(self) -> Future[ServerAddress]:
        if self._state in ("starting", "ready") and self._starting is not None:
            return self._starting
        starting: Future[ServerAddress] = Future()
        if self._failed is not None and time.monotonic() - self._failed[0] < FAILED_FOR:
            starting.set_exception(self._failed[1])
            return starting
        self._unwanted = False
        self._failed = None
        self._state, self._starting = "starting", starting
        # A running future cannot be cancelled, so a cancelled request does not cancel the start for everyone.
        starting.set_running_or_notify_cancel()
        threading.Thread(target=self._bring_up, args=(starting,), name="concertino-vllm-start", daemon=True).start()
        return starting

    def _bring_up(self, starting: Future[ServerAddress]) -> None:
        """The thread of a start."""
        try:
            endpoint = asyncio.run(self._start())
        except BaseException as error:
            failed = error if isinstance(error, VllmServerError) else not_started(error)
            with self._lock:
                self._state = "idle"
                # Only what would come again is remembered; other failures may pass.
                if failed.failure is FailureClass.CALLER and not self._unwanted:
                    self._failed = (time.monotonic(), failed)
            starting.set_exception(failed)
            return
        with self._lock:
            self._state = "ready"
            self._last_used = time.monotonic()
            if self._process is not None:
                self._process.note_shared_memory()
                self._process.exited.add_done_callback(partial(self._ended, self._process))
        if self.settings.idle_seconds is not None and self._process is not None:
            self._look_for_idleness(self._process, self.settings.idle_seconds)
        starting.set_result(endpoint)

    async def _start(self) -> ServerAddress:
        if self._process is not None:
            await awaitable(self._process.ended)  # its memory has to be free
        return await Startup(self.settings, self.served, self._take, self._tell, lambda: self._unwanted).run()

    def _take(self, process: VllmProcess) -> None:
        """The process of a start that is under way."""
        with self._lock:
            self._process = process
            if self.served.states is not None:
                process.remove_if_orphaned(self.served.states)
            if self._unwanted:
                process.stop()

    def _tell(self, progress: StartProgress) -> None:
        for listener in list(self.listeners):
            try:
                listener(progress)
            except Exception:
                logger.exception("a listener to the start of vLLM failed; the start continues")

    # -- ending ------------------------------------------------------------------------------------------------

    def _ended(self, process: VllmProcess, _: object) -> None:
        """It ended after it was ready, unasked or because it was told to."""
        with self._lock:
            if process is not self._process or self._state != "ready":
                return
            self._state = "idle"
            self._count_end(process)

    def _count_end(self, process: VllmProcess) -> None:
        """It ended unasked, or had to be ended: after too many such ends it is not started again."""
        log, now = str(process.log), time.monotonic()
        why = explain_end(process.exited.result() if process.exited.done() else None, read_end(log))
        self._times.append(now)
        if len(self._times) == ENDS and now - self._times[0] < ENDS_WITHIN:
            often = f"vLLM ended {ENDS} times within {ENDS_WITHIN / 60:g} minutes and is not started again for now"
            self._failed = (now, VllmServerError(f"{often}: {why}{quote(log)}", log=log))
        logger.error("vLLM with %s ended: %s (log %s)", self.settings.model, why, log)

    def stop(self, *, failed: bool = False) -> Future[int]:
        """Ask it to end; the future has its exit code when nothing of it is left. `failed` keeps the log."""
        with self._lock:
            process = self._process
            self._unwanted = True
            if process is None:
                nothing: Future[int] = Future()
                nothing.set_result(0)
                return nothing
            if self._state == "ready":
                self._state = "stopping"
                process.ended.add_done_callback(lambda _: self._stopped(process))
            process.stop(failed=failed)
            return process.ended

    def _stopped(self, process: VllmProcess) -> None:
        with self._lock:
            if self._state == "stopping" and process is self._process:
                self._state = "idle"

    def attach_again(self) -> None:
        """Look at the server of somebody else as at a new one from the next request on: it was restarted."""
        with self._lock:
            if self.settings.attach and self._state == "ready":
                self._state = "idle"

    async def stopped(self) -> None:
        """Stop it, and wait until nothing of it is left."""
        self.stop()
        await self.settled()

    async def settled(self) -> None:
        """If it was told to end, wait until nothing of it is left."""
        starting, state = self._starting, self._state
        if self._unwanted and state == "starting" and starting is not None:
            with contextlib.suppress(VllmServerError):
                await awaitable(starting)
        process = self._process
        if self._unwanted and process is not None:
            await awaitable(process.ended)

    def drop_changes(self) -> None:
        """Forget the weights and adapters that it was given; the next start is as it was declared."""
        served, self.served = self.served, ServedState()
        served.discard()

    def new_state(self) -> Path:
        """An empty folder for weights that are only needed here; removed when the server is not needed any more."""
        folder = self.served.new_folder()
        if self._process is not None:
            self._process.remove_if_orphaned(folder.parent)
        return folder

    def _look_for_idleness(self, process: VllmProcess, limit: float) -> None:
        with self._lock:
            if process is not self._process or self._state != "ready":
                return
            idle = time.monotonic() - self._last_used
            if not self.gate.busy and idle >= limit:
                logger.info("vLLM with %s had no request for %g s and is stopped", self.settings.model, limit)
                self.stop()
                return
        seconds = limit if self.gate.busy else max(0.05, limit - idle)
        timer = threading.Timer(seconds, self._look_for_idleness, (process, limit))
        timer.daemon = True
        timer.start()

    def forget(self) -> None:
        """In a forked child: what runs belongs to the parent, and its threads are not here."""
        # The models of the child are copies that still hold their leases.
        leases = self._leases
        self.gate = RequestGate()
        self.using.clear()
        self._reset()
        self._leases = leases

    # -- leases ------------------------------------------------------------------------------------------------

    def lease(self) -> ServerLease:
        """Say that it is needed."""
        with self._lock:
            self._leases += 1
        return ServerLease(self)

    def _release(self) -> None:
        with self._lock:
            self._leases -= 1
            if self._leases > 0 or self.settings.keep or self.settings.attach:
                return
            self.stop()
            self.drop_changes()


class ServerLease:
    """The need for a server, of one model or policy server. Released at the latest when it is forgotten."""

    def __init__(self, server: VllmServer) -> None:
        self.server = server
        self._end = weakref.finalize(self, VllmServer._release, server)
        # When this process ends, the guardian stops the server.
        self._end.atexit = False

    def release(self) -> None:
        """Give the server up; without another lease it is stopped."""
        self._end()

    async def released(self) -> None:
        """Release it; if that ends the server, wait until nothing of it is left."""
        self.release()
        await self.server.settled()


async def _within(seconds: float, future: Future[Any]) -> bool:
    """Whether a future is done, or will be in that time."""
    if not future.done() and seconds:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(awaitable(future), seconds)
    return future.done()
