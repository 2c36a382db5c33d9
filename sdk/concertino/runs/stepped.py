"""A run whose holder drives it, step by step: for training, for searches over runs, for tests.

    run = Orchestrator(strategy=..., executor=executor).stepped(question, pool=pool)
    while not run.done:
        if isinstance(run.step, Ask):
            run.on_reply(reply)             # the holder plays the model, and says what it took
        else:
            await run.act()             # the executor runs the plan
    finished = await run.close()

Many of them are driven at once, so that one batch of a model answers those that ask; and a run is copied at any point
(`fork`), so that several continuations of one past are tried. Budget, events and records are those of every other run.

A run with a trace is gone through again after a crash: the holder tells it what `recorded` says, as long as it says
anything, and the executor recalls the calls.

Invariant: what is told and done is recorded as `Orchestrator.run` records it, so a trace of a stepped run is replayed
and shown like any other; two forks share nothing but what lies behind them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Self

from concertino.core.errors import UsageError
from concertino.core.events import Asked, Replied
from concertino.core.model import Reply
from concertino.core.observation import Observation, Status
from concertino.core.usage import Usage
from concertino.strategies import Act, Ask, Done, Machine, Step

from .loop import RunLoop
from .run import Run

if TYPE_CHECKING:
    from pathlib import Path

    from concertino.executor import Executor, Scope
    from concertino.pool.pool import Pool


class SteppedRun:
    """One run, driven by its holder. `Orchestrator.stepped` makes it.

    Use it as an async context manager, or call `close` when done.
    """

    def __init__(self, drive: RunLoop, executor: Executor) -> None:
        self._drive = drive
        self._executor = executor
        self._open = True
        drive.open(executor)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def id(self) -> str:
        """The run's id."""
        return self._drive.begun.run_id

    @property
    def path(self) -> Path | None:
        """The file of the trace; None without one, and where a run that is over is gone through again."""
        return self._drive.sink.path if self._drive.sink is not None else None

    @property
    def question(self) -> str:
        """The user's question."""
        return self._drive.begun.question

    @property
    def pool(self) -> Pool:
        """What may be called."""
        return self._drive.pool

    @property
    def step(self) -> Step:
        """What the run wants now: `Ask`, `Act` or `Done`. Reading it changes nothing."""
        step = self._drive.machine.step()
        return self._drive.framed(step) if isinstance(step, Ask) else step

    @property
    def machine(self) -> Machine:
        """The strategy's machine, to look at; only this run moves it."""
        return self._drive.machine

    @property
    def done(self) -> bool:
        """Whether the run is over."""
        return isinstance(self.step, Done)

    @property
    def usage(self) -> Usage:
        """What was consumed so far."""
        return self._scope.ledger.usage

    @property
    def recorded(self) -> Reply | None:
        """What an earlier process was answered to the question of now; None where the trace has no answer to it."""
        step, memory = self.step, self._drive.memory
        if memory is None or not isinstance(step, Ask):
            return None
        # Looked up with a copy, since naming a request counts it.
        name = copy.deepcopy(self._drive.request_ids).name(step)
        seen = memory.recall(name, "", list)
        return None if seen is None else Reply.from_json(seen.content)

    # -- driving ---------------------------------------------------------------------------------------------------

    def on_reply(self, reply: Reply, seconds: float = 0.0) -> None:
        """Answer an `Ask` in the model's place.

        Args:
            reply: what it says; its usage is priced as the model's in the pool is, and charged.
            seconds: how long it took.

        Raises:
            UsageError: the run does not ask now.
        """
        step = self._expect(Ask)
        assert isinstance(step, Ask)
        scope, drive = self._scope, self._drive
        role = step.role if step.role in drive.pool.roles else "orchestrator"
        spec = drive.pool.model(role)
        # Numbered as the run loop numbers requests, so that a trace of this run replays.
        recalled = self.recorded is not None
        name, ended = drive.request_ids.name(step), scope.now()
        used, started = reply.usage, ended - seconds
        priced = spec.prices
        usd = used.usd or (priced.cost_of(used) if priced else 0.0)
        usage = used._replace(usd=usd, seconds=seconds, unpriced=int(bool(used.tokens and not usd and priced is None)))
        scope.transcript = step.messages
        fresh = list(step.messages[len(step.messages) - step.fresh :])
        scope.emit_result(Asked(name, step.role, spec.name, fresh, started), recalled=recalled)
        seen = Observation(name, spec.name, Status.OK, None, None, usage, 1, started, ended)
        scope.emit_result(Replied(name, step.role, reply, seen), recalled=recalled)
        # Charged without a reservation, since the holder's model has spent it already.
        scope.ledger.charge(usage)
        drive.machine.on_reply(reply)

    async def ask(self) -> None:
        """Answer an `Ask` by the model of the pool that plays the role.

        Raises:
            UsageError: the run does not ask now.
        """
        step = self._expect(Ask)
        assert isinstance(step, Ask)
        await self._drive.ask(step)

    async def act(self) -> None:
        """Run the plan of an `Act` and show the machine its observations.

        Raises:
            UsageError: the run has no plan now.
        """
        step = self._expect(Act)
        assert isinstance(step, Act)
        await self._drive.act(step)

    def finish(self, stop: str, detail: str = "") -> None:
        """End the run from outside, for one of `STOP_REASONS`; the machine may still ask for a last answer."""
        self._drive.machine.finish(stop, detail)

    # -- copies and ends -------------------------------------------------------------------------------------------

    def fork(self, run_id: str = "", pool: Pool | None = None) -> SteppedRun:
        """An independent copy that continues from here, with the past, its spending and its time included.

        Args:
            run_id: of the copy.
            pool: with other members instead of those that keep a state; by default members are shared.

        Raises:
            UsageError: the run is closed.
        """
        if not self._open:
            raise UsageError(f"run {self.id} is closed; fork it before")
        return SteppedRun(self._drive.fork(run_id or f"{self.id}-fork", pool), self._executor)

    def collect(self) -> Run:
        """The run as far as it went; `stop` is `cancelled` while it is not over."""
        return self._drive.collect()

    async def close(self) -> Run:
        """End the run and release what it holds. May be called again."""
        if self._open:
            self._open = False
            step = self.step
            self._drive.end(step if isinstance(step, Done) else Done(None, "cancelled", "its holder closed the run"))
            await self._executor.release(self._scope)
            if self._drive.sink is not None:
                self._drive.sink.close()
        return self.collect()

    @property
    def _scope(self) -> Scope:
        scope = self._drive.scope
        assert scope is not None
        return scope

    def _expect(self, kind: type[Ask] | type[Act]) -> Step:
        step = self.step
        if not self._open or not isinstance(step, kind):
            now = "is closed" if not self._open else f"wants {type(step).__name__}"
            raise UsageError(f"run {self.id} {now}; {kind.__name__.lower()} was expected")
        return step
