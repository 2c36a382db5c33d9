"""The runs of this server: begun, joined, followed, cancelled, suspended and resumed.

Invariants: a request is on disk before its run begins. Of two requests with the same digest and owner the second joins
the run of the first, whatever has become of it meanwhile. Only who began a run sees it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

from concertino import Budget, Executor, Orchestrator, RunHandle, Runs
from concertino.core.errors import ConcertinoError, TraceError
from concertino.core.logs import logger_of
from concertino.runs.orchestrator import new_run_id
from concertino.traces.journal_lock import is_being_written
from concertino.traces.records import first_record
from concertino.traces.sink import SUFFIX
from concertino.traces.store import REQUEST

from .api_error import ApiError
from .key_ring import Held, KeyRing
from .one_call import OneCall, approver_of
from .request_reader import Conversation
from .request_record import RequestRecord, record_beside
from .run_moments import LiveRun, Moment, moments_on_disk
from .serve_settings import Preset, ServeSettings

HEARTBEAT = 10.0
"""Seconds without news after which a stream sends a sign of life."""
_DIGITS = 16
"""Hexadecimal digits of a digest at the end of the id of its run."""
_MOST_KNOWN = 10_000
_LOOK = 0.2
logger = logger_of("serve")


@dataclass(eq=False)
class ServedRun:
    """A run, for one request.

    Attributes:
        live: it while it is under way here; None if it is not.
    """

    id: str
    trace: Path
    request: RequestRecord
    live: LiveRun | None

    async def follow(self, heartbeat: float = HEARTBEAT) -> AsyncIterator[list[Moment]]:
        """Its moments from the beginning; an empty list where nothing happens for a while."""
        if self.live is not None:
            async for news in self.live.follow(heartbeat):
                yield news
            return
        while True:
            if not is_being_written(self.trace):
                break
            await asyncio.sleep(_LOOK)  # another process runs it
            yield []
        yield moments_on_disk(self.trace)

    async def moments(self) -> list[Moment]:
        """All of them, once it is over."""
        if self.live is not None:
            await self.live.until_over()
            return self.live.moments
        found: list[Moment] = []
        async for news in replace(self, live=None).follow():
            found = news
        return found

    def so_far(self) -> list[Moment]:
        """Those that there are now."""
        return list(self.live.moments) if self.live is not None else moments_on_disk(self.trace)


class RunHub:
    """The runs of a server, on one event loop.

    Attributes:
        counts: how many runs began, by preset, and ended, by why: for the metrics.
        stopping: the server ends; who leaves now cancels nothing.
    """

    def __init__(self, settings: ServeSettings, ring: KeyRing) -> None:
        self.settings = settings
        self.ring = ring
        self.runs = Runs(settings.traces)
        self.executor = Executor()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.usd = 0.0
        self.stopping = False
        self._live: dict[str, tuple[LiveRun, RunHandle]] = {}
        self._resuming: dict[str, asyncio.Lock] = {}
        self._digests = Digests(self.runs.store.folder)

    # -- beginning -------------------------------------------------------------------------------------------------

    async def begin(self, request: RequestRecord, asked: Conversation) -> ServedRun:
        """Begin the run of a request.

        Raises:
            ApiError: there is no room for it, or it cannot be.
        """
        preset = self.settings.presets[request.preset]
        leader = self._leader(preset, request)
        held = self.ring.admit(request.owner, preset)
        run_id = f"{new_run_id()}-{request.digest[:_DIGITS]}"
        trace = self.runs.store.path_for(run_id)
        live = LiveRun(trace, tells_text=request.schema is None)
        self._digests.add(run_id)
        try:
            trace.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            request.write(trace)
            handle = self.runs.start(
                leader,
                asked.question,
                pool=preset.pool,
                history=asked.history or None,
                budget=held.budget,
                run_id=run_id,
                stream_text=request.streams and request.schema is None,
                on_event=live.hear,
            )
        except BaseException as error:
            self.ring.settle(held, 0.0)
            self._forget(run_id, trace)
            if isinstance(error, ConcertinoError):
                raise ApiError(400, str(error), code="invalid_request") from error
            raise
        self.counts["begun", preset.name] += 1
        self._keep(run_id, live, handle, held)
        return ServedRun(run_id, trace, request, live)

    def _forget(self, run_id: str, trace: Path) -> None:
        if not trace.exists():
            record_beside(trace).unlink(missing_ok=True)
            self._digests.forget(run_id)

    def _leader(self, preset: Preset, request: RequestRecord) -> Orchestrator:
        if request.member:
            approve = approver_of(preset.pool, request.member, self.settings.mcp)
            return Orchestrator(preset.model, OneCall(), executor=self.executor, approve=approve)
        instructions = "\n\n".join(filter(None, (preset.instructions, request.instructions)))
        try:
            return Orchestrator(
                preset.model,
                preset.strategy,
                executor=self.executor,
                instructions=instructions or None,
                answer_type=request.schema,
            )
        except ConcertinoError as error:
            raise ApiError(400, str(error), code="invalid_request") from error

    def _keep(self, run_id: str, live: LiveRun, handle: RunHandle, held: Held) -> None:
        self._live[run_id] = live, handle

        def over(task: asyncio.Task[object]) -> None:
            self._live.pop(run_id, None)
            try:
                live.end()
                stop, usd = _end_of(live)
                self.counts["ended", stop] += 1
                self.usd += usd
            except TraceError as error:
                usd = held.usd or 0.0  # what cannot be read has cost all that it might
                logger.error("%s: %s", run_id, error)
            finally:
                self.ring.settle(held, usd)
            if not task.cancelled() and (failure := task.exception()) is not None:
                logger.error("%s failed: %s: %s", run_id, type(failure).__name__, failure)

        handle.task.add_done_callback(over)

    # -- finding and joining ---------------------------------------------------------------------------------------

    def get(self, run_id: str, owner: str) -> ServedRun:
        """A run of a client.

        Raises:
            ApiError: there is none.
        """
        try:
            if Path(run_id).name != run_id or not run_id:
                raise TraceError("no id")
            trace = self.runs.store.path_for(run_id)
            request = RequestRecord.read(trace)
        except (TraceError, OSError, ValueError):
            request = None
        if request is None or request.owner != owner or not trace.is_file():
            raise ApiError(404, f"there is no run {run_id[:80]!r}", code="not_found")
        return self._served(run_id, request)

    def _served(self, run_id: str, request: RequestRecord) -> ServedRun:
        live = self._live.get(run_id)
        return ServedRun(run_id, self.runs.store.path_for(run_id), request, live[0] if live else None)

    async def join(self, request: RequestRecord) -> ServedRun | None:
        """The run that the same request began before, under way again if it was interrupted; None if there is none.

        Raises:
            ApiError: the same idempotency key came with another body.
        """
        run_id = self._digests.find(request.digest)
        if run_id is None:
            return None
        try:
            known = self.get(run_id, request.owner)
        except ApiError:
            return None
        if known.request.digest != request.digest:
            return None
        if known.request.body_digest != request.body_digest:
            raise ApiError(409, "this idempotency key came with another body before; give another key", code="conflict")
        if known.live is None and not _has_begun(known.trace):
            return None  # the server was killed before the first record
        # How the client reads it may differ: a stream was broken, and the whole is asked for.
        asked = replace(known.request, streams=request.streams, usage=request.usage)
        if known.live is None:
            known = await self.resume(known)
        return replace(known, request=asked)

    async def resume(self, run: ServedRun) -> ServedRun:
        """Continue an interrupted run; one that is over, or goes on elsewhere, stays as it is."""
        lock = self._resuming.setdefault(run.id, asyncio.Lock())
        async with lock:
            try:
                if run.id not in self._live and self.runs.get(run.id).state == "interrupted":
                    await self._resume(run)
            except (ConcertinoError, OSError) as error:
                # Its pool was changed, say. What was done stays readable.
                logger.warning("%s cannot be resumed: %s", run.id, error)
            finally:
                self._resuming.pop(run.id, None)
        return self._served(run.id, run.request)

    async def _resume(self, run: ServedRun) -> None:
        preset = self.settings.presets.get(run.request.preset)
        if preset is None:
            raise TraceError(f"the preset {run.request.preset!r} is not served any more")
        request = run.request
        if request.closed:
            request = replace(request, closed=False)
            request.write(run.trace)
        budget = Budget(**first_record(run.trace).get("setup", {}).get("budget", {}))
        live = LiveRun(run.trace, tells_text=request.schema is None)
        leader = self._leader(preset, request)
        handle = await self.runs.resume(
            run.id,
            leader,
            pool=preset.pool,
            stream_text=request.streams and request.schema is None,
            on_event=live.hear,
        )
        self._keep(run.id, live, handle, self.ring.take_back(request.owner, budget))

    # -- ending ----------------------------------------------------------------------------------------------------

    async def cancel(self, run: ServedRun) -> None:
        """Stop a run for its client; no start of the server resumes it."""
        replace(self.get(run.id, run.request.owner).request, closed=True).write(run.trace)
        if run.id in self._live:
            await self._live[run.id][1].cancel()
        elif is_being_written(run.trace):
            await self.runs.cancel(run.id)

    async def left(self, run: ServedRun) -> None:
        """A client does not read a run any more: cancel it if nobody else does and nothing else was set."""
        preset = self.settings.presets.get(run.request.preset)
        if self.stopping or run.request.background or run.live is None or run.live.over or run.live.readers:
            return
        if preset is None or preset.on_disconnect == "cancel":
            await self.cancel(run)

    async def delete(self, run: ServedRun) -> None:
        """Remove a run; one under way is cancelled before."""
        await self.cancel(run)
        self.runs.delete(run.id)
        self._digests.forget(run.id)

    # -- the server's own life -------------------------------------------------------------------------------------

    async def open(self) -> int:
        """Know the runs of the folder, and resume those that were interrupted and that a client may still read.

        Returns:
            How many were resumed.
        """
        resumed = 0
        for path in sorted(self.runs.store.folder.glob(f"*{SUFFIX}{REQUEST}")):
            run_id = path.name.removesuffix(f"{SUFFIX}{REQUEST}")
            trace = self.runs.store.path_for(run_id)
            if not trace.exists() or not (_has_begun(trace) or is_being_written(trace)):
                # The server was killed before the run began, and the client may have asked again: of two runs of one
                # request only the one that began may be found.
                self.runs.store.delete(run_id)
                continue
            try:
                request = RequestRecord.read(trace)
                self._digests.add(run_id)
                info = self.runs.get(run_id)
            except TraceError as error:
                logger.warning("%s", error)
                continue
            if info.state == "interrupted" and request.goes_on:
                resumed += (await self.resume(self._served(run_id, request))).live is not None
            else:
                self.ring.charge(request.owner, float(info.usage.get("usd", 0.0)), trace.stat().st_mtime)
        return resumed

    async def close(self, *, for_good: bool = False) -> None:
        """Suspend what still runs: it goes on at the next start.

        Args:
            for_good: no later start resumes it.
        """
        self.stopping = True
        for run_id in self._live if for_good else ():
            trace = self.runs.store.path_for(run_id)
            replace(RequestRecord.read(trace), closed=True).write(trace)
        handles = [handle for _, handle in self._live.values()]
        await asyncio.gather(*(handle.cancel() for handle in handles), return_exceptions=True)
        with contextlib.suppress(ConcertinoError):
            await self.executor.aclose()

    @property
    def active(self) -> int:
        """Runs under way in this process."""
        return len(self._live)


class Digests:
    """The runs by what was asked: the newest in memory, the others by their names in the folder.

    Args:
        folder: of the traces.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, str] = {}
        self._dropped = False

    def add(self, run_id: str) -> None:
        """Know a run."""
        self._known[run_id[-_DIGITS:]] = run_id
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
            self._dropped = True

    def forget(self, run_id: str) -> None:
        """Know a run no more."""
        self._known.pop(run_id[-_DIGITS:], None)

    def find(self, digest: str) -> str | None:
        """The id of the newest run of a digest."""
        end = digest[:_DIGITS]
        if end in self._known or not self._dropped:
            return self._known.get(end)
        names = sorted(path.name for path in self._folder.glob(f"*-{end}{SUFFIX}"))
        return names[-1].removesuffix(SUFFIX) if names else None


def digest_of(*parts: str | bytes) -> str:
    """What tells whether two requests are the same."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()


def _has_begun(trace: Path) -> bool:
    try:
        first_record(trace)
    except TraceError:
        return False
    return True


def _end_of(live: LiveRun) -> tuple[str, float]:
    for moment in reversed(live.moments):
        if isinstance(moment, dict) and moment["t"] == "end":
            return moment["stop"], float(moment["usage"].get("usd", 0.0))
    return "unfinished", 0.0
