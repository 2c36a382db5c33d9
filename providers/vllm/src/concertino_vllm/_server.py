"""One server and its life: idle, starting, ready, stopping, and again. All who want equal settings share one `Server`.

It starts at the first request (or by `start`), in a thread of its own, so that no request, event loop or cancelled
caller owns the start. It stops when the last lease on it is released. A server that died is started again by the next
request, with the weights and adapters it had; one that keeps dying is not.

A `Server` belongs to no event loop. Invariant: whoever is inside `asked()` talks to a server that answered its health
check, and the weights do not change meanwhile.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from concertino import ConcertinoError, FailureClass, ProviderError

from ._causes import explain_end, last_line, quote, read_end
from ._errors import ServerError
from ._executable import find_executable
from ._gate import Gate
from ._metrics import Metrics, read_metrics
from ._process import Order, PortTaken, ServerProcess
from ._settings import ServerSettings
from ._wire import Wire

logger = logging.getLogger("concertino.vllm")

State = Literal["idle", "starting", "ready", "stopping"]

PORTS = 4
"""How many free ports are tried."""
ENDS, ENDS_WITHIN = 3, 600.0
"""A server that ended by itself so often within so many seconds is not started again."""
FAILED_FOR = 30.0
"""Seconds for which a failed start is answered with the same error, instead of another start."""
_REFUSALS = frozenset({FailureClass.CALLER, FailureClass.AUTH, FailureClass.THROTTLED})
_LONGEST_SCRATCH = 60
"""Characters: names of sockets are put behind it, and the system allows 107 for both."""


@dataclass(frozen=True)
class Progress:
    """How far a start has come.

    Attributes:
        model: what is being served.
        seconds: since the start.
        limit: seconds it may take.
        line: the last line of the log.
    """

    model: str
    seconds: float
    limit: float
    line: str

    def __str__(self) -> str:
        return (
            f"starting vLLM with {self.model}: {self.seconds:.0f} of {self.limit:.0f} s; {self.line or 'no output yet'}"
        )


@dataclass(frozen=True)
class Health:
    """How a server is.

    Attributes:
        ok: it answers.
        state: idle, starting, ready or stopping.
        url: its address, "" unless it is ready.
        pid: its process, 0 if there is none or it is somebody else's.
        log: its log, "" likewise.
        message: what is wrong, "" if nothing is.
    """

    ok: bool
    state: State
    url: str = ""
    pid: int = 0
    log: str = ""
    message: str = ""


class Endpoint(NamedTuple):
    """A server that is ready: its address without `/v1`, its name for the model, and what that was loaded from."""

    url: str
    model: str
    root: str = ""


@dataclass
class Served:
    """What the server was given since it started; a new start gives it again.

    Attributes:
        version: of the weights.
        weights: the folder of the weights; None for those it starts with.
        adapters: folder and version of adapters loaded later, by the name that the server knows.
        current: the newest of these names, by the adapter's plain name.
        broken: why nothing may answer, "" if all is well.
        states: the folder of weights that were written for it, if there are any.
    """

    version: int = 0
    weights: Path | None = None
    adapters: dict[str, tuple[Path, int]] = field(default_factory=dict)
    current: dict[str, str] = field(default_factory=dict)
    broken: str = ""
    states: Path | None = None


class Server:
    """See the module. Obtained by `server_of`."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.gate = Gate()
        self.served = Served()
        self.using: Counter[str] = Counter()
        self.listeners: list[Callable[[Progress], None]] = []
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._state: State = "idle"
        self._starting: Future[Endpoint] | None = None
        self._process: ServerProcess | None = None
        self._failed: tuple[float, ServerError] | None = None
        self._times: deque[float] = deque(maxlen=ENDS)
        self._unwanted = False
        self._leases = 0
        self._last_used = time.monotonic()

    # -- being asked -------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def asked(self) -> AsyncIterator[Endpoint]:
        """Around each request: waits until the server is ready and no weights are being changed.

        Raises:
            ServerError: it could not be started, or it ended meanwhile.
        """
        async with self.gate.shared():
            if self.served.broken:
                raise ServerError(self.served.broken)
            endpoint = await self.ready()
            self._last_used = time.monotonic()
            try:
                yield endpoint
            except ProviderError as error:
                raise await self.explained(error) from error
            finally:
                self._last_used = time.monotonic()

    def name_of(self, adapter: str, endpoint: Endpoint) -> tuple[str, int]:
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

    async def ready(self) -> Endpoint:
        """Where it is; started if it is not.

        Raises:
            ServerError: it could not be started.
        """
        with self._lock:
            starting = self._start_if_needed()
        if starting.done() and starting.exception() is None:
            return starting.result()
        try:
            return await asyncio.wrap_future(starting)
        except ServerError as error:  # each who waits raises one of its own
            raise ServerError(str(error), log=error.log, failure=error.failure) from error.__cause__

    async def start(self, on_progress: Callable[[Progress], None] | None = None) -> Endpoint:
        """The same, telling how far it has come about once a second; from another thread."""
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
        told = error.status is not None and error.status < 500
        if process is None or told or error.failure in _REFUSALS or isinstance(error, ServerError):
            return error
        if not await self._ends(process, broke=error.status is None):
            return error
        code = process.exited.result() if process.exited.done() else None
        log = str(process.order.log)
        why = explain_end(code, read_end(log))
        return ServerError(f"vLLM ended while it answered: {why}{quote(log)}", log=log, failure=error.failure)

    async def _ends(self, process: ServerProcess, *, broke: bool) -> bool:
        """Whether a server that failed to answer has ended. One whose engine is dead is given a moment, and ended.

        Args:
            broke: the connection broke, which may happen a moment before the system reports the end.
        """
        if await _within(1.0 if broke else 0.0, process.exited):
            return True
        with contextlib.suppress(ProviderError):
            async with Wire(self._url(process), self.settings.key()) as wire:
                await wire.get("/health", seconds=5)
                return False
        if not await _within(5.0, process.exited):
            with self._lock:
                if process is self._process and self._state == "ready":
                    self._count_end(process)
                    self.stop(failed=True)
        return True

    async def health(self) -> Health:
        """How it is, without starting it."""
        process, state = self._process, self._state
        starting = self._starting
        if state != "ready" or starting is None or not starting.done():
            message = str(self._failed[1]) if self._failed else ""
            return Health(False, state, log=str(process.order.log) if process else "", message=message)
        endpoint = starting.result()
        pid = process.started.result()[0] if process else 0
        log = str(process.order.log) if process else ""
        message = self.served.broken
        try:
            async with Wire(endpoint.url, self.settings.key()) as wire:
                await wire.get("/health", seconds=10)
        except ProviderError as error:
            message = str(await self.explained(error))
        return Health(not message, state, endpoint.url, pid, log, message)

    async def metrics(self) -> Metrics:
        """Its counters, now.

        Raises:
            ProviderError: it does not answer, or is no vLLM.
        """
        endpoint = await self.ready()
        async with Wire(endpoint.url) as wire:
            try:
                return read_metrics(str(await wire.get("/metrics")))
            except ValueError as error:
                raise ProviderError(f"{endpoint.url}/metrics: {error}", failure=FailureClass.CALLER) from error

    # -- starting ----------------------------------------------------------------------------------------------

    def _start_if_needed(self) -> Future[Endpoint]:
        if self._state in ("starting", "ready") and self._starting is not None:
            return self._starting
        starting: Future[Endpoint] = Future()
        if self._failed is not None and time.monotonic() - self._failed[0] < FAILED_FOR:
            starting.set_exception(self._failed[1])
            return starting
        self._unwanted = False
        self._failed = None
        self._state, self._starting = "starting", starting
        starting.set_running_or_notify_cancel()
        threading.Thread(target=self._bring_up, args=(starting,), name="concertino-vllm-start", daemon=True).start()
        return starting

    def _bring_up(self, starting: Future[Endpoint]) -> None:
        """The thread of a start."""
        try:
            endpoint = asyncio.run(self._attach() if self.settings.attach else self._start())
        except BaseException as error:
            failed = error if isinstance(error, ServerError) else _not_started(error)
            with self._lock:
                self._state = "idle"
                if failed.failure is FailureClass.CALLER and not self._unwanted:
                    self._failed = (time.monotonic(), failed)
            starting.set_exception(failed)
            return
        with self._lock:
            self._state = "ready"
            self._last_used = time.monotonic()
            if self._process is not None:
                self._process.take_stock()
                self._process.exited.add_done_callback(partial(self._ended, self._process))
        if self.settings.idle_seconds is not None and self._process is not None:
            self._look_for_idleness(self._process, self.settings.idle_seconds)
        starting.set_result(endpoint)

    async def _attach(self) -> Endpoint:
        try:
            async with Wire(self.settings.base, self.settings.key()) as wire:
                await wire.get("/health", seconds=10)
                model, root = await _base_model(wire)
                return Endpoint(self.settings.base, self.settings.model or model, root)
        except ProviderError as error:
            raise ServerError(
                f"attach = {self.settings.attach!r}: no vLLM answers there; start it, or correct the address: {error}",
                failure=FailureClass.NOT_EXECUTED,
            ) from error

    async def _start(self) -> Endpoint:
        if self._process is not None:
            await asyncio.wrap_future(_followed(self._process.gone))  # its memory has to be free
        for attempt in range(1, PORTS + 1):
            process = self._launch()
            with self._lock:
                self._process = process
                if self.served.states is not None:
                    process.own(self.served.states)
                if self._unwanted:
                    process.stop()
            try:
                pid, port = await asyncio.wrap_future(_followed(process.started))
                logger.info(
                    "started vLLM with %s (pid %d, port %d, log %s)", self.settings.model, pid, port, process.order.log
                )
                return await self._until_ready(process)
            except PortTaken:
                await asyncio.wrap_future(_followed(process.gone))
                if process.order.temporary:
                    shutil.rmtree(process.order.log.parent, ignore_errors=True)
                if self.settings.port:
                    raise ServerError(
                        f"port = {self.settings.port}: another program has it; end that, or use port = 0 for a free one"
                    ) from None
                if attempt == PORTS:
                    raise ServerError(f"{PORTS} free ports in a row were taken away before vLLM had them") from None
            except BaseException:
                process.stop(failed=True)
                await asyncio.wrap_future(_followed(process.gone))
                raise
        raise AssertionError

    def _launch(self) -> ServerProcess:
        settings = self.settings
        executable = find_executable(settings.executable)
        if settings.folder is not None and not settings.folder.exists():
            raise ServerError(f"model = {settings.model!r}: there is no {settings.folder}; correct the folder")
        for name, folder in settings.adapters:
            if not (Path(folder).expanduser() / "adapter_config.json").is_file():
                raise ServerError(
                    f"adapters: {name} = {folder!r} holds no adapter_config.json; expected an adapter's folder"
                )
        home = Path(tempfile.mkdtemp(prefix="concertino-vllm-", dir=_short_folder()))
        log = Path(settings.log).expanduser().absolute() if settings.log else home / "server.log"
        scratch = home if settings.log else home / "tmp"
        scratch.mkdir(exist_ok=True)
        try:
            env = settings.environment(executable, scratch)
            log.parent.mkdir(parents=True, exist_ok=True)
            order = Order(
                settings.command(executable),
                env,
                settings.host,
                settings.port,
                log,
                scratch,
                not settings.log,
                settings.grace_seconds,
            )
            return ServerProcess(order)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise

    async def _until_ready(self, process: ServerProcess) -> Endpoint:
        """Poll until it answers; then warm it up and give it what it had."""
        settings, log = self.settings, process.order.log
        url = self._url(process)
        began, due = time.monotonic(), 10.0
        exited = asyncio.wrap_future(_followed(process.exited))
        async with Wire(url, settings.key()) as wire:
            work = asyncio.create_task(self._prepare(wire))
            try:
                while not work.done():
                    await asyncio.wait([work, exited], timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                    seconds = time.monotonic() - began
                    if work.done() and work.exception() is not None:
                        # The connection may break a moment before the system reports the end.
                        await asyncio.wait([exited], timeout=1.0)
                    if exited.done() and not (work.done() and work.exception() is None):
                        raise self._early_end(exited.result(), log)
                    if not work.done() and seconds >= settings.startup_seconds:
                        raise ServerError(
                            f"vLLM was not ready after {settings.startup_seconds:g} s; if it was only slow, raise "
                            f"startup_seconds{quote(log)}",
                            log=str(log),
                        )
                    if not work.done():
                        self._tell(Progress(settings.model, seconds, settings.startup_seconds, last_line(log)), due)
                        due += 10.0 if seconds >= due else 0.0
                model, root = work.result()
            except ProviderError as error:
                if isinstance(error, ServerError):
                    raise
                raise ServerError(
                    f"vLLM started and then refused what it was asked: {error}{quote(log)}", log=str(log)
                ) from error
            finally:
                exited.cancel()
                await _cancelled(work)
        logger.info("vLLM with %s is ready at %s after %.0f s", settings.model, url, time.monotonic() - began)
        return Endpoint(url, model, root)

    def _url(self, process: ServerProcess) -> str:
        """Where a started process listens, as seen from here."""
        _, port = process.started.result()
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.settings.host, self.settings.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def _prepare(self, wire: Wire) -> tuple[str, str]:
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

    async def _give_back(self, wire: Wire) -> None:
        """After an end: the weights and adapters it had."""
        served = self.served
        if served.weights is not None:
            await load_folder(wire, served.weights, extended=self.settings.extended)
            await wire.post("/reset_prefix_cache")
            await wire.post("/update_weight_version", {"new_version": str(served.version)})
        for name, (folder, _) in served.adapters.items():
            await wire.post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)})

    def _early_end(self, code: int, log: Path) -> BaseException:
        lines = read_end(log)
        if self._unwanted:
            return ServerError("vLLM was stopped while it was starting", failure=FailureClass.NOT_EXECUTED)
        if not self.settings.port and any("Address already in use" in line for line in lines):
            return PortTaken()
        return ServerError(
            f"vLLM did not start: {explain_end(code, lines)}{quote(log)}", log=str(log), failure=FailureClass.CALLER
        )

    def _tell(self, progress: Progress, due: float) -> None:
        if progress.seconds >= due:
            logger.info("%s", progress)
        for listener in list(self.listeners):
            try:
                listener(progress)
            except Exception:
                logger.exception("a listener to the start of vLLM failed; the start goes on")

    # -- ending ------------------------------------------------------------------------------------------------

    def _ended(self, process: ServerProcess, _: object) -> None:
        """It ended after it was ready, by itself or because it was told to."""
        with self._lock:
            if process is not self._process or self._state != "ready":
                return
            self._state = "idle"
            self._count_end(process)

    def _count_end(self, process: ServerProcess) -> None:
        """It ended by itself, or had to be ended: after too many such ends it is not started again."""
        log, now = str(process.order.log), time.monotonic()
        why = explain_end(process.exited.result() if process.exited.done() else None, read_end(log))
        self._times.append(now)
        if len(self._times) == ENDS and now - self._times[0] < ENDS_WITHIN:
            often = f"vLLM ended {ENDS} times within {ENDS_WITHIN / 60:g} minutes and is not started again for now"
            self._failed = (now, ServerError(f"{often}: {why}{quote(log)}", log=log))
        logger.error("vLLM with %s ended: %s (log %s)", self.settings.model, why, log)

    def stop(self, *, failed: bool = False) -> Future[None]:
        """Ask it to end; the future is set when nothing of it is left. `failed` keeps the log."""
        with self._lock:
            process = self._process
            self._unwanted = True
            if process is None:
                nothing: Future[None] = Future()
                nothing.set_result(None)
                return nothing
            if self._state == "ready":
                self._state = "stopping"
                process.gone.add_done_callback(lambda _: self._stopped(process))
            process.stop(failed=failed)
            return process.gone

    def _stopped(self, process: ServerProcess) -> None:
        with self._lock:
            if self._state == "stopping" and process is self._process:
                self._state = "idle"

    async def stopped(self) -> None:
        """Stop it, and wait until nothing of it is left."""
        self.stop()
        await self.settled()

    async def settled(self) -> None:
        """If it was told to end, wait until nothing of it is left."""
        starting, state = self._starting, self._state
        if self._unwanted and state == "starting" and starting is not None:
            with contextlib.suppress(ServerError):
                await asyncio.wrap_future(_followed(starting))
        process = self._process
        if self._unwanted and process is not None:
            await asyncio.wrap_future(_followed(process.gone))

    def drop_changes(self) -> None:
        """What it was given since it started belongs to those who used it: the next start is as it was declared."""
        states, self.served = self.served.states, Served()
        if states is not None:
            shutil.rmtree(states, ignore_errors=True)
            _states.discard(states)

    def new_state(self) -> Path:
        """An empty folder for weights that are only needed here; removed when nobody needs the server."""
        if self.served.states is None:
            self.served.states = Path(tempfile.mkdtemp(prefix="concertino-weights-"))
            _states.add(self.served.states)
            if self._process is not None:
                self._process.own(self.served.states)
        return Path(tempfile.mkdtemp(dir=self.served.states))

    def _look_for_idleness(self, process: ServerProcess, limit: float) -> None:
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
        leases = self._leases
        self.gate = Gate()
        self.using.clear()
        self._reset()
        self._leases = leases

    # -- leases ------------------------------------------------------------------------------------------------

    def lease(self) -> Lease:
        """Say that it is needed."""
        with self._lock:
            self._leases += 1
        return Lease(self)

    def _release(self) -> None:
        with self._lock:
            self._leases -= 1
            if self._leases > 0 or self.settings.keep or self.settings.attach:
                return
            self.stop()
            self.drop_changes()


