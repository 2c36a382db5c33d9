"""One run being driven: a machine asks, and is answered by a model and by the executor.

Invariant: what the machine wants is done once and recorded before it is seen, and whatever happens the run ends with
a reason.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from concertino.core.budget import Budget
from concertino.core.events import Event, Planned, RunEnded, RunStarted
from concertino.core.model import ChatRequest, Reply, Sampling
from concertino.core.observation import CallFailed
from concertino.core.usage import NOTHING
from concertino.executor import Duplicates, Executor, Memory, PlanRun, Scope
from concertino.executor.model_call import StreamListener
from concertino.executor.text_teller import TextTeller
from concertino.pool.pool import Pool
from concertino.strategies import Act, Ask, Done, Machine
from concertino.strategies.base.answer_reader import WholeText
from concertino.traces import JournalSink, TraceMemory

from .answer_type import AnswerType, correction
from .eager import EagerDispatcher
from .run import Run, collect_rounds
from .run_input import PLAIN_INPUT, RunInput
from .run_log import listeners_of

Listener = Callable[[Event], None]
_STOPS = {"budget_exhausted": "budget", "deadline": "deadline", "queue_deadline": "deadline"}
"""Why a run ends when its model could not be asked, by the code of the failed request."""
_ANSWER_ATTEMPTS = 3
"""Requests that may correct an answer which is not of its type."""


class RequestIds:
    """Numbers the requests of one run, in the order in which they are first known: `ask.1`, `ask.2`, …

    A machine may know its next requests (`Machine.prefetchable`), and the loop may make those at once, so replies come
    in any order. Invariant: the numbers follow from the machine alone, so a run, its resumption and its replay number
    alike.
    """

    def __init__(self) -> None:
        self._count = 0
        self._early: list[tuple[str, Ask]] = []

    def name(self, step: Ask) -> str:
        """The id of what a machine asks for now: the one it was given early, or the next."""
        for place, (known, early) in enumerate(self._early):
            # Found by what is asked, since a machine may go another way than it foresaw.
            if early.role == step.role and list(early.messages) == list(step.messages):
                del self._early[place]
                return known
        return self._next()

    def prefetch(self, machine: Machine) -> list[tuple[str, Ask]]:
        """Requests that the machine will make too, as far as they were not known before; each with its id."""
        coming = [ask for ask in machine.prefetchable() if not self._knows(ask)]
        new = [(self._next(), ask) for ask in coming]
        self._early += new
        return new

    def _knows(self, ask: Ask) -> bool:
        return any(ask.role == known.role and ask.messages == known.messages for _, known in self._early)

    def _next(self) -> str:
        self._count += 1
        return f"ask.{self._count}"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What all runs of one orchestrator have in common.

    Attributes:
        executor: shared by several runs; without one, the run has its own.
        sampling: how models sample where the machine does not say it.
        eager: start calls while the model still writes.
        before: hooks before a call.
        after: hooks after a call.
        with_leader: binds the orchestrator's model to its role in a pool.
    """

    executor: Executor | None
    sampling: Sampling
    duplicates: Duplicates
    eager: bool
    before: Sequence[Callable[..., Any]]
    after: Sequence[Callable[..., Any]]
    with_leader: Callable[[Pool], Pool]


