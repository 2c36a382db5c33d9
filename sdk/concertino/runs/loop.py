"""One run being driven: a machine asks, and is answered by a model and by the executor.

Invariant: what the machine wants is done once and recorded before it is seen, and whatever happens the run ends with
a reason.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from concertino.core.budget import Budget
from concertino.core.events import Event, Planned, RunEnded, RunStarted
from concertino.core.model import ChatRequest, Reply
from concertino.core.observation import CallFailed
from concertino.core.usage import NOTHING
from concertino.executor import Executor, Scope
from concertino.executor.model_call import ask
from concertino.pool.pool import Pool
from concertino.strategies import Act, Ask, Done, Machine
from concertino.traces import JournalSink, TraceMemory

from .eager import EagerDispatcher
from .request_ids import RequestIds
from .run import Run, collect_rounds

if TYPE_CHECKING:
    from concertino.executor import Memory
    from concertino.executor.plan_run import PlanRun

    from .orchestrator import Orchestrator

Listener = Callable[[Event], None]
_STOPS = {"budget_exhausted": "budget", "deadline": "deadline", "queue_deadline": "deadline"}
"""Why a run ends when its model could not be asked, by the code of the failed request."""


class RunLoop:
    """One run being driven."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        machine: Machine,
        pool: Pool,
        budget: Budget,
        begun: RunStarted,
        sink: JournalSink | None,
        memory: Memory | None,
        on_event: Listener | None,
        elapsed: float = 0.0,
    ) -> None:
        self.orchestrator = orchestrator
        self.machine = machine
        self.pool = pool
        self.budget = budget
        self.begun = begun
        self.sink = sink
        self.memory = memory
        self.on_event = on_event
        self.elapsed = elapsed
        self.executor: Executor | None = None
        self.scope: Scope | None = None
        self.past: Scope | None = None
        self.ended: RunEnded | None = None
        self.line = RequestIds()
        self.early: dict[str, asyncio.Task[Reply]] = {}
        self.round = 0
        self.ahead: EagerDispatcher | None = None
        self.rounds = orchestrator._rounds(budget)

    async def run(self) -> Run:
        shared = self.orchestrator.executor
        executor = shared or Executor()
        try:
            await self._run(executor)
        finally:
            if shared is None:
                await executor.aclose()
            elif self.scope is not None:
                await shared.release(self.scope)
            if self.sink is not None:
                self.sink.close()
        return self.collect()

    def open(self, executor: Executor) -> Scope:
        """Open the run's scope on the current event loop, and record that it begins."""
        self.executor = executor
        scope = self.scope = executor.open(
            self.pool,
            run_id=self.begun.run_id,
            question=self.begun.question,
            budget=self.budget,
            sink=self.sink,
            memory=self.memory,
            listeners=[self.on_event] if self.on_event else [],
            before=self.orchestrator.before,
            after=self.orchestrator.after,
            duplicates=self.orchestrator.duplicates,
            elapsed=self.elapsed,
        )
        if self.past is None:
            scope.emit_result(self.begun, recalled=self.memory is not None)
        else:
            scope.resume_from(self.past, self.begun)
        return scope

    def fork(self, run_id: str, pool: Pool | None = None) -> RunLoop:
        """An independent run that continues from here, maybe with another pool; it has to be opened."""
        scope = self.scope
        assert scope is not None
        begun = replace(self.begun, run_id=run_id)
        seen = self.pool if pool is None else self.orchestrator._with_model(pool)
        twin = RunLoop(self.orchestrator, self.machine.fork(), seen, self.budget, begun, None, None, None, scope.now())
        twin.past, twin.round, twin.line = scope, self.round, copy.deepcopy(self.line)
        return twin

    async def _run(self, executor: Executor) -> None:
        self.open(executor)
        try:
            try:
                done = await self._drive()
            finally:
                await self._forget_early()
        except asyncio.CancelledError:
            self.end(Done(None, "cancelled", "the caller cancelled the run"))
            raise
        except Exception as error:
            self.end(Done(None, "crashed", f"{type(error).__name__}: {error}"))
            raise
        self.end(done)

    async def _drive(self) -> Done:
        while True:
            step = self.machine.step()
            if isinstance(step, Done):
                return step
            if isinstance(step, Ask):
                await self.ask(step)
            else:
                await self.act(step)

    async def ask(self, step: Ask) -> None:
        """Ask the model that plays the role, and tell the machine."""
        machine, executor, scope = self.machine, self.executor, self.scope
        assert executor is not None
        assert scope is not None
        if scope.seconds_left() <= 0:
            machine.finish("deadline", f"its {self.budget.seconds:g} s are over")
            return
        scope.transcript = step.messages
        if self.orchestrator.eager and type(machine).complete_calls is not Machine.complete_calls:
            self.ahead = EagerDispatcher(machine, executor, scope, self.round + 1)
        try:
            reply = await self._reply(step, machine, executor, scope)
        except asyncio.CancelledError:
            await self._leave_behind({})
            raise
        except CallFailed as failed:
            await self._leave_behind({})
            code = failed.observation.error.code if failed.observation.error else ""
            stop = _STOPS.get(code, "model")
            if stop == "deadline" and scope.seconds_left() > 0:
                stop = "model"
            machine.finish(stop, str(failed))
            return
        machine.on_reply(reply)
        if self.ahead is not None and not isinstance(machine.step(), Act):
            await self._leave_behind({})

    async def _reply(self, step: Ask, machine: Machine, executor: Executor, scope: Scope) -> Reply:
        """What the machine asks for; with it begins whatever it will ask for in any case."""
        name = self.line.name(step)
        running = self.early.pop(name, None)
        if running is None and type(machine).prefetchable is Machine.prefetchable:
            return await self._request(step, name, executor, scope)
        if running is None:
            running = asyncio.ensure_future(self._request(step, name, executor, scope))
        for known, other in self.line.prefetch(machine):
            self.early[known] = asyncio.ensure_future(self._request(other, known, executor, scope))
        try:
            return await running
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait({running})
            raise

    async def _request(self, step: Ask, name: str, executor: Executor, scope: Scope) -> Reply:
        role = step.role if step.role in self.pool.roles else "orchestrator"
        request = ChatRequest(step.messages, [dict(t) for t in step.tools], step.sampling or self.orchestrator.sampling)
        fresh = step.messages[len(step.messages) - step.fresh :]
        reply, _ = await ask(executor, scope, role, request, name, role=step.role, fresh=fresh, listener=self.ahead)
        return reply

    async def _forget_early(self) -> None:
        """Stop requests that were made early and are not needed."""
        running, self.early = list(self.early.values()), {}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _leave_behind(self, taken: Mapping[str, PlanRun]) -> None:
        """Stop what was begun early and is not part of a plan."""
        if self.ahead is not None:
            ahead, self.ahead = self.ahead, None
            await ahead.stop(but=taken)

    async def act(self, step: Act) -> None:
        """Run a plan, and show the machine its observations."""
        machine, executor, scope = self.machine, self.executor, self.scope
        assert executor is not None
        assert scope is not None
        self.round = step.round
        scope.emit_result(Planned(step.round, step.plan, scope.now(), step.issues), recalled=self._was_planned(step))
        begun = self.ahead.taken_by(step.plan) if self.ahead is not None else {}
        await self._leave_behind(begun)
        try:
            observations = await executor.run_plan(step.plan, scope, prefix=f"{step.round}.", begun=begun)
        except asyncio.CancelledError:
            for run in begun.values():
                await executor.stop_plan(run)
            raise
        machine.observe(observations, scope.remaining(self.budget, self.rounds - step.round))

    def _was_planned(self, step: Act) -> bool:
        memory = self.memory
        return isinstance(memory, TraceMemory) and memory.planned(step.round)

    def end(self, done: Done) -> None:
        """Record the end."""
        scope = self.scope
        assert scope is not None
        detail = done.detail
        if scope.sink_failed:
            detail = f"{detail}; the trace is incomplete: {scope.sink_failed}".strip("; ")
        self.ended = RunEnded(done.answer, done.stop, detail, scope.ledger.usage.to_json(), scope.now())
        scope.emit_result(self.ended)

    def collect(self) -> Run:
        """The run as far as it went."""
        scope, ended = self.scope, self.ended
        events: list[Event] = scope.events if scope is not None else [self.begun]
        return Run(
            id=self.begun.run_id,
            question=self.begun.question,
            answer=ended.answer if ended else None,
            stop=ended.stop if ended else "cancelled",
            detail=ended.detail if ended else "",
            rounds=collect_rounds(events),
            usage=scope.ledger.usage if scope is not None else NOTHING,
            seconds=ended.at if ended else 0.0,
            pool_id=self.pool.id,
            events=events,
            path=self.sink.path if self.sink is not None else None,
        )
