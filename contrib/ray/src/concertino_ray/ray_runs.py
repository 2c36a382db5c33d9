"""The place itself: orders go to workers of a Ray cluster, and again to others when these die.

    driver ── order, again? ──► RayWorker (one on each CPU) ── Work.perform ──► trace, in a folder that all nodes have
           ◄── result, small ──

Invariants: results are small and come straight back, and nothing waits in Ray's store; an order is issued again only
when its worker is gone or counts as gone, and then takes its trace over. A node that does not see the traces gets no
order: it could not continue a run, and would pay for it again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from concertino.core.private_files import make_private_folder, write_private
from concertino.rollouts import Rollouts, RolloutsError, RunOrder, RunResult, Work
from concertino.rollouts.ordered_work import work_data

from .cluster import connect
from .crew import Crew, NodeHealth, WorkerLost
from .words import Cluster

_DEATHS = 10
"""Workers that may die with an order among others, until it gets one of its own."""
_DEATHS_ALONE = 3
"""Workers of its own that may die with an order, until it has failed."""
_SILENCE = 30.0
"""Seconds after which a worker that says nothing counts as dead: a tool that computes may hold its event loop."""


class RayRuns(Rollouts):
    """Carries out orders on a Ray cluster.

    Args:
        work: what orders are carried out with; made again in each worker, and closed with this.
        cluster: which; by default one that is begun on this machine.
        slots: runs at once, over all workers.
        env_from: environment variables of the nodes that workers keep beside harmless ones, such as OPENAI_API_KEY.
        silence: seconds after which a worker that says nothing counts as dead. Its trace is fenced then.

    Raises:
        UsageError: the work holds what cannot be sent to another process.
        RolloutsError: the cluster cannot be reached or begun.
    """

    def __init__(
        self,
        work: Work,
        cluster: Cluster | None = None,
        *,
        slots: int = 64,
        env_from: Sequence[str] = (),
        silence: float = _SILENCE,
    ) -> None:
        super().__init__(slots)
        told = work_data(work)
        self._work = work
        self._disconnect = connect(cluster or Cluster(), env_from)
        self._crew = Crew(told, env_from, silence)
        self._marks: dict[Path, Path] = {}

    def health(self) -> list[NodeHealth]:
        """What is seen of each node of the cluster."""
        return self._crew.health()

    def drain(self, node: str) -> None:
        """Give a node no more orders. Its workers end when their runs have; then it can be taken away.

        Args:
            node: its id, as `health` gives it.
        """
        self._crew.drain(node)

    def undrain(self, node: str) -> None:
        """Give a node orders again."""
        self._crew.undrain(node)

    async def _execute(self, order: RunOrder) -> RunResult:
        again, said, mark = False, "", self._mark(order)
        for _ in range(_DEATHS):
            hand = await self._crew.free()
            try:
                return await hand.perform(order, again, mark)
            except WorkerLost as lost:
                again, said = True, str(lost)
        # It may be this very order that kills them. The others must not be hit any more.
        for _ in range(_DEATHS_ALONE):
            try:
                hand = await self._crew.alone()
                try:
                    return await hand.perform(order, again, mark)
                finally:
                    await hand.close()
            except WorkerLost as lost:
                said = str(lost)
        return RunResult(order.id, "failed", detail=f"{_DEATHS + _DEATHS_ALONE} workers died with it; the last: {said}")

    def _mark(self, order: RunOrder) -> str:
        """A file among the traces, by which workers know that their folder is the same; empty without traces."""
        folder = Path(order.folder) if order.folder else self._work.folder
        if folder is None:
            return ""
        if folder not in self._marks:
            mark = Path(os.path.abspath(folder), f".ray-{secrets.token_hex(8)}")  # noqa: PTH100 (links stay)
            try:
                make_private_folder(mark.parent)
                write_private(mark, b"")
            except OSError as error:
                raise RolloutsError(
                    f"traces cannot be kept in {folder}: {error.strerror}; name another folder"
                ) from error
            self._marks[folder] = mark
        return str(self._marks[folder])

    async def _close(self) -> None:
        try:
            await self._crew.close()
        finally:
            for mark in self._marks.values():
                mark.unlink(missing_ok=True)
            self._disconnect()
            await self._work.aclose()