class RunLoop:
    """One run being driven.

    Attributes:
        settings: what the run has in common with others of its orchestrator.
        given: what it is given beside its question.
        rounds: how many rounds it may have.
        begun: the record of its start.
        memory: what an earlier process did in this run.
        elapsed: seconds that an earlier process, or the run it was forked from, spent.
        past: the scope that a fork continues.
        early: requests that were made before the machine asked, by id.
        ahead: calls that start while the model writes.
    """

    def __init__(
        self,
        settings: RunSettings,
        machine: Machine,
        pool: Pool,
        budget: Budget,
        rounds: int,
        begun: RunStarted,
        sink: JournalSink | None = None,
        memory: Memory | None = None,
        on_event: Listener | None = None,
        elapsed: float = 0.0,
        given: RunInput = PLAIN_INPUT,
    ) -> None:
        self.settings = settings
        self.given = given
        self.output: Any = None
        self.machine = machine
        self.pool = pool
        self.budget = budget
        self.rounds = rounds
        self.begun = begun
        self.sink = sink
        self.memory = memory
        self.on_event = on_event
        self.elapsed = elapsed
        self.executor: Executor | None = None
        self.scope: Scope | None = None
        self.past: Scope | None = None
        self.ended: RunEnded | None = None
        self.request_ids = RequestIds()
        self.early: dict[str, asyncio.Task[Reply]] = {}
        self.round = 0
        self.ahead: EagerDispatcher | None = None

    async def run(self) -> Run:
        """Drive the machine to its end. The run ends with a reason, also when it is cancelled or crashes."""
        shared = self.settings.executor
        executor = shared or Executor()
        try:
            self.open(executor)
            try:
                done = await self._typed(await self._drive())
            except asyncio.CancelledError:
                self.end(Done(None, "cancelled", "the caller cancelled the run"))
                raise
            except Exception as error:
                # Recorded as an end all the same; `Orchestrator.resume` continues after such a one.
                self.end(Done(None, "crashed", f"{type(error).__name__}: {error}"))
                raise
            self.end(done)
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
            listeners=listeners_of(
                self.on_event, self.begun, self.sink, remembers=self.memory is not None, forked=self.past is not None
            ),
            before=self.settings.before,
            after=self.settings.after,
            duplicates=self.settings.duplicates,
            elapsed=self.elapsed,
            deps=self.given.deps,
            streams=self.given.streams,
            approver=self.given.approver,
            decisions=self.given.decisions,
            spared=self.given.spared,
        )
        if self.past is None:
            scope.emit_result(self.begun, recalled=self.memory is not None)
        else:
            scope.resume_from(self.past, self.begun)
            scope.attachments = dict(self.past.attachments)
        if self.given.attachments and self.past is None:
            scope.attach("", self.given.attachments, recalled=self.memory is not None)
        return scope

    def fork(self, run_id: str, pool: Pool | None = None) -> RunLoop:
        """An independent run that continues from here, maybe with another pool; it has to be opened."""
        scope = self.scope
        assert scope is not None
        begun = replace(self.begun, run_id=run_id)
        seen = self.pool if pool is None else self.settings.with_leader(pool)
        machine, elapsed = self.machine.fork(), scope.now()
        twin = RunLoop(self.settings, machine, seen, self.budget, self.rounds, begun, elapsed=elapsed, given=self.given)
        # Copied, since both runs go on numbering from the past that they share.
        twin.past, twin.round, twin.request_ids = scope, self.round, copy.deepcopy(self.request_ids)
        return twin

    async def _drive(self) -> Done:
        """Do what the machine wants until it is done."""
        try:
            while True:
                step = self.machine.step()
                if isinstance(step, Done):
                    return step
                if isinstance(step, Ask):
                    await self.ask(step)
                else:
                    await self.act(step)
                    if self.scope is not None and self.scope.pending:
                        waiting = ", ".join(f"{asked.call_id} {asked.name}" for asked in self.scope.pending.values())
                        return Done(None, "suspended", f"waits for approval of {waiting}")
        finally:
            await self._stop_early_requests()

    async def ask(self, step: Ask) -> None:
        """Ask the model that plays the role, and tell the machine."""
        machine, executor, scope = self.machine, self.executor, self.scope
        assert executor is not None
        assert scope is not None
        if scope.seconds_left() <= 0:
            machine.finish("deadline", f"its {self.budget.seconds:g} s are over")
            return
        scope.transcript = step.messages
        # A machine that never names complete calls gains nothing from a stream, which costs more than a plain reply.
        if self.settings.eager and type(machine).complete_calls is not Machine.complete_calls:
            self.ahead = EagerDispatcher(machine, executor, scope, self.round + 1)
        try:
            reply = await self._reply(step, machine, executor, scope)
        except asyncio.CancelledError:
            await self._stop_early_calls({})
            raise
        except CallFailed as failed:
            await self._stop_early_calls({})
            code = failed.observation.error.code if failed.observation.error else ""
            stop = _STOPS.get(code, "model")
            # The request's own time limit passed, not the run's.
            if stop == "deadline" and scope.seconds_left() > 0:
                stop = "model"
            machine.finish(stop, str(failed))
            return
        machine.on_reply(reply)
        # The text led to no plan that could take over what was begun.
        if self.ahead is not None and not isinstance(machine.step(), Act):
            await self._stop_early_calls({})

    async def _reply(self, step: Ask, machine: Machine, executor: Executor, scope: Scope) -> Reply:
        """The reply that the machine asks for. Requests that it will make in any case begin at the same time."""
        name = self.request_ids.name(step)
        running = self.early.pop(name, None)
        # Without requests to foresee, this one needs no task of its own.
        if running is None and type(machine).prefetchable is Machine.prefetchable:
            return await self._request(step, name, executor, scope)
        if running is None:
            running = asyncio.ensure_future(self._request(step, name, executor, scope))
        for known, other in self.request_ids.prefetch(machine):
            self.early[known] = asyncio.ensure_future(self._request(other, known, executor, scope))
        try:
            return await running
        except asyncio.CancelledError:
            running.cancel()
            # Waited for, so that the request is settled and recorded before the run ends.
            await asyncio.wait({running})
            raise

    async def _request(self, step: Ask, name: str, executor: Executor, scope: Scope) -> Reply:
        # A pool need not bind every role of a strategy; the orchestrator's model plays the others.
        role = step.role if step.role in self.pool.roles else "orchestrator"
        if self.given is not PLAIN_INPUT:
            step = self.framed(step)
        request = ChatRequest(step.messages, [dict(t) for t in step.tools], step.sampling or self.settings.sampling)
        fresh = step.messages[len(step.messages) - step.fresh :]
        listener: StreamListener | None = self.ahead
        if scope.streams:
            listener = TextTeller(scope, name, step.part or step.role, self.machine.answer_reader, then=self.ahead)
        return await executor.ask(role, request, scope, call_id=name, role=step.role, fresh=fresh, listener=listener)

    def framed(self, step: Ask) -> Ask:
        """What the machine asks, as the model is asked it."""
        return self.given.frame.around(step) if self.given.frame else step

    # -- a typed answer --------------------------------------------------------------------------------------------

    async def _typed(self, done: Done) -> Done:
        """The end with an answer of its type. A text that is none goes back to the model, a few times."""
        wanted = self.given.answer_type
        if wanted is None or done.answer is None:
            return done
        text, attempt = done.answer, 0
        while True:
            value, wrong = wanted.read(text)
            if wrong is None:
                self.output = value
                return replace(done, answer=text)
            attempt += 1
            if attempt > _ANSWER_ATTEMPTS:
                shown = text if len(text) <= 200 else f"{text[:200]}..."
                return Done(None, "format", f"the answer is not of its type: {wrong.message}; it was: {shown}")
            try:
                text = await self._corrected(wanted, text, wrong.message, f"answer.{attempt}")
            except CallFailed as failed:
                error = failed.observation.error
                stop = _STOPS.get(error.code if error else "", "model")
                return Done(None, stop, f"the answer is not of its type: {wrong.message}; and asking again: {failed}")

    async def _corrected(self, wanted: AnswerType, text: str, wrong: str, name: str) -> str:
        """What the model makes of an answer that is not of its type."""
        executor, scope = self.executor, self.scope
        assert executor is not None
        assert scope is not None
        messages = correction(wanted.schema, self.begun.question, text, wrong)
        request = ChatRequest(messages, sampling=self.settings.sampling)
        listener = TextTeller(scope, name, "orchestrator", WholeText) if scope.streams else None
        reply = await executor.ask(
            "orchestrator", request, scope, call_id=name, role="orchestrator", fresh=messages, listener=listener
        )
        return reply.text

    async def _stop_early_requests(self) -> None:
        """Stop requests that began early and are not needed."""
        running, self.early = list(self.early.values()), {}
        for task in running:
            task.cancel()
        # Their ends are recorded already, and nobody waits for their replies.
        await asyncio.gather(*running, return_exceptions=True)

    async def _stop_early_calls(self, taken: Mapping[str, PlanRun]) -> None:
        """Stop calls that began early and are not part of the plan."""
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
        await self._stop_early_calls(begun)
        try:
            observations = await executor.run_plan(step.plan, scope, prefix=f"{step.round}.", begun=begun)
        except asyncio.CancelledError:
            for run in begun.values():
                # Each of these is a plan of its own, which `run_plan` does not stop.
                await executor.stop_plan(run)
            raise
        if not scope.pending:  # else the round is made again when its calls were decided about
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
            output=self.output,
            pending=list(scope.pending.values()) if scope is not None else [],
        )
