"""The place itself: orders go to workers of a Ray cluster, and again to others when these die.

    driver ── order, again? ──► RayWorker (one on each CPU) ── Work.perform ──► trace, in a folder that all nodes have,
           ◄── result, small ──                                                 else through a JournalKeeper, beside the
                                                                                driver

Invariants: results are small and come straight back, and nothing waits in Ray's store; an order is issued again only
when its worker is gone or counts as gone, and then takes its trace over. A trace is in the folder of the driver, and
a worker that continues a run has all of it: a worker that could not have it would pay for its calls again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from concertino.core.errors import UsageError
from concertino.core.private_files import make_private_folder, write_private
from concertino.rollouts import NodeHealth, Rollouts, RolloutsError, RunOrder, RunResult, Work
from concertino.rollouts.ordered_work import work_data

from .cluster import connect
from .crew import Crew, Hand, WorkerApart, WorkerLost
from .journal_keeper import begin_keeper, end_keeper
from .words import Cluster

Journals = Literal["auto", "shared", "streamed"]
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
        journals: how traces come into their folder: `shared`, workers write them there, and who does not see the folder
            is refused; `streamed`, workers send what they write to the driver's node; `auto`, those that do not see the
            folder send.

    Raises:
        UsageError: the work holds what cannot be sent to another process, or `journals` is none of these.
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
        journals: Journals = "auto",
    ) -> None:
        super().__init__(slots)
        if journals not in get_args(Journals):
            raise UsageError(f"journals={journals!r}: expected one of {', '.join(get_args(Journals))}")
        told = work_data(work)
        self._work = work
        self._disconnect = connect(cluster or Cluster(), env_from)
        self._crew = Crew(told, env_from, silence)
        self._marks: dict[Path, Path] = {}
        self._journals = journals
        self._keeper: Any = None

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
        try:
            return await self._issued(order)
        except BaseException:
            if self._keeper is not None:
                self._keeper.drop.remote(order.id)  # its worker may have died with it
            raise

    async def _issued(self, order: RunOrder) -> RunResult:
        again, said, mark = False, "", self._mark(order)
        for _ in range(_DEATHS):
            hand = await self._crew.free()
            try:
                return await self._carried_out(hand, order, again, mark)
            except WorkerLost as lost:
                again, said = True, str(lost)
        # It may be this very order that kills them. The others must not be hit any more.
        for _ in range(_DEATHS_ALONE):
            try:
                hand = await self._crew.alone()
                try:
                    return await self._carried_out(hand, order, again, mark)
                finally:
                    await hand.close()
            except WorkerLost as lost:
                said = str(lost)
        return RunResult(order.id, "failed", detail=f"{_DEATHS + _DEATHS_ALONE} workers died with it; the last: {said}")

    async def _carried_out(self, hand: Hand, order: RunOrder, again: bool, mark: str) -> RunResult:
        streamed = mark and (hand.apart or self._journals == "streamed")
        try:
            return await hand.perform(order, again, mark, self._kept() if streamed else None)
        except WorkerApart as folder:
            if self._journals == "shared":
                raise RolloutsError(
                    f"{folder} is not the folder that the driver sees, so runs could not be continued elsewhere, and "
                    "would be paid for again; name a folder that all nodes share, or use journals='streamed'"
                ) from None
            hand.apart = True
            return await hand.perform(order, again, mark, self._kept())

    def _kept(self) -> Any:
        """The actor that writes traces for workers that do not see their folder."""
        if self._keeper is None:
            self._keeper = begin_keeper()
        return self._keeper

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
            if self._keeper is not None:
                end_keeper(self._keeper)
            self._disconnect()
            await self._work.aclose()
