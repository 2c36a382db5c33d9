"""Rollouts in other processes: worker processes of this machine, or a cluster. This one only samples and trains.

    engine ── order ──► place (`concertino.rollouts`) ──► RolloutWork ── questions ──► PolicyServer ──► the seat here

A run keeps the seat that it has here, so it is asked for in the same batches as in this process, and its texts follow
from the same names and seeds. Invariants: a rollout is the same wherever it happens, but for the times in it; a worker
that dies costs no call that had ended (but of a tree, or in a world): another one continues from the trace; and the
processes end with the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from concertino import ConcertinoError, Sampling, UsageError
from concertino.rollouts import NodeHealth, Rollouts, RolloutsError, RunOrder, check_place, open_rollouts

from concertino_train.rollouts.gathering import Asks, Seat
from concertino_train.running.ranks import this_rank

from .placed_work import RolloutWork, digest_of, rollout_of
from .policy_socket import PolicyServer

if TYPE_CHECKING:
    from concertino_local.codec import Codec

    from concertino_train.config.config import TrainConfig
    from concertino_train.rollouts.engine import Player
    from concertino_train.rollouts.rollout import Rollout

_AT_ONCE = 4096
"""Runs under way: a run that waited for others to end would hold up their batches."""


class PlacedRollouts:
    """Where the runs of a training happen, if not in its process. On the event loop of the engine.

    Args:
        config: the training; `rollout.on` names the place.
        codec: of its policy.
        kinds: of questions, as `Assignment.source` has them.
        folder: of the traces, from which runs are continued; one of its own by default, which is removed at the end.
        beside: where its own folder is made; that of the system for temporary files by default.
        rank, ranks: of this process in the training.
    """

    def __init__(
        self,
        config: TrainConfig,
        codec: Codec,
        kinds: Sequence[str],
        folder: Path | None = None,
        beside: Path | None = None,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self._config, self._codec, self._kinds = config, codec, tuple(kinds)
        self._rank, self._ranks = rank, ranks
        self._folder, self._beside, self._own = folder, beside, contextlib.ExitStack()
        self._server = PolicyServer(config.rollout.listen)
        self._opening: asyncio.Task[Rollouts] | None = None

    async def play(self, player: Player, seat: Asks, seed: int, *, tree: int = 0) -> Rollout:
        """See `Place.play`.

        Raises:
            RolloutsError: the run could not be made, or the place cannot be opened.
            Exception: what the policy raised when it was asked.
        """
        try:
            order, rollouts = self._order(player, seed, tree), await self._opened()
            assert isinstance(seat, Seat)
            with self._server.seated(order.id, seat):
                async with contextlib.aclosing(rollouts.submit([order])) as results:
                    (result,) = [each async for each in results]
                failed = self._server.failed.get(order.id)
        finally:
            seat.leave()
            await player.run.close()
        if result.status != "done":
            raise failed or RolloutsError(f"rollout {player.name} of {player.group}: {result.detail}")
        assert self._folder is not None
        path = self._folder / f"{order.id}.trace.jsonl"
        return rollout_of(result, player.assignment, player.sample, path)

    async def health(self) -> Sequence[NodeHealth]:
        """What is seen of the worker processes or nodes."""
        return () if self._opening is None else (await self._opened()).health()

    async def close(self) -> None:
        """Stop what is under way, and end the workers."""
        try:
            if self._opening is not None:
                with contextlib.suppress(ConcertinoError, OSError):  # it was raised to who asked for a rollout
                    await (await self._opening).close()
        finally:
            await self._server.close()
            self._own.close()

    def _order(self, player: Player, seed: int, tree: int) -> RunOrder:
        assignment, run = player.assignment, player.run
        if assignment.source is None:
            raise UsageError(
                f"the question {assignment.task.id} is an object of this program, which worker processes cannot make "
                "again; name tasks and pool in the settings, or take rollout.on=local"
            )
        return RunOrder(
            question=assignment.text,
            task={
                "id": assignment.task.id,
                "name": player.name,
                "source": list(assignment.source),
                "digest": digest_of(assignment.task),
                "tree": tree,
            },
            pool=assignment.pool.id,
            sampling=Sampling(temperature=player.temperature),
            seed=seed,
            sample=player.sample,
            group=player.group,
            id=run.id,
        )

    async def _opened(self) -> Rollouts:
        """The place; all who ask meanwhile wait for the same."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="rollouts: opening a place")
        return await asyncio.shield(self._opening)

    async def _open(self) -> Rollouts:
        own = self._config.rollout
        if self._folder is None:
            if self._beside is not None:
                self._beside.mkdir(parents=True, exist_ok=True)
            own_folder = TemporaryDirectory(prefix="rollouts-", dir=self._beside)
            self._folder = Path(self._own.enter_context(own_folder))
        folder, address = self._folder, await self._server.start()
        folder.mkdir(parents=True, exist_ok=True)
        work = RolloutWork(self._config, self._codec, address, folder, self._kinds, self._rank, self._ranks)
        return open_rollouts(own.on, work, slots=_AT_ONCE, env_from=own.env)


def check_elsewhere(config: TrainConfig) -> bool:
    """Whether the runs of a training happen in other processes.

    Raises:
        UsageError: the settings name no place, or what cannot be done there.
    """
    own = config.rollout
    if not check_place(own.on):
        return False
    if own.share_calls:
        raise UsageError(
            f"rollout.share_calls with rollout.on={own.on}: rollouts of a group happen in different processes, which "
            "share no calls; leave one out"
        )
    if own.listen in ("", "0.0.0.0", "::"):
        raise UsageError(
            f"rollout.listen={own.listen!r}: workers are told this address; give one of this machine that they reach, "
            "such as 10.0.0.5"
        )
    if config.trainer.nodes > 1 and own.listen != "127.0.0.1":
        raise UsageError(
            f"rollout.on={own.on} with trainer.nodes={config.trainer.nodes}: rollout.listen is an address of one "
            "machine only; train on one machine, or take workers of each machine: rollout.on=local:4"
        )
    return True


def make_place(
    config: TrainConfig,
    codec: Codec,
    kinds: Sequence[str],
    folder: Path | None = None,
    beside: Path | None = None,
) -> PlacedRollouts | None:
    """Where the runs of a training happen; None for this process.

    Args:
        config: the training.
        codec: of the policy.
        kinds: of questions: `train`, `eval`, `measure`.
        folder: of the traces; by default one that is removed at the end.
        beside: where that one is made.

    Raises:
        UsageError: the settings name no place.
    """
    if not check_elsewhere(config):
        return None
    rank = this_rank()
    return PlacedRollouts(config, codec, kinds, folder, beside, rank.rank, rank.ranks)
