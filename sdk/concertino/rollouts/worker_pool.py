"""Runs in processes of this machine: each worker has one event loop with many runs.

    driver ── {"order": …} ──► worker ── Work.perform ──► trace
           ◄── {"result": …} ──

A worker is the module `concertino.rollouts.run_worker`. It is given the work as data once, and orders as lines; it
gets no keys but those that are named. Invariants: a worker that dies, whatever killed it, costs nothing but time: when
nothing of it is left, its orders go to another one, which continues their runs from their traces; no worker outlives
this process.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from subprocess import PIPE
from typing import Any

from concertino.core.child_environment import child_environment
from concertino.core.child_python import module_command, safe_environment
from concertino.core.errors import PoolError, UsageError
from concertino.core.logs import logger_of
from concertino.executor import ChildProcess, awaitable

from .dispatch import Rollouts, RolloutsError
from .node_health import NodeHealth
from .ordered_work import Work, work_data
from .run_order import RunOrder, RunResult

logger = logger_of("rollouts")

_LINE_BYTES = 64 << 20
"""Bytes that a result has at most."""
_GRACE = 10.0
"""Seconds in which a worker ends its runs in order when it is stopped."""
_STARTS = 3
"""Workers that may die one after the other before they are ready."""
_DEATHS = 10
"""Workers that may die with an order among others, until it gets one of its own."""
_DEATHS_ALONE = 3
"""Workers of its own that may die with an order, until it has failed."""


class WorkerDied(Exception):
    """A worker is gone, and with it what it had under way."""


class Processes(Rollouts):
    """Carries out orders in worker processes.

    Args:
        work: what orders are carried out with; made again in each worker, and closed with this.
        processes: how many workers.
        slots: runs at once, over all workers; by default 16 for each.
        env_from: environment variables that workers are given beside harmless ones, such as OPENAI_API_KEY.

    Raises:
        UsageError: the work holds what cannot be sent to another process.
    """

    def __init__(self, work: Work, processes: int, *, slots: int | None = None, env_from: Sequence[str] = ()) -> None:
        if processes < 1:
            raise UsageError(f"processes={processes}: expected at least 1")
        super().__init__(slots or 16 * processes)
        self._work = work
        self._told = work_data(work)
        self._env = safe_environment(child_environment(env_from, python=True, accelerators=True))
        self._seats: list[_Seat] = []
        self._emptying: set[asyncio.Task[None]] = set()
        self.resize(processes)

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that are ready now."""
        return [seat.worker.process.pid for seat in self._seats if seat.worker is not None and seat.worker.alive]

    def resize(self, processes: int) -> None:
        """Have more workers, or fewer: the last ones get no more orders, and end when they have none.

        Raises:
            UsageError: none would be left.
        """
        if processes < 1:
            raise UsageError(f"processes={processes}: expected at least 1")
        kept = [seat for seat in self._seats if not seat.draining]
        for seat in kept[processes:]:
            seat.draining = True
            self._look_at(seat)
        self._seats += [_Seat(self._start) for _ in range(processes - len(kept))]

    def health(self) -> list[NodeHealth]:
        """What is seen of each worker."""
        return [seat.health(f"worker {number}") for number, seat in enumerate(self._seats, 1)]

    async def _execute(self, order: RunOrder) -> RunResult:
        said = ""
        for _ in range(_DEATHS):
            seat = min((each for each in self._seats if not each.draining), key=lambda each: each.load)
            try:
                return await seat.perform(order)
            except WorkerDied as died:
                said = str(died)
            finally:
                self._look_at(seat)
        # It may be this very order that kills them. The others must not be hit any more.
        for _ in range(_DEATHS_ALONE):
            seat = _Seat(self._start)
            try:
                return await seat.perform(order)
            except WorkerDied as died:
                said = str(died)
            finally:
                await seat.close()
        return RunResult(order.id, "failed", detail=f"{_DEATHS + _DEATHS_ALONE} workers died with it; the last: {said}")

    def _look_at(self, seat: _Seat) -> None:
        """End the worker of a seat that is drained."""
        if seat.draining and not seat.load:
            task = asyncio.ensure_future(seat.close())
            self._emptying.add(task)
            task.add_done_callback(self._emptying.discard)

    async def _start(self) -> _Worker:
        return await _Worker.started(self._told, self._env)

    async def _close(self) -> None:
        await asyncio.gather(*self._emptying, *(seat.close() for seat in self._seats))
        await self._work.aclose()


