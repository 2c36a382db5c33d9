"""The runs of this server: begun, joined, followed, cancelled, suspended, resumed, and continued by their clients.

Invariants: a request is on disk before its run begins. Of two requests with the same digest and owner the second joins
the run of the first, whatever has become of it meanwhile, and whichever worker has it. Only who began a run sees it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from concertino import Executor, Orchestrator, RunHandle, Runs
from concertino.core.approval import Decision
from concertino.core.errors import ConcertinoError, TraceError
from concertino.core.logs import logger_of
from concertino.runs.orchestrator import new_run_id
from concertino.runs.setup import RESUMABLE
from concertino.traces.journal_lock import is_being_written
from concertino.traces.overview import Overview
from concertino.traces.sink import SUFFIX
from concertino.traces.store import REQUEST

from .api_error import ApiError
from .call_answers import CallAnswers
from .client_tools import pool_with
from .key_ring import Held, KeyRing
from .one_call import OneCall, approver_of
from .request_digests import DIGITS, Digests
from .request_reader import Conversation
from .request_record import RequestRecord, record_beside
from .run_locks import RunLocks, until
from .run_moments import LiveRun, moments_on_disk
from .serve_settings import Preset, ServeSettings
from .served_folder import ServedFolder
from .served_run import ServedRun
from .trace_facts import budget_of, end_of, has_begun, usd_of

_MOST_KNOWN = 10_000
_CANCEL_SECONDS = 30.0
logger = logger_of("serve")


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
        self._folder: ServedFolder | None = None
        self._began_with: dict[str, Preset] = {}
        self.ledger = ring.ledger
        self.locks = RunLocks(ring.ledger)
        self._digests = Digests(self.ledger, self.runs.store.folder)

    def swap(self, settings: ServeSettings) -> None:
        """Serve other presets from now on. Runs keep those that they began with."""
        known = self.settings.presets
        # An equal one stays the same object, with all that an executor has made ready for it.
        presets = {name: known[name] if known.get(name) == new else new for name, new in settings.presets.items()}
        mcp = settings.mcp if self.settings.mcp is not None else None  # the route is there, or it is not
        self.settings = replace(self.settings, presets=presets, files=settings.files, mcp=mcp or self.settings.mcp)

    # -- beginning -------------------------------------------------------------------------------------------------

    async def begin(self, request: RequestRecord, asked: Conversation, preset: Preset | None = None) -> ServedRun:
        """Begin the run of a request.

        Args:
            preset: as it was when the request came; by default as it is now.

        Raises:
            ApiError: there is no room for it, or it cannot be.
        """
        begun = self._begin(request, asked, preset, self._digests.add)
        assert begun is not None
        return begun

    async def join_or_begin(
        self, request: RequestRecord, asked: Conversation, preset: Preset | None = None
    ) -> ServedRun:
        """The run that the same request began before, or a new one.

        Raises:
            ApiError: as `join` and `begin`.
        """
        while True:
            known = self._digests.find(request.digest)
            if (joined := await self.join(request)) is not None:
                return joined
            if asked.blocked is not None:
                raise asked.blocked
            begun = self._begin(request, asked, preset, partial(self._digests.claim, instead_of=known))
            if begun is not None:
                return begun

    def _begin(
        self, request: RequestRecord, asked: Conversation, preset: Preset | None, note: Callable[[str], bool]
    ) -> ServedRun | None:
        """Begin a run, unless another worker has begun one of this request."""
        preset = (preset or self.settings.presets[request.preset]).for_request(request.side)
        leader = self._leader(preset, request)
        run_id = f"{new_run_id()}-{request.digest[:DIGITS]}"
        with self.ledger.turn():  # a worker that finds the run also finds that it is held
            if not note(run_id):
                return None
            held = self.ring.admit(request.owner, preset, run_id)
        trace = self.runs.store.path_for(run_id)
        live = LiveRun(trace, tells_text=request.schema is None)
        try:
            trace.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            request.write(trace, new=True)
            handle = self.runs.start(
                leader,
                asked.question,
                pool=pool_with(preset.pool, request.tools, {}),
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
        self._keep(run_id, live, handle, held, preset)
        return ServedRun(run_id, trace, request, live, self.ledger)

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

    def _keep(self, run_id: str, live: LiveRun, handle: RunHandle, held: Held, preset: Preset) -> None:
        self._live[run_id] = live, handle
        self._began_with[run_id] = preset
        if len(self._began_with) > _MOST_KNOWN:
            del self._began_with[next(iter(self._began_with))]

        def over(task: asyncio.Task[object]) -> None:
            self._live.pop(run_id, None)
            try:
                live.end()
                stop, usd = end_of(live.moments)
                if stop not in RESUMABLE:
                    self._began_with.pop(run_id, None)
                self.counts["ended", stop] += 1
                self.usd += max(0.0, usd - held.paid)
            except TraceError as error:
                usd = held.paid + (held.usd or 0.0)  # what cannot be read has cost all that it might
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
        name, _, number = run_id.partition(".")
        part = int(number) if number.isdecimal() and len(number) < 6 else 0
        try:
            if Path(name).name != name or not name or number not in ("", str(part)):
                raise TraceError("no id")
            trace = self.runs.store.path_for(name)
            request = RequestRecord.read(trace)
        except (TraceError, OSError, ValueError):
            request = None
        if request is None or request.owner != owner or not trace.is_file() or part > len(request.parts):
            raise ApiError(404, f"there is no run {run_id[:80]!r}", code="not_found")
        return self._served(name, request, part)

    def _served(self, run_id: str, first: RequestRecord, part: int = 0) -> ServedRun:
        live = self._live.get(run_id)
        request = first.parts[part - 1] if part else first
        until = first.parts[part].after if part < len(first.parts) else None
        trace = self.runs.store.path_for(run_id)
        return ServedRun(run_id, trace, request, live[0] if live else None, self.ledger, part, until)

    async def join(self, request: RequestRecord) -> ServedRun | None:
        """The run that the same request began before, under way again if it was interrupted; None if there is none.

        Raises:
            ApiError: the same idempotency key came with another body.
        """
        run_id = self._digests.find(request.digest)
        if run_id is None:
            return None
        trace = self.runs.store.path_for(run_id)
        # Otherwise another worker begins it now, or it is to be taken over.
        await until(lambda: run_id in self._live or has_begun(trace) or not self.ledger.is_held(run_id))
        try:
            known = self.get(run_id, request.owner)
        except ApiError:
            return None
        if known.request.digest != request.digest:
            return None
        if known.request.body_digest != request.body_digest:
            raise ApiError(409, "this idempotency key came with another body before; give another key", code="conflict")
        if known.live is None and not has_begun(known.trace):
            return None  # the server was killed before the first record
        # How the client reads it may differ: a stream was broken, and the whole is asked for.
        asked = replace(known.request, streams=request.streams, usage=request.usage)
        if known.live is None and known.until is None:
            known = await self.resume(known)
        return replace(known, request=asked)

    async def resume(self, run: ServedRun) -> ServedRun:
        """Continue an interrupted run; one that is over, or goes on elsewhere, stays as it is."""
        async with self.locks.alone(run.id):
            try:
                first = RequestRecord.read(run.trace)
                if run.id not in self._live and self._is_due(run.id, first):
                    await self._resume(run.id, first)
            except (ConcertinoError, OSError) as error:
                # Its pool was changed, say. What was done stays readable.
                logger.warning("%s cannot be resumed: %s", run.id, error)
        return self._served(run.id, RequestRecord.read(run.trace), run.part)

    def _is_due(self, run_id: str, first: RequestRecord) -> bool:
        """Whether a run continues without anything new from its client."""
        if self.ledger.is_held_elsewhere(run_id):
            return False
        info = self.runs.get(run_id)
        if info.state == "suspended" and first.parts:
            # The server was killed between the client's request and its first record.
            return self._served(run_id, first, len(first.parts)).story().place == first.latest.after
        return info.state == "interrupted"

    async def go_on(self, request: RequestRecord, answers: CallAnswers) -> ServedRun:
        """Continue a suspended run with what its calls waited for, or join the part that the same answers began.

        Raises:
            ApiError: the run is not known, its calls do not wait, or there is no room for it.
        """
        known = self.get(answers.run_id, request.owner)
        async with self.locks.alone(known.id):
            first = RequestRecord.read(known.trace)
            part = _part_of(first, answers)
            if not part:
                first = await self._begin_part(self._served(known.id, first, len(first.parts)), first, request, answers)
                part = len(first.parts)
        served = self._served(known.id, first, part)
        asked = replace(served.request, streams=request.streams, usage=request.usage)
        if served.live is None and served.until is None:
            served = await self.resume(served)
        return replace(served, request=asked)

    async def _begin_part(
        self, now: ServedRun, first: RequestRecord, request: RequestRecord, answers: CallAnswers
    ) -> RequestRecord:
        part = replace(
            request,
            preset=first.preset,
            instructions=first.instructions,
            schema=first.schema,
            tools=first.tools,
            conversation=request.conversation or first.conversation,
            given=answers.given,
            decided=answers.decided,
            after=answers.check(now.story()),
        )
        longer = replace(first, parts=(*first.parts, part), closed=False)
        try:
            await self._resume(now.id, longer, asked=True)
        except (ConcertinoError, OSError) as error:
            first.write(now.trace)
            raise ApiError(409, f"the run cannot go on: {error}", code="conflict") from error
        return longer

    async def _resume(self, run_id: str, first: RequestRecord, *, asked: bool = False) -> None:
        """Let a run go on.

        Args:
            asked: its client asks for it, so it needs room.
        """
        preset = self._began_with.get(run_id)
        if preset is None and (preset := self.settings.presets.get(first.preset)) is None:
            raise TraceError(f"the preset {first.preset!r} is not served any more")
        preset = preset.for_request(first.side)
        trace, latest = self.runs.store.path_for(run_id), first.latest
        budget = budget_of(trace)
        live = LiveRun(trace, tells_text=first.schema is None)
        paid = end_of(live.moments)[1]
        held = (
            self.ring.admit_again(first.owner, budget, paid, run_id)
            if asked
            else self.ring.take_back(first.owner, budget, paid, run_id)
        )
        try:
            replace(first, closed=False).write(trace)
            handle = await self.runs.resume(
                run_id,
                self._leader(preset, first),
                pool=pool_with(preset.pool, first.tools, first.returned),
                decisions=self._decisions(trace, first),
                stream_text=latest.streams and first.schema is None,
                on_event=live.hear,
            )
        except BaseException:
            self.ring.settle(held, paid)
            raise
        self._keep(run_id, live, handle, held, preset)

    @staticmethod
    def _decisions(trace: Path, first: RequestRecord) -> dict[str, Decision | bool]:
        """What was decided about calls that still wait; one of the client's is made with the result that it brought."""
        latest = first.latest
        known = {**latest.decided, **dict.fromkeys(latest.given, True)}
        return {call_id: known[call_id] for call_id in Overview.of(trace).pending if call_id in known}

    # -- ending ----------------------------------------------------------------------------------------------------

    async def cancel(self, run: ServedRun) -> None:
        """Stop a run for its client; no start of the server resumes it."""
        async with self.locks.alone(run.id):
            replace(RequestRecord.read(run.trace), closed=True).write(run.trace)
        if run.id in self._live:
            await self._live[run.id][1].cancel()
        elif run.elsewhere:
            await self.runs.cancel(run.id, timeout=_CANCEL_SECONDS)
            with contextlib.suppress(TimeoutError):
                # Its worker counts what it has cost, or another one takes it over.
                await asyncio.wait_for(until(lambda: not run.elsewhere), _CANCEL_SECONDS)

    async def left(self, run: ServedRun) -> None:
        """A client does not read a run any more: cancel it if nobody else does and nothing else was set."""
        preset = self._began_with.get(run.id)
        if self.stopping or run.request.background or run.live is None or run.live.over or run.live.readers:
            return
        if self.ledger.is_read(run.id):
            return  # through another worker
        if preset is None or preset.on_disconnect == "cancel":
            await self.cancel(run)

    async def delete(self, run: ServedRun) -> None:
        """Remove a run; one under way is cancelled before."""
        await self.cancel(run)
        self.runs.delete(run.id)
        self._began_with.pop(run.id, None)
        self._digests.forget(run.id)

    # -- the server's own life -------------------------------------------------------------------------------------

    def take_folder(self) -> ServedFolder:
        """Have the folder to oneself; `open` does it too.

        Raises:
            UsageError: another server has it.
        """
        if self._folder is None:
            self._folder = ServedFolder(self.runs.store.folder)
        return self._folder

    async def open(self) -> int:
        """Know the runs of the folder, and resume those that were interrupted and that a client may still read.

        Returns:
            How many were resumed.

        Raises:
            UsageError: another server has the folder.
        """
        if not self.ledger.shared:
            self.take_folder()
            self.look_through()
        return await self.adopt()

    def look_through(self) -> None:
        """Know the runs of the folder. Those that are to be resumed are left for the worker that adopts them."""
        for path in sorted(self.runs.store.folder.glob(f"*{SUFFIX}{REQUEST}")):
            run_id = path.name.removesuffix(f"{SUFFIX}{REQUEST}")
            trace = self.runs.store.path_for(run_id)
            if not trace.exists() or not (has_begun(trace) or is_being_written(trace)):
                # The server was killed before the run began, and the client may have asked again: of two runs of one
                # request only the one that began may be found.
                self.runs.store.delete(run_id)
                continue
            try:
                self._look_at(run_id, trace)
            except TraceError as error:
                logger.warning("%s", error)
        self.ledger.abandon(self.ledger.worker)

    def _look_at(self, run_id: str, trace: Path) -> None:
        request = RequestRecord.read(trace)
        self._digests.add(run_id)
        due = request.goes_on and self._is_due(run_id, request)
        usage = {} if due else self.runs.get(run_id).usage
        paid = end_of(moments_on_disk(trace))[1] if due else float(usage.get("usd", 0.0))
        self.ring.charge(request.owner, paid, trace.stat().st_mtime)
        if due:
            self.ring.take_back(request.owner, budget_of(trace), paid, run_id)

    async def adopt(self) -> int:
        """Resume the runs of workers that have died, and those that an earlier server has left.

        Returns:
            How many were resumed here.
        """
        return sum([await self._adopt(run_id) for run_id in self.ledger.orphans()])

    async def _adopt(self, run_id: str) -> bool:
        trace = self.runs.store.path_for(run_id)
        async with self.locks.alone(run_id):
            if run_id in self._live or self.ledger.is_held_elsewhere(run_id):
                return False  # another worker was quicker
            if not has_begun(trace):
                self.runs.store.delete(run_id)
                self._digests.forget(run_id)
                self.ring.inherit(run_id, 0.0)
                return False
            try:
                request = RequestRecord.read(trace)
                if request.goes_on and self._is_due(run_id, request):
                    await self._resume(run_id, request)
            except (ConcertinoError, OSError) as error:
                logger.warning("%s cannot be resumed: %s", run_id, error)
            self.ring.inherit(run_id, usd_of(trace))  # what is held no more by now, if it was resumed
            return run_id in self._live

    async def close(self, *, for_good: bool = False) -> None:
        """Suspend what still runs: it continues at the next start.

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
        if self._folder is not None:
            self._folder.release()
            self._folder = None

    @property
    def active(self) -> int:
        """Runs under way in this process."""
        return len(self._live)


def _part_of(first: RequestRecord, answers: CallAnswers) -> int:
    """The part that some answers have begun; 0 if there is none."""
    for number, part in enumerate(first.parts, 1):
        if (part.given, part.decided) == (answers.given, answers.decided):
            return number
    return 0
