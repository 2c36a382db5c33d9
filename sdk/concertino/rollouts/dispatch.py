"""Orders in, results out: what all places where runs happen have in common.

    async with (
        open_rollouts("local:4", work) as rollouts,
        aclosing(rollouts.submit(orders, budget=Budget(usd=5))) as results,
    ):
        async for result in results:
            ...

Orders may be an endless iterator: the next one is taken when a result was, so that at most `slots` of a stream are
known at once. Several streams share the slots; an order of higher priority goes first.

Invariants: each order gives one result; an order that is under way is not begun again, whoever gives it joins; what
the orders of a stream have set aside and spent is never more than its budget; a stream that is left stops its runs,
and they can be continued.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from typing import Any, Self

from concertino.core.budget import Amount, Budget
from concertino.core.errors import ConcertinoError, UsageError
from concertino.core.usage import NOTHING
from concertino.executor.ledger import Ledger

from .node_health import NodeHealth
from .run_order import RunOrder, RunResult


class RolloutsError(ConcertinoError):
    """The place where runs should happen does not work, so no order can be carried out."""


class Rollouts(ABC):
    """A place where many runs happen. Belongs to one event loop; used as `async with`.

    Args:
        slots: runs at once, those of all streams together.
    """

    def __init__(self, slots: int) -> None:
        if slots < 1:
            raise UsageError(f"slots={slots}: expected at least 1")
        self.slots = slots
        self._gate = _PriorityGate(slots)
        self._active: dict[str, asyncio.Future[RunResult]] = {}
        self._tasks: set[asyncio.Task[RunResult]] = set()
        self._closed = False

    async def submit(
        self, orders: Iterable[RunOrder], *, budget: Budget | None = None
    ) -> AsyncGenerator[RunResult, None]:
        """Carry out orders, and give their results as they come, in no order.

        Leave the stream with `contextlib.aclosing`: its runs are then stopped before anything else goes on.

        Args:
            orders: taken one by one, as slots get free.
            budget: of all of them together, but for rounds and seconds. Each order sets its own budget aside, and
                gives back what its run did not spend.

        Raises:
            UsageError: an order has no limit where `budget` has one.
            RolloutsError: no order can be carried out here.
        """
        if self._closed:
            raise UsageError("these rollouts are closed; open others")
        account = None if budget is None else Ledger(budget.limits())
        source, more = iter(orders), True
        running: set[asyncio.Task[RunResult]] = set()
        ended: asyncio.Queue[asyncio.Task[RunResult]] = asyncio.Queue()
        try:
            while True:
                while more and len(running) < self.slots:
                    order = next(source, None)
                    if order is None:
                        more = False
                        break
                    task = asyncio.ensure_future(self._served(order, account))
                    for tasks in (running, self._tasks):
                        tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                    task.add_done_callback(ended.put_nowait)
                if not running:
                    return
                task = await ended.get()
                running.discard(task)
                if task.cancelled():
                    raise RolloutsError("these rollouts were closed while their runs were under way")
                yield task.result()
        finally:
            await _stopped(running)

    def health(self) -> list[NodeHealth]:
        """What is seen of each node or worker process; nothing where runs happen in this process."""
        return []

    async def close(self) -> None:
        """Stop what is under way, and give back everything that this holds."""
        self._closed = True
        await _stopped(self._tasks)
        await self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    @abstractmethod
    async def _execute(self, order: RunOrder) -> RunResult:
        """Carry out an order of which nothing is under way here."""

    @abstractmethod
    async def _close(self) -> None:
        """Give back what this place holds."""

    async def _served(self, order: RunOrder, account: Ledger | None) -> RunResult:
        """One order, on its share of the budget, in a slot."""
        if account is None:
            return await self._in_slot(order)
        share = await account.reserve(_share(order, account))
        if share is None:
            left = ", ".join(f"{name} {value:g}" for name, value in account.remaining()._asdict().items())
            return RunResult(order.id, "refused", stop="budget", detail=f"does not fit into what is left: {left}")
        try:
            result = await self._in_slot(order)
        except BaseException:
            # What it spent is not known.
            account.settle(share, NOTHING, at_reservation=True)
            raise
        account.settle(share, result.usage, at_reservation=result.status == "failed")
        return result

    async def _in_slot(self, order: RunOrder) -> RunResult:
        await self._gate.enter(order.priority)
        try:
            return await self._joined(order)
        finally:
            self._gate.leave()

    async def _joined(self, order: RunOrder) -> RunResult:
        """The result of the one run of this id; where another stream has it under way, that one's."""
        while (other := self._active.get(order.id)) is not None:
            await asyncio.wait([other])
            # Stopped by its own stream, it is continued here.
            if not other.cancelled():
                return other.result()
        mine: asyncio.Future[RunResult] = asyncio.get_running_loop().create_future()
        self._active[order.id] = mine
        try:
            result = await self._execute(order)
            mine.set_result(result)
            return result
        finally:
            del self._active[order.id]
            mine.cancel()  # does nothing where there is a result


class _PriorityGate:
    """So many at once; who waits enters by priority, then in the order of coming."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._count = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    async def enter(self, priority: int) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (-priority, next(self._count), waiter))
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.leave()  # it was let in at the very moment
            raise

    def leave(self) -> None:
        while self._waiting:
            waiter = heapq.heappop(self._waiting)[2]
            if not waiter.done():
                waiter.set_result(None)  # the place goes from one to the other
                return
        self._free += 1


def _share(order: RunOrder, account: Ledger) -> Amount:
    """What an order sets aside of a shared budget, in the currencies that are limited there."""
    assert account.limits is not None
    shares = []
    for name, whole, own in zip(Amount._fields, account.limits, order.budget.limits(), strict=True):
        if whole == float("inf"):
            shares.append(0.0)
        elif own == float("inf"):
            raise UsageError(
                f"order {order.id}: its budget has no limit of {name}, and the budget that it shares has one; give "
                f"each order a limit: Budget({name}=...)"
            )
        else:
            shares.append(own)
    return Amount(*shares)


async def _stopped(tasks: set[Any]) -> None:
    """Cancel tasks, and wait until all of them have ended."""
    stopping = list(tasks)
    for task in stopping:
        task.cancel()
    # What they raise is not asked for any more.
    await asyncio.gather(*stopping, return_exceptions=True)
