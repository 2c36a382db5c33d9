"""Runs that somebody changes: one change at a time, in this worker and in all others.

    async with locks.alone(run_id): ...

Invariant: the ledger frees what a dead worker was alone with, so no run is locked for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from .run_ledger import RunLedger

_LOOK = 0.02
"""Seconds between looks at what another worker does."""


class RunLocks:
    """The locks of the runs of a server."""

    def __init__(self, ledger: RunLedger) -> None:
        self._ledger = ledger
        self._waiting: dict[str, tuple[asyncio.Lock, int]] = {}

    def __len__(self) -> int:
        """Runs that are locked here, or are to be."""
        return len(self._waiting)

    @contextlib.asynccontextmanager
    async def alone(self, run_id: str) -> AsyncIterator[None]:
        """While the block lasts, nothing else changes the run."""
        lock, waiting = self._waiting.get(run_id, (asyncio.Lock(), 0))
        self._waiting[run_id] = lock, waiting + 1
        try:
            async with lock, self._of_all_workers(run_id):
                yield
        finally:
            lock, waiting = self._waiting[run_id]
            self._waiting[run_id] = lock, waiting - 1
            if waiting == 1:
                del self._waiting[run_id]

    @contextlib.asynccontextmanager
    async def _of_all_workers(self, run_id: str) -> AsyncIterator[None]:
        await until(lambda: self._ledger.take(run_id))
        try:
            yield
        finally:
            self._ledger.give_back(run_id)


async def until(done: Callable[[], bool]) -> None:
    """Return when another worker has done something."""
    while not done():  # noqa: ASYNC110 (no event comes from another process)
        await asyncio.sleep(_LOOK)