class Lease:
    """The need for a server, of one model or policy server. Released at the latest when it is forgotten."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._end = weakref.finalize(self, Server._release, server)
        self._end.atexit = False

    def release(self) -> None:
        """It is not needed any more, as far as this lease goes."""
        self._end()

    async def released(self) -> None:
        """The same; if that ends the server, wait until nothing of it is left."""
        self.release()
        await self.server.settled()


class Registry:
    """All servers of this process, one for equal settings."""

    def __init__(self) -> None:
        self._servers: dict[ServerSettings, Server] = {}
        self._lock = threading.Lock()

    def get(self, settings: ServerSettings) -> Server:
        """The server of these settings."""
        with self._lock:
            if settings not in self._servers:
                self._servers[settings] = Server(settings)
            return self._servers[settings]

    def forget(self) -> None:
        """In a forked child: the servers that run, and their files, are the parent's; the child starts its own."""
        _states.clear()
        self._lock = threading.Lock()
        for server in self._servers.values():
            server.forget()


def _not_started(error: BaseException) -> ServerError:
    """The error of a start that concertino itself could not make."""
    said = str(error) if isinstance(error, ConcertinoError) else repr(error)
    failed = ServerError(f"vLLM could not be started: {said}")
    failed.__cause__ = error
    return failed


