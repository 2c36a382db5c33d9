"""Rollouts in other processes: worker processes of this machine, or a cluster. This one only samples and trains.

    engine ── order ──► place (`concertino.rollouts`) ──► RolloutWork ── questions ──► PolicyServer ──► the seat here

A run keeps the seat that it has here, so it is asked for in the same batches as in this process, and its texts follow
from the same names and seeds. Invariants: a rollout is the same wherever it happens, but for the times in it; a worker
that dies costs no call that had ended: another one continues from the trace; and the processes end with the engine.
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

from .placed_work import RolloutWork, rollout_of
from .policy_socket import PolicyServer

if TYPE_CHECKING:
    from concertino_local.codec import Codec

    from concertino_train.config.config import TrainConfig
    from concertino_train.rollouts.engine import Player
    from concertino_train.rollouts.rollout import Rollout


class PlacedRollouts:
    """Where the runs of a training happen, if not in its process. On the event loop of the engine.

    Args:
        config: the training; `rollout.on` names the place.
        codec: of its policy.
        kinds: of questions, as `Assignment.source` has them.
        folder: of the traces, from which runs are continued; one of its own by default, which is removed at the end.
        rank, ranks: of this process in the training.
    """

    def __init__(
        self,
        config: TrainConfig,
        codec: Codec,
        kinds: Sequence[str],
        folder: Path | None = None,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self._config, self._codec, self._kinds = config, codec, tuple(kinds)
        self._rank, self._ranks = rank, ranks
        self._folder, self._own = folder, contextlib.ExitStack()
        self._server = PolicyServer(config.rollout.listen)
        self._opening: asyncio.Task[Rollouts] | None = None

    async def play(self, player: Player, seat: Asks, seed: int, *, tree: int = 0) -> Rollout:
        """Have one run made; the one that was begun here is closed.

        Args:
            player: what is to be played.
            seat: its place among those that ask here.
            seed: of everything that is drawn.
            tree: texts at each turn, where a tree is grown.

        Raises:
            RolloutsError: the run could not be made, or there is no place to make runs.
            ConcertinoError: as the policy raised.
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
        return rollout_of(result, player.name, player.assignment, player.sample, path)

    def health(self) -> Sequence[NodeHealth]:
        """What is seen of the worker processes or nodes."""
        task = self._opening
        return task.result().health() if task is not None and task.done() and not task.exception() else ()

    async def close(self) -> None:
        """Stop what is under way, and end the workers."""
        if self._opening is not None:
            with contextlib.suppress(ConcertinoError):  # it was raised to who asked for a rollout
                await (await self._opening).close()
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
            self._folder = Path(self._own.enter_context(TemporaryDirectory(prefix="concertino-rollouts-")))
        folder, address = self._folder, await self._server.start()
        folder.mkdir(parents=True, exist_ok=True)
        work = RolloutWork(self._config, self._codec, address, folder, self._kinds, self._rank, self._ranks)
        return open_rollouts(own.on, work, slots=own.tool_threads, env_from=own.env)


def make_place(
    config: TrainConfig, codec: Codec, kinds: Sequence[str], folder: Path | None = None
) -> PlacedRollouts | None:
    """Where the runs of a training happen; None for this process.

    Args:
        config: the training.
        codec: of the policy.
        kinds: of questions: `train`, `eval`, `measure`.
        folder: of the traces; by default one that is removed at the end.

    Raises:
        UsageError: the settings name no place.
    """
    if not check_place(config.rollout.on):
        return None
    rank = this_rank()
    return PlacedRollouts(config, codec, kinds, folder, rank.rank, rank.ranks)
