"""Runs on this event loop: many at once, which share one executor.

Invariant: nothing is copied and nothing is sent; what an order costs beside its run is a task.
"""

from __future__ import annotations

from .dispatch import Rollouts
from .ordered_work import Work, failure_of
from .run_order import RunOrder, RunResult


class InProcess(Rollouts):
    """Carries out orders on the running event loop.

    Args:
        work: what orders are carried out with; closed with this.
        slots: runs at once.
    """

    def __init__(self, work: Work, *, slots: int = 16) -> None:
        super().__init__(slots)
        self._work = work

    async def _execute(self, order: RunOrder) -> RunResult:
        try:
            return await self._work.perform(order)
        except Exception as error:
            return failure_of(order, error)

    async def _close(self) -> None:
        await self._work.aclose()