_states: set[Path] = set()


@atexit.register
def _remove_states() -> None:
    for folder in _states:
        shutil.rmtree(folder, ignore_errors=True)


_registry = Registry()
server_of = _registry.get
os.register_at_fork(after_in_child=_registry.forget)


async def load_folder(wire: Wire, folder: Path, *, extended: bool) -> None:
    """Have the workers load a folder of weights. The prefix cache is not touched.

    Raises:
        ProviderError: they did not, or layers were left as they were.
    """
    if not extended:
        await wire.post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}})
        return
    body = {"method": "concertino_load_weights", "kwargs": {"folder": str(folder)}}
    for result in (await wire.post("/collective_rpc", body))["results"]:
        if "error" in result:
            raise ProviderError(f"a worker could not load {folder}: {result['error']}")
        if result["missed"]:
            raise ProviderError(f"{folder} brings nothing for these layers: {', '.join(sorted(set(result['missed'])))}")


async def _base_model(wire: Wire) -> tuple[str, str]:
    """The name that a server serves its model under, adapters left out, and what it was loaded from."""
    cards = (await wire.get("/v1/models"))["data"]
    base = next((card for card in cards if not card.get("parent")), None)
    if base is None:
        raise ProviderError(f"{wire.base}/v1/models lists no model, only {len(cards)} adapters")
    return str(base["id"]), str(base.get("root") or "")


