"""Runs by id: start, follow, cancel, resume and list them, from any task, thread or process.

    runs = ct.Runs("traces")
    handle = runs.start(leader, "How warm is it?", pool=pool)       # returns at once; handle.id names the run
    async for record in runs.follow(handle.id):                     # from the beginning, then live; anywhere
        ...
    await runs.cancel(handle.id)                                    # also where another process runs it
    handle = await runs.resume(run_id, leader, pool=pool)           # after a crash, a cancellation, a decision

The traces of the folder are all that there is: what is kept beside a large one is a cache, and believed only where it
fits the very file. Whether a run is under way is told by the lock on its trace, which the kernel frees when a process
dies.

Invariant: whoever follows a run gets the same records with the same numbers, whenever and wherever it does. Text while
it is written (`text=True`) is extra: only the process that runs a run can give it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from concertino.core.errors import TraceError, UsageError
from concertino.core.events import Event, TextDelta
from concertino.traces import TraceStore, TraceTail
from concertino.traces.journal_lock import is_being_written
from concertino.traces.overview import Overview

from .handle import RunHandle, ask_to_cancel
from .orchestrator import NO_POOL
from .setup import RESUMABLE

if TYPE_CHECKING:
    from concertino.pool.live import LivePool
    from concertino.pool.pool import Pool

    from .loop import Listener
    from .orchestrator import Orchestrator
    from .run_input import Question

RunState = Literal["running", "suspended", "interrupted", "ended"]
"""What a run is: under way; waiting for a person's decision; stopped before its end, and resumable; over."""
_POLL = 0.1
"""Seconds between looks at a run of another process."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What the trace of a run says now.

    Attributes:
        id: of the run.
        state: `running`, `suspended`, `interrupted` (cancelled, crashed or killed: it can be resumed), or `ended`.
        question: of the user.
        answer: None while there is none.
        stop: why it ended, one of `STOP_REASONS`; `unfinished` before that.
        pending: what calls wait for a decision: by id, the record of the request.
        usage: what was used, of an ended run.
        began: seconds since 1970.
        path: its trace.
    """

    id: str
    state: RunState
    question: str
    answer: str | None
    stop: str
    pending: Mapping[str, Mapping[str, Any]]
    usage: Mapping[str, Any]
    began: float
    path: Path

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return {**data, "path": str(self.path)}


@dataclass(eq=False)
class _Active:
    """A run of this process, and who follows it here."""

    loop: asyncio.AbstractEventLoop
    handle: RunHandle | None = None
    followers: list[Callable[[Event | None], None]] = field(default_factory=list)

    def tell(self, event: Event | None) -> None:
        for follower in list(self.followers):
            follower(event)


