"""The actor that carries out orders: one process on a node, one event loop, many runs.

It is given the work as data, makes it once, and is then called once for each order. Invariants: every call ends with
a result, or the process is gone; a run that is issued again takes its trace over; where this process does not see the
folder of the traces, what it writes there goes through the keeper. The process keeps no environment variable but
harmless ones and those that were named: keys come from the node, and never through Ray.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from concertino.core.child_environment import child_environment
from concertino.core.errors import ConcertinoError
from concertino.rollouts import RunOrder, RunResult, Work
from concertino.rollouts.ordered_work import failure_of, made_work
from concertino.traces.fence import JournalFenced, fenced
from concertino.traces.mirror import mirrored

from .journal_stream import JournalStream

_LOOKS = 10
"""Looks for a file of another machine, half a second apart: folders of a network are seen late."""


class RayWorker:
    """Orders of one process.

    Args:
        told: the work as data.
        env_from: environment variables of the node that are kept beside harmless ones.
    """

    def __init__(self, told: Mapping[str, Any], env_from: Sequence[str]) -> None:
        kept = child_environment(env_from, python=True, accelerators=True)
        for name in os.environ.keys() - kept.keys():
            del os.environ[name]
        self._told = told
        self._work: Work | None = None
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._seen: set[str] = set()
        self._stream: JournalStream | None = None

    async def begin(self) -> dict[str, Any]:
        """Make the work. Says the process, or `unfit`, which is why it cannot be done here."""
        try:
            self._work = made_work(self._told)
        except (ConcertinoError, ImportError, AttributeError) as error:
            return {"unfit": f"{error}", "kind": type(error).__name__}
        return {"pid": os.getpid()}

    async def perform(
        self, order: Mapping[str, Any], again: bool, mark: str, keeper: Any = None
    ) -> dict[str, Any] | None:
        """Carry out an order; None if it was stopped; `apart` if this process does not see the traces and has no
        keeper; `over` if what it did does not count.

        Args:
            again: whoever had it before is thought dead.
            mark: a file that the driver made among the traces; empty without traces.
            keeper: writes the trace instead of this process.
        """
        if mark and keeper is None and mark not in self._seen:
            if not await _is_there(Path(mark)):
                return {"apart": str(Path(mark).parent)}
            self._seen.add(mark)
        wanted = RunOrder.from_json(order)
        task = asyncio.ensure_future(self._performed(wanted, again, Path(mark).parent, keeper))
        self._running[wanted.id] = task
        try:
            await asyncio.wait([task])
        finally:
            self._running.pop(wanted.id, None)
        if task.cancelled():
            return None
        error = task.exception()
        if isinstance(error, JournalFenced):
            return {"over": f"{error}"}
        if isinstance(error, Exception):
            return failure_of(wanted, error).to_json()
        return task.result().to_json()

    async def _performed(self, order: RunOrder, again: bool, folder: Path, keeper: Any) -> RunResult:
        assert self._work is not None
        if keeper is None:
            with fenced(again=again):
                return await self._work.perform(order)
        if self._stream is None:
            self._stream = JournalStream(keeper)
        stream = self._stream
        if order.folder:
            order = replace(order, folder=str(stream.folder))
        elif self._work.folder is not None:
            self._work.folder = stream.folder
        lease = await stream.begin(order.id, folder, again)
        try:
            with mirrored(lease):
                result = await self._work.perform(order)
        finally:
            # A result that the keeper does not have the trace of is none.
            await stream.end(lease)
        trace = Path(result.trace)
        return replace(result, trace=str(folder / trace.name)) if trace.parent == stream.folder else result

    async def stop(self, run_id: str) -> None:
        """Stop an order; returns when its run can be continued."""
        if task := self._running.get(run_id):
            task.cancel()
            await asyncio.wait([task])

    async def pulse(self) -> int:
        """That it lives; how many orders it has."""
        return len(self._running)

    async def close(self) -> None:
        """Stop everything, and give back what the work holds."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._work is not None:
            await self._work.aclose()
        if self._stream is not None:
            await self._stream.close()


async def _is_there(file: Path) -> bool:
    for _ in range(_LOOKS):
        if await asyncio.to_thread(file.exists):
            return True
        await asyncio.sleep(0.5)
    return False