class _Seat:
    """A place for one worker at a time; a new one takes it when the last has died."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, _Worker]]) -> None:
        self._start = start
        self._starting: asyncio.Task[_Worker] | None = None
        self.load = self.done = self.lost = 0
        self.draining = False
        self._mourned: _Worker | None = None

    @property
    def worker(self) -> _Worker | None:
        """The worker, as soon as it is ready."""
        task = self._starting
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result()

    async def perform(self, order: RunOrder) -> RunResult:
        """Have the worker carry out an order.

        Raises:
            WorkerDied: it is gone.
            RolloutsError: workers cannot be started.
        """
        self.load += 1
        ready = self.worker
        try:
            if ready is None or not ready.alive:
                ready = await self._ready()
            result = await ready.perform(order)
            self.done += 1
            return result
        except WorkerDied:
            self.lost += ready is not self._mourned  # it had other orders, too
            self._mourned = ready
            raise
        finally:
            self.load -= 1

    def health(self, name: str) -> NodeHealth:
        """What is seen of it."""
        ready = self.worker is not None and self.worker.alive
        state = "ready" if ready else "starting"
        if self.draining:
            state = "draining" if ready or self.load else "gone"
        return NodeHealth(name, "localhost", state, int(ready), self.load, self.done, self.lost, 0.0)

    async def _ready(self) -> _Worker:
        """A worker; all who ask meanwhile wait for the same."""
        task, worker = self._starting, self.worker
        if task is None or (task.done() and (worker is None or not worker.alive)):
            task = self._starting = asyncio.ensure_future(self._begun())
        return await asyncio.shield(task)

    async def _begun(self) -> _Worker:
        for _ in range(_STARTS - 1):
            try:
                return await self._start()
            except WorkerDied as died:
                logger.warning("a worker died before it was ready: %s", died)
        try:
            return await self._start()
        except WorkerDied as died:
            raise RolloutsError(f"{_STARTS} workers died before they were ready; the last: {died}") from died

    async def close(self) -> None:
        """End the worker."""
        if self._starting is not None:
            self._starting.cancel()  # does nothing to one that has started
            await asyncio.wait([self._starting])
        if self.worker is not None:
            await self.worker.close()


class _Worker:
    """One process, and the orders that it has."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.process = ChildProcess(
            module_command("concertino.rollouts.run_worker"), stdin=PIPE, stdout=PIPE, env=env, grace=_GRACE
        )
        self._open: dict[str, asyncio.Future[RunResult]] = {}
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.alive = True

    @classmethod
    async def started(cls, told: Mapping[str, Any], env: Mapping[str, str]) -> _Worker:
        """A worker that has made the work.

        Raises:
            WorkerDied: it is gone already.
            PoolError: it has another pool, and says what differs.
            RolloutsError: it cannot make the work; says why.
        """
        worker = cls(env)
        loop = asyncio.get_running_loop()
        try:
            replies = asyncio.StreamReader(limit=_LINE_BYTES)
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(replies), worker.process.stdout)
            transport, _ = await loop.connect_write_pipe(asyncio.Protocol, worker.process.stdin)
            worker._transport = transport
            worker._reading = asyncio.ensure_future(worker._read(replies))
            worker._send(told)
            await worker._ready
        except BaseException:
            worker.process.kill()
            await awaitable(worker.process.ended)
            raise
        return worker

    _transport: asyncio.WriteTransport
    _reading: asyncio.Task[None]

    async def perform(self, order: RunOrder) -> RunResult:
        """Have it carry out an order. Cancelled, it waits until the run has stopped there, too.

        Raises:
            WorkerDied: it is gone.
        """
        if not self.alive:
            raise WorkerDied("it had died before")
        result: asyncio.Future[RunResult] = asyncio.get_running_loop().create_future()
        self._open[order.id] = result
        self._send({"order": order.to_json()})
        try:
            # Not awaited itself, which a cancellation would reach: its end is still to come then.
            await asyncio.wait([result])
        except asyncio.CancelledError:
            self._send({"cancel": order.id})
            await asyncio.wait([result], timeout=_GRACE)
            if not result.done():
                self.process.kill()
            elif not result.cancelled():
                result.exception()  # nobody asks for it any more
            raise
        finally:
            self._open.pop(order.id, None)
        if result.cancelled():
            raise WorkerDied("it was stopped")
        return result.result()

    async def close(self) -> None:
        """Stop its runs in order, and end it."""
        self._send({"close": True})
        try:
            await asyncio.wait_for(awaitable(self.process.ended), _GRACE)
        except TimeoutError:
            self.process.kill()
        await self._reading

    def _send(self, message: Mapping[str, Any]) -> None:
        if self.alive:
            self._transport.write(json.dumps(message).encode() + b"\n")

    async def _read(self, replies: asyncio.StreamReader) -> None:
        """Take its replies until it is gone; nothing of it is left when its orders are given back."""
        said = ""
        try:
            while line := await replies.readline():
                self._take(json.loads(line))
        except (OSError, ValueError, LookupError, TypeError) as error:
            said = f"it gave a reply that cannot be read ({error}); "
        self.alive = False
        if not self._transport.is_closing():
            self._transport.abort()
        if said:
            self.process.kill()
        code = await awaitable(self.process.ended)
        tail = self.process.stderr_tail()
        how = f"{said}its process ended with {'signal' if code < 0 else 'exit code'} {abs(code)}"
        died = WorkerDied(f"{how}; the end of its stderr: {tail}" if tail else how)
        ends: list[asyncio.Future[Any]] = [self._ready, *self._open.values()]
        for end in ends:
            if not end.done():
                end.set_exception(died)
        if self._open:
            logger.warning("a worker died with %d runs, which are continued in another: %s", len(self._open), how)

    def _take(self, reply: Mapping[str, Any]) -> None:
        if "ready" in reply:
            self._ready.set_result(None)
        elif "unfit" in reply:
            kind = PoolError if reply["kind"] == "PoolError" else RolloutsError
            self._ready.set_exception(kind(f"a worker process cannot do this work: {reply['unfit']}"))
        elif "cancelled" in reply:
            waiting = self._open.get(reply["cancelled"])
            if waiting is not None and not waiting.done():
                waiting.cancel()
        else:
            result = RunResult.from_json(reply["result"])
            waiting = self._open.get(result.id)
            if waiting is not None and not waiting.done():
                waiting.set_result(result)