class Runs:
    """The runs whose traces lie in a folder.

    Args:
        folder: of the traces; by default that of `concertino.toml`, `CONCERTINO_TRACES`, or `.concertino/traces`.
    """

    _active: dict[Path, _Active] = {}  # noqa: RUF012 - of the whole process, since any thread may ask
    _mutex = threading.Lock()

    def __init__(self, folder: str | Path | TraceStore | None = None) -> None:
        self.store = folder if isinstance(folder, TraceStore) else TraceStore(folder)

    # -- running ---------------------------------------------------------------------------------------------------

    def start(
        self,
        leader: Orchestrator,
        question: Question,
        *,
        pool: Pool | LivePool = NO_POOL,
        on_event: Listener | None = None,
        **options: Any,
    ) -> RunHandle:
        """Begin a run and return at once. It goes on when its handle is dropped.

        Args:
            on_event: called with every event, on this event loop.
            options: of `Orchestrator.start`: `history`, `deps`, `budget`, `run_id`, `stream_text`, `durability`.

        Raises:
            UsageError: as `Orchestrator.run`; or a run of this id exists.
        """
        run_id = options.get("run_id")
        if run_id and self.store.path_for(run_id).exists():
            raise UsageError(f"run_id={run_id!r}: this run exists; follow it, resume it, or give another id")
        active = _Active(asyncio.get_running_loop())
        options.setdefault("trace", self.store.folder)
        handle = leader.start(question, pool=pool, on_event=_both(active.tell, on_event), **options)
        self._keep(active, handle)
        return handle

    async def resume(
        self,
        run_id: str,
        leader: Orchestrator,
        *,
        pool: Pool | LivePool = NO_POOL,
        on_event: Listener | None = None,
        **options: Any,
    ) -> RunHandle:
        """Continue a run that has not ended, on this event loop. Gives its handle as soon as it is under way.

        Args:
            options: of `Orchestrator.reopen`: `deps`, `decisions`, `stream_text`.

        Raises:
            TraceError: there is no such run, it has ended, or another process runs it; or as `Orchestrator.resume`.
        """
        path = self._path(run_id)
        active = _Active(asyncio.get_running_loop())
        tell = _both(active.tell, on_event)
        handle = await leader.reopen(path, pool=pool, on_event=tell, **options)
        self._keep(active, handle)
        return handle

    async def cancel(self, run_id: str, *, timeout: float = 30.0) -> RunInfo:
        """Stop a run and its calls, whoever runs it; it can be resumed. What has ended stays as it is.

        Args:
            timeout: seconds to wait for its end.

        Raises:
            TraceError: there is no such run, or it has not ended in time.
        """
        path = self._path(run_id)
        if is_being_written(path):
            with self._mutex:
                active = self._active.get(path.absolute())
            if active is not None and active.handle is not None:
                active.loop.call_soon_threadsafe(active.handle.task.cancel)
            else:
                ask_to_cancel(path)
            await self._until_over(path, timeout)
        return self.get(run_id)

    async def wait(self, run_id: str, *, timeout: float | None = None) -> RunInfo:
        """Return when a run is no longer under way, whoever runs it.

        Raises:
            TraceError: there is no such run, or it is still under way after `timeout` seconds.
        """
        await self._until_over(self._path(run_id), timeout)
        return self.get(run_id)

    async def _until_over(self, path: Path, timeout: float | None) -> None:
        limit = None if timeout is None else time.monotonic() + timeout
        while is_being_written(path):
            if limit is not None and time.monotonic() > limit:
                raise TraceError(f"{path}: the run is still under way after {timeout:g} s; wait longer, or follow it")
            await asyncio.sleep(_POLL / 4)

    def _keep(self, active: _Active, handle: RunHandle) -> None:
        """Know a run of this process until it is over."""
        path = self.store.path_for(handle.id).absolute()
        active.handle = handle

        def over(task: object) -> None:
            with self._mutex:
                self._active.pop(path, None)
            active.tell(None)

        with self._mutex:
            self._active[path] = active
        handle.task.add_done_callback(over)

    # -- looking ---------------------------------------------------------------------------------------------------

    def get(self, run_id: str) -> RunInfo:
        """What a run is now.

        Raises:
            TraceError: there is no such run, or its trace cannot be read.
        """
        return _info(self._path(run_id))

    def list(self, *, state: RunState | None = None, limit: int | None = None) -> list[RunInfo]:
        """The runs of the folder, the newest first. Traces that cannot be read are left out; `get` says why.

        Args:
            state: only those.
            limit: at most so many.
        """
        found: list[RunInfo] = []
        for path in self.store.paths():
            if limit is not None and len(found) >= limit:
                break
            with contextlib.suppress(TraceError):
                info = _info(path)
                if state is None or info.state == state:
                    found.append(info)
        return found

    async def follow(self, run_id: str, *, after: int = 0, text: bool = False) -> AsyncIterator[dict[str, Any]]:
        """The records of a run, from its beginning, then as they are written, until it is no longer under way.

        Each is a record of the trace format, with its number `n`. Leaving the loop stops nothing.

        Args:
            after: begin behind this number.
            text: between them, also the text while it is written (`t` is `text`, no number): if this process runs it
                and it was started with `stream_text=True`.

        Raises:
            TraceError: there is no such run, or its trace is damaged.
        """
        path = self._path(run_id)
        tail = TraceTail(path, after)
        with self._news(path) as news:
            while True:
                # Asked before reading: whatever was written by then is still given.
                going = tail.is_written()
                for record in tail.news():
                    yield record
                if not going:
                    return
                # Text is in no file, so between two pieces of it there is nothing to read.
                while isinstance(event := await news(), TextDelta):
                    if text:
                        yield event.to_json()

    @contextlib.contextmanager
    def _news(self, path: Path) -> Any:
        """Gives a function that waits until something may have been written, and gives the event where it is known."""
        with self._mutex:
            active = self._active.get(path.absolute())
        if active is None:

            async def look_again() -> None:
                await asyncio.sleep(_POLL)

            yield look_again
            return
        here = asyncio.get_running_loop()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def tell(event: Event | None) -> None:
            if here is active.loop:
                queue.put_nowait(event)
            else:  # the run belongs to the loop of another thread; this one may be closed already
                with contextlib.suppress(RuntimeError):
                    here.call_soon_threadsafe(queue.put_nowait, event)

        async def wait() -> Event | None:
            # Not longer than a poll: between the last event and the end of the run nothing is told.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL):
                    return await queue.get()
            return None

        active.followers.append(tell)
        try:
            yield wait
        finally:
            active.followers.remove(tell)

    def delete(self, run_id: str) -> None:
        """Remove the trace of a run, with its side files.

        Raises:
            TraceError: there is no such run, or it is under way.
        """
        path = self._path(run_id)
        if is_being_written(path):
            raise TraceError(f"{path}: the run is under way; cancel it before")
        self.store.delete(run_id)

    def _path(self, run_id: str) -> Path:
        path = self.store.path_for(run_id)
        # An id comes from outside, over a network maybe: it names a file of this folder, or nothing.
        if not run_id or Path(run_id).name != run_id or not path.is_file():
            raise TraceError(f"there is no run {run_id!r} in {self.store.folder}")
        return path


def _both(first: Listener, second: Listener | None) -> Listener:
    if second is None:
        return first

    def listen(event: Event) -> None:
        first(event)
        second(event)

    return listen


def _info(path: Path) -> RunInfo:
    going = is_being_written(path)
    known = Overview.of(path)
    end = known.end if not going else None
    stop = str(end["stop"]) if end is not None else "unfinished"
    state: RunState = "running" if going else "interrupted"
    if end is not None and stop == "suspended":
        state = "suspended"
    elif end is not None and stop not in RESUMABLE:
        state = "ended"
    return RunInfo(
        known.summary.run_id,
        state,
        known.summary.question,
        end["answer"] if end is not None else None,
        stop,
        known.pending if state == "suspended" else {},
        end["usage"] if end is not None else {},
        known.began,
        path,
    )
