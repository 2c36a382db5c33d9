"""Workers on every node of a cluster: as many as it has CPUs, as long as the node is there.

Once a second the crew looks at the cluster. A node that has joined gets workers; one that is gone or drained loses
them; a worker that died is replaced; one that says nothing for too long counts as dead. Ray is not asked to restart
actors: it restarts them where it likes, and never for a driver that is gone.

Invariant: an order is given to a worker that has said that it is ready. When a worker is gone, everybody who waits
for it is told at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from concertino.core.errors import ConcertinoError, PoolError
from concertino.core.logs import logger_of
from concertino.rollouts import NodeHealth, RolloutsError, RunOrder, RunResult

from .ray_worker import RayWorker

logger = logger_of("ray")
_LOOK = 1.0
"""Seconds between two looks at the cluster."""
_GRACE = 10.0
"""Seconds in which a run, or a worker, ends in order."""
_STARTS = 5
"""Workers that may die one after the other on nodes that live, before one is ready."""


class WorkerLost(Exception):
    """A worker is gone, or counts as gone, and with it what it had under way."""


class WorkerApart(Exception):
    """A worker does not see the folder of the traces, which is the message."""


@dataclass
class _Node:
    """What is counted of a node, also when it is gone."""

    host: str
    cpus: int
    alive: bool = True
    draining: bool = False
    done: int = 0
    lost: int = 0
    workers: set[Hand] = field(default_factory=set)
    retired: set[Hand] = field(default_factory=set)
    """Workers that get no more orders and have not ended yet."""


class Crew:
    """The workers.

    Args:
        told: the work as data.
        env_from: environment variables of the nodes that workers keep.
        silence: seconds after which a worker that says nothing counts as dead.
    """

    def __init__(self, told: Mapping[str, Any], env_from: Sequence[str], silence: float) -> None:
        self._told, self._env_from, self._silence = told, list(env_from), silence
        self._nodes: dict[str, _Node] = {}
        self._changed = asyncio.Event()
        self._failure: ConcertinoError | None = None
        self._stillborn = 0
        self._watching: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def free(self) -> Hand:
        """The worker that has the least to do; waits where there is none.

        Raises:
            PoolError: workers have another pool; says what differs.
            RolloutsError: workers cannot do this work, or cannot be started.
        """
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())
        while True:
            if self._failure is not None:
                raise self._failure
            ready = [hand for node in self._nodes.values() if not node.draining for hand in node.workers if hand.ready]
            if ready:
                return min(ready, key=lambda hand: hand.load)
            if self._watching.done():
                self._watching.result()
            self._changed.clear()
            await self._changed.wait()

    async def alone(self) -> Hand:
        """A new worker, anywhere, that nobody else uses; close it.

        Raises:
            WorkerLost: it is gone already.
        """
        hand = Hand(self._told, self._env_from, None, lambda _hand: None)
        try:
            await hand.begin()
        except BaseException:
            hand.lose("it was not ready")
            raise
        return hand

    def drain(self, node: str) -> None:
        """Give a node no more orders; its workers end when they have none. Undone by `undrain`."""
        self._nodes[node].draining = True
        for hand in list(self._nodes[node].workers):
            if not hand.load:
                self._retire(hand)

    def undrain(self, node: str) -> None:
        """Give a node orders again."""
        self._nodes[node].draining = False

    def health(self) -> list[NodeHealth]:
        """What is seen of each node."""
        now = time.monotonic()
        told = []
        for name, node in self._nodes.items():
            ready = [hand for hand in node.workers if hand.ready]
            state = "gone" if not node.alive else "draining" if node.draining else "ready" if ready else "starting"
            silent = max((now - hand.heard for hand in ready), default=0.0)
            living = node.workers | node.retired
            running = sum(hand.load for hand in living)
            done = node.done + sum(hand.done for hand in living)
            told.append(NodeHealth(name, node.host, state, len(ready), running, done, node.lost, silent))
        return told

    async def close(self) -> None:
        """End every worker, in order where it answers."""
        tasks = [*self._tasks, *([self._watching] if self._watching is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Retired workers too: the tasks that were ending them are cancelled above.
        left = [hand for node in self._nodes.values() for hand in node.workers | node.retired]
        await asyncio.gather(*(hand.close() for hand in left))

    # -- watching ------------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        try:
            while True:
                self._take_in(*await asyncio.to_thread(_seen))
                for name, node in self._nodes.items():
                    if node.alive and not node.draining:
                        for _ in range(node.cpus - len(node.workers)):
                            self._hire(name, node)
                    for hand in list(node.workers):
                        self._look_at(hand)
                await asyncio.sleep(_LOOK)
        except Exception as error:
            self._failure = RolloutsError(f"the cluster does not answer any more: {type(error).__name__}: {error}")
            self._changed.set()

    def _take_in(self, rows: Sequence[Mapping[str, Any]], leaving: Container[str]) -> None:
        there = {row["NodeID"]: row for row in rows if row["Alive"]}
        for name, row in there.items():
            if name not in self._nodes:
                cpus = int(row["Resources"].get("CPU", 0))
                self._nodes[name] = _Node(f"{row['NodeManagerAddress']}:{row['NodeManagerPort']}", cpus)
        for name, node in self._nodes.items():
            if node.alive and name not in there:
                node.alive = False
                for hand in list(node.workers):
                    hand.lose("its node is gone")
            elif name in leaving and not node.draining:
                self.drain(name)

    def _hire(self, name: str, node: _Node) -> None:
        hand = Hand(self._told, self._env_from, name, self._gone)
        node.workers.add(hand)
        self._spawn(self._begun(hand))

    async def _begun(self, hand: Hand) -> None:
        try:
            await hand.begin()
        except WorkerLost as lost:
            node = self._nodes[hand.node]
            hand.lose(f"{lost}")
            await asyncio.sleep(_LOOK)  # a node that died is then known as dead
            if node.alive and not node.draining:
                self._stillborn += 1
                if self._stillborn >= _STARTS:
                    self._failure = RolloutsError(f"{_STARTS} workers died before they were ready; the last: {lost}")
        except ConcertinoError as unfit:
            self._failure = unfit
        else:
            self._stillborn = 0
        self._changed.set()

    def _look_at(self, hand: Hand) -> None:
        node = self._nodes[hand.node]
        if node.draining and not hand.load:
            self._retire(hand)
        elif hand.ready and time.monotonic() - hand.heard > self._silence:
            hand.lose(f"it said nothing for {self._silence:g} s")
        elif hand.ready:
            hand.listen()

    def _retire(self, hand: Hand) -> None:
        node = self._nodes[hand.node]
        node.workers.discard(hand)
        node.retired.add(hand)
        self._spawn(hand.close())

    def _gone(self, hand: Hand) -> None:
        node = self._nodes[hand.node]
        node.lost += hand in node.workers  # one that was retired ended as it should
        node.workers.discard(hand)
        node.retired.discard(hand)
        node.done += hand.done
        self._changed.set()

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Hand:
    """One worker, as the driver holds it."""

    def __init__(
        self, told: Mapping[str, Any], env_from: Sequence[str], node: str | None, gone: Callable[[Hand], None]
    ) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        where = "SPREAD" if node is None else NodeAffinitySchedulingStrategy(node, soft=False)
        self.node = node or ""
        self.actor = (
            ray.remote(RayWorker)
            .options(
                num_cpus=0 if node is None else 1,
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=100_000,
                scheduling_strategy=where,
            )
            .remote(told, env_from)
        )
        self.ready = False
        self.heard = time.monotonic()
        self.pid = 0
        self.apart = False
        self.done = 0
        self._gone = gone
        self._lost = ""
        self._kills = True
        self._open: dict[str, asyncio.Future[RunResult | None]] = {}
        self._listening: asyncio.Future[Any] | None = None

    @property
    def load(self) -> int:
        """Orders that it has."""
        return len(self._open)

    async def begin(self) -> None:
        """Have it make the work.

        Raises:
            WorkerLost: it is gone.
            PoolError, RolloutsError: it cannot do this work; says why.
        """
        told = _fit(await self._asked(self.actor.begin.remote()))
        self.pid, self.ready, self.heard = told["pid"], True, time.monotonic()

    async def perform(self, order: RunOrder, again: bool, mark: str, keeper: Any) -> RunResult:
        """Have it carry out an order. Cancelled, it waits until the run has stopped there, too.

        Raises:
            WorkerLost: it is gone, or what it did does not count.
            WorkerApart: it does not see the folder of the traces, and has no keeper.
        """
        if self._lost:
            raise WorkerLost(self._lost)
        result: asyncio.Future[RunResult | None] = asyncio.get_running_loop().create_future()
        self._open[order.id] = result
        asking = asyncio.ensure_future(self._asked(self.actor.perform.remote(order.to_json(), again, mark, keeper)))
        asking.add_done_callback(lambda ended: self._ended(result, ended))
        try:
            # Not awaited itself, which a cancellation would reach: its end is still to come then.
            await asyncio.wait([result])
        except asyncio.CancelledError:
            with contextlib.suppress(WorkerLost, TimeoutError):
                await asyncio.wait_for(self._asked(self.actor.stop.remote(order.id)), _GRACE)
            raise
        finally:
            self._open.pop(order.id, None)
        found = result.result()
        if found is None:
            raise WorkerLost("it was stopped")
        self.done += 1
        return found

    def _ended(self, result: asyncio.Future[RunResult | None], asking: asyncio.Future[Any]) -> None:
        error = None if asking.cancelled() else asking.exception()
        if isinstance(error, WorkerLost):
            self.lose(f"{error}")
        if result.done():
            return
        try:
            if error is not None:
                raise error
            told = None if asking.cancelled() else asking.result()
            result.set_result(None if told is None else RunResult.from_json(_fit(told)))
        except Exception as failure:
            result.set_exception(failure)
            result.exception()  # nobody may ask for it any more
        self.heard = time.monotonic()

    def listen(self) -> None:
        """Ask whether it lives, unless it is asked already."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.ensure_future(self._asked(self.actor.pulse.remote()))
            self._listening.add_done_callback(self._heard)

    def _heard(self, asking: asyncio.Future[Any]) -> None:
        if asking.cancelled():
            return
        error = asking.exception()
        if error is None:
            self.heard = time.monotonic()
        elif isinstance(error, WorkerLost):
            self.lose(f"{error}")

    def lose(self, why: str) -> None:
        """Count it as dead: who waits for it is told, and it is killed, should it live."""
        if self._lost:
            return
        import ray

        self._lost, self.ready = why, False
        for result in self._open.values():
            if not result.done():
                result.set_exception(WorkerLost(why))
                result.exception()  # nobody may ask for it any more
        if self._open:
            logger.warning("a worker is gone with %d runs, which are continued in another: %s", len(self._open), why)
        if self._kills:
            with contextlib.suppress(Exception):  # the cluster itself may be gone
                ray.kill(self.actor, no_restart=True)
        self._gone(self)

    async def close(self) -> None:
        """Stop its runs in order, and end it."""
        if not self._lost and self.ready:
            with contextlib.suppress(WorkerLost, TimeoutError):
                await asyncio.wait_for(self._asked(self.actor.close.remote()), _GRACE)
        self.lose("it was closed")

    @staticmethod
    async def _asked(reference: Any) -> Any:
        """What a call of the actor gives.

        Raises:
            WorkerLost: its process or node is gone.
        """
        from ray.exceptions import RayError

        try:
            return await asyncio.wrap_future(reference.future())
        except RayError as error:
            # Its text tells in many lines what is known of the death; the first says what happened.
            said = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise WorkerLost(f"{type(error).__name__}: {said[0] if said else ''}") from None


def _seen() -> tuple[list[Mapping[str, Any]], Container[str]]:
    """The nodes of the cluster, and those that `ray drain-node` or a cloud takes away soon."""
    import ray
    from ray._private import state

    # Ray has no public name for it; versions before 2.9 have none at all.
    draining = getattr(state.state, "get_draining_nodes", dict)
    return ray.nodes(), draining()


def _fit(told: dict[str, Any]) -> dict[str, Any]:
    if "unfit" in told:
        kind = PoolError if told["kind"] == "PoolError" else RolloutsError
        raise kind(f"a worker of the cluster cannot do this work: {told['unfit']}")
    if "apart" in told:
        raise WorkerApart(told["apart"])
    if "over" in told:
        raise WorkerLost(told["over"])
    return told
