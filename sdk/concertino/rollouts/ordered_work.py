"""How an order is carried out: work, which a process makes once, for many orders on one event loop.

A `Work` is what orders are done with: pools, an executor, whatever else. It goes to another process as data, and is
made again there. `OrderedRuns` is the usual one: an orchestrator over a pool.

Invariant: an order that is carried out twice is one run (`run_once`). Whoever is second waits for the first, continues
what it left, or reads how it ended; a call that has ended is never made again.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self

from concertino.core.budget import Budget
from concertino.core.errors import ConcertinoError, TraceError, UsageError
from concertino.core.logs import logger_of
from concertino.executor import Executor
from concertino.members.import_path import import_path
from concertino.pool.pool import Pool
from concertino.runs.orchestrator import Orchestrator
from concertino.runs.run import Run
from concertino.strategies import Strategy
from concertino.strategies.built_in import installed_strategy
from concertino.traces.fence import enter, is_again, take_over
from concertino.traces.journal_errors import JournalExists, JournalLocked
from concertino.traces.journal_lock import is_being_written
from concertino.traces.records import first_record

from .pool_reference import PoolReference
from .run_order import RunOrder, RunResult

logger = logger_of("rollouts")
_POLL = 0.05
"""Seconds between looks at a run that another process has."""
_HEADER_BYTES = 1024
"""A file that is longer is not only a header, whatever is damaged in it."""


class Work(ABC):
    """What orders are carried out with. A subclass is importable, so that a worker process finds it.

    Attributes:
        folder: of the traces of all orders; None where orders say it, or without traces. The trace of an order is
            `<id>.trace.jsonl`. A place may set another folder in a worker, and bring the files to where they belong.
    """

    folder: Path | None = None

    @abstractmethod
    async def perform(self, order: RunOrder) -> RunResult:
        """Carry out an order. Cancelled, it leaves a run that can be continued.

        What it raises is the failure of this order alone.
        """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What `from_json` makes it of in another process.

        Raises:
            UsageError: it holds what only this process has.
        """

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The same work, in another process.

        Raises:
            ConcertinoError: what it needs is not there, or is another one; says what differs.
        """

    async def aclose(self) -> None:  # noqa: B027 (most hold nothing)
        """Give back what it holds."""


class OrderedRuns(Work):
    """Runs of an orchestrator, as orders say: question, pool, leader, strategy, sampling and budget.

    Args:
        pools: those that orders name by their ids; with one alone, orders need not name it.
        executor: shared with others; by default the work has its own, which it closes.
    """

    def __init__(self, *pools: Pool, executor: Executor | None = None) -> None:
        if not pools:
            raise UsageError("OrderedRuns(): expected a pool at least")
        self.pools = {pool.id: pool for pool in pools}
        self._own = Executor() if executor is None else None
        self.executor = executor or self._own
        self._leaders: dict[str, Strategy] = {}
        self._folder: TemporaryDirectory[str] | None = None

    async def perform(self, order: RunOrder) -> RunResult:
        """The run of an order: begun, continued, joined, or read from its trace.

        Raises:
            UsageError: as `Orchestrator.run`, or the order names a pool that this work lacks.
        """
        leader = Orchestrator(
            order.model,
            self._strategy(order) if order.strategy else None,
            executor=self.executor,
            sampling=order.sampling.with_(seed=order.seed) if order.seed is not None else order.sampling,
        )
        path = Path(order.folder, f"{order.id}.trace.jsonl") if order.folder else None
        run, _ = await run_once(leader, order.question, self._pool(order), path, run_id=order.id, budget=order.budget)
        return result_of(run)

    def _pool(self, order: RunOrder) -> Pool:
        if order.pool in self.pools:
            return self.pools[order.pool]
        if not order.pool and len(self.pools) == 1:
            return next(iter(self.pools.values()))
        raise UsageError(
            f"order {order.id}: pool={order.pool!r}; expected the id of one of the pools of this work: "
            f"{', '.join(self.pools)}"
        )

    def _strategy(self, order: RunOrder) -> Strategy:
        key = repr(order.strategy)
        if key not in self._leaders:
            self._leaders[key] = installed_strategy(str(order.strategy.get("name"))).from_json(dict(order.strategy))
        return self._leaders[key]

    def to_json(self) -> dict[str, Any]:
        """References to its pools."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="concertino-pools-")
        folder = Path(self._folder.name)
        return {"pools": [PoolReference.of(pool, folder).to_json() for pool in self.pools.values()]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Load the pools, and compare them.

        Raises:
            PoolError: a pool is another one here; says what differs.
        """
        return cls(*(PoolReference.from_json(each).load() for each in data["pools"]))

    async def aclose(self) -> None:
        """Close its own executor."""
        if self._own is not None:
            await self._own.aclose()
        if self._folder is not None:
            self._folder.cleanup()


def work_data(work: Work) -> dict[str, Any]:
    """Work as data: its class by name, and what `from_json` makes it of.

    Raises:
        UsageError: it holds what only this process has.
    """
    module, qualname = import_path(type(work), type(work).__name__)
    return {"module": module, "work": qualname, "data": work.to_json()}


def made_work(data: Mapping[str, Any]) -> Work:
    """The inverse of `work_data`, in another process.

    Raises:
        ConcertinoError: what it needs is not there, or is another one; says what differs.
        ImportError, AttributeError: its class is not there.
    """
    found: Any = importlib.import_module(data["module"])
    for part in data["work"].split("."):
        found = getattr(found, part)
    kind: type[Work] = found
    return kind.from_json(data["data"])


def result_of(run: Run[Any], **more: Any) -> RunResult:
    """The result of a run that has ended."""
    trace = str(run.path) if run.path is not None else ""
    return RunResult(run.id, "done", run.answer, run.stop, run.detail, run.usage, trace=trace, **more)


def failure_of(order: RunOrder, error: Exception) -> RunResult:
    """The result of an order that broke."""
    if not isinstance(error, ConcertinoError):
        logger.warning("the order %s broke", order.id, exc_info=error)
    return RunResult(order.id, "failed", detail=f"{type(error).__name__}: {error}")


async def run_once(
    leader: Orchestrator[Any],
    question: str,
    pool: Pool,
    path: Path | None,
    *,
    run_id: str,
    budget: Budget | None = None,
) -> tuple[Run[Any], bool]:
    """The one run of this id: begun, or continued from its trace, or waited for, or read, if it has ended.

    Args:
        path: its trace; None keeps none, and the run is always begun.

    Returns:
        The run, and whether a trace of it was there.

    Raises:
        UsageError: as `Orchestrator.run`.
        TraceError: its trace is damaged at its head, or belongs to another set-up; it is left as it is.
    """
    if path is not None and is_again():
        take_over(path)
    while path is not None and await _is_begun(path):
        with contextlib.suppress(JournalLocked):
            return await leader.resume(path, pool=pool, finished="recall"), True
        # Somebody else has this run now after all.
        await asyncio.sleep(_POLL)
    try:
        return await leader.run(question, pool=pool, budget=budget, trace=path, run_id=run_id), False
    except JournalExists:
        # Another one made it between the look and the beginning.
        return await run_once(leader, question, pool, path, run_id=run_id, budget=budget)


async def settle_trace(path: Path) -> bool:
    """Wait until nobody writes a trace, then take it. For a `Work` that resumes its runs without `run_once`.

    Returns:
        Whether it has the beginning of a run. Else it is not there.

    Raises:
        JournalFenced: another one has taken it over since.
    """
    if is_again():
        take_over(path)
    return await _is_begun(path)


async def _is_begun(path: Path) -> bool:
    """Whether a trace has the beginning of a run, once nobody writes it."""
    looks = 0
    while (state := _state_of(path)) != "absent":
        looks += 1
        if state == "begun":
            enter(path)
            return True
        if state == "empty" and looks > 1:
            _remove(path)
            return False
        # Somebody else has this run now, in this process or in one that was thought dead; or is about to begin it.
        await asyncio.sleep(_POLL)
    return False


def _state_of(path: Path) -> Literal["absent", "busy", "begun", "empty"]:
    """What a trace says of its run. An empty one holds no beginning of it, so nothing was asked or called."""
    if not path.exists():
        return "absent"
    if is_being_written(path):
        return "busy"
    if path.stat().st_size > _HEADER_BYTES:
        return "begun"
    try:
        first_record(path)
    except TraceError:
        return "empty"
    return "begun"


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