async def _warm_up(wire: Wire, model: str) -> None:
    """Ask for a few tokens, greedily and sampled: the first requests compile code, which takes up to half a minute."""
    for temperature in (0, 1):
        body = {"model": model, "prompt": [1, 2, 3], "max_tokens": 2, "temperature": temperature, "logprobs": 1}
        try:
            await wire.post("/v1/completions", body)
        except ProviderError as error:
            if error.failure is not FailureClass.CALLER:  # a model that completes nothing needs no warming up
                raise


async def _within(seconds: float, future: Future[Any]) -> bool:
    """Whether a future is done, or will be in that time."""
    if not future.done() and seconds:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(_followed(future)), seconds)
    return future.done()


async def _cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task


def _followed(future: Future[Any]) -> Future[Any]:
    """A future that ends as another does, and may be cancelled without it."""
    follower: Future[Any] = Future()

    def follow(done: Future[Any]) -> None:
        if follower.set_running_or_notify_cancel():
            error = done.exception()
            follower.set_exception(error) if error is not None else follower.set_result(done.result())

    future.add_done_callback(follow)
    return follower


def _short_folder() -> str | None:
    """Where the scratch folder goes: the usual place, unless names of sockets would not fit behind it."""
    usual = tempfile.gettempdir()
    short = "/tmp"
    return short if len(usual) + 30 > _LONGEST_SCRATCH and os.access(short, os.W_OK) else None
