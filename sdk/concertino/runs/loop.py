"""One run being driven: a machine asks, and is answered by a model and by the executor.

Invariant: what the machine wants is done once and recorded before it is seen, and whatever happens the run ends with
a reason.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from concertino.core.approval import Deny
from concertino.core.budget import Budget
from concertino.core.events import Event, Planned, RunEnded, RunStarted, TextDelta
from concertino.core.logs import any_listens
from concertino.core.model import ChatRequest, Message, Reply, Sampling
from concertino.core.observation import CallFailed
from concertino.core.usage import NOTHING
from concertino.executor import Duplicates, Executor, Memory, PlanRun, Scope
from concertino.executor.error_messages import shorten
from concertino.executor.model_call import StreamListener
from concertino.executor.turns import Turns
from concertino.pool.pool import Pool
from concertino.strategies import Act, Ask, Done, Machine

from .eager import EagerDispatcher
from .run import Run, collect_rounds
from .run_input import PLAIN_INPUT, RunInput

if TYPE_CHECKING:
    from concertino.executor.guarding import Guarding
    from concertino.executor.text_teller import TextTeller
    from concertino.traces import JournalSink

    from .answer_type import AnswerType
    from .guards import RunGuards

Listener = Callable[[Event], None]
_STOPS = {"budget_exhausted": "budget", "deadline": "deadline", "queue_deadline": "deadline"}
"""Why a run ends when its model could not be asked, by the code of the failed request."""
_ANSWER_ATTEMPTS = 3
"""Requests that may correct an answer which is not of its type, or which a guard denied."""
UNHELD = ".unheld"
"""Ends the id of a request that is repeated without the schema, which its server refused."""


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


class AnswerFault(NamedTuple):
    """Why an answer must not be given.

    Attributes:
        stop: why the run ends, if no request corrects it.
        reason: for the model that corrects it.
        detail: for people.
        final: nobody is asked to correct it.
    """

    stop: str
    reason: str
    detail: str
    final: bool


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
        begin: makes the machine of a run from its question, pool, budget, and what a search of the pool had found.
        guarding: the guards; None without any.
    """

    executor: Executor | None
    sampling: Sampling
    duplicates: Duplicates
    eager: bool
    before: Sequence[Callable[..., Any]]
    after: Sequence[Callable[..., Any]]
    with_leader: Callable[[Pool], Pool]
    begin: Callable[[str, Pool, Budget, Sequence[str] | None], Machine]
    guarding: Guarding | None


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
        guards: at work in this run; None without any.
        teller: tells of the text of the last request; None where nobody listens.
        schema_refused: the model's server refused to hold the schema of the answer.
        given_back: the run, once it is over.
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
        self.guards: RunGuards | None = None
        self.teller: TextTeller | None = None
        self.schema_refused = False
        self.given_back: Run | None = None

    async def run(self) -> Run:
        """Drive the machine to its end. The run ends with a reason, also when it is cancelled or crashes."""
        shared = self.settings.executor
        executor = shared or Executor()
        try:
            if self.sink is not None and self.given.attachments and self.memory is None:
                await self.sink.keep(self.given.attachments)
            self.open(executor)
            try:
                if self.guards is None:
                    done = self._told(await self._accepted(await self._drive()))
                else:
                    done = await self._guarded(self.guards)
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
        return self.collect(over=True)

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
            listeners=self._listeners(),
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
        if self.past is not None:
            scope.resume_from(self.past, self.begun)
            scope.attachments = dict(self.past.attachments)
            return scope
        if self.settings.guarding is not None:
            from .guards import RunGuards

            scope.guarding = self.settings.guarding
            self.guards = RunGuards(scope.guarding, executor, scope)
        if not self._admits():
            self._record_start(scope)
        return scope

    def _listeners(self) -> list[Listener]:
        """Who hears of every event."""
        if not any_listens():
            return [self.on_event] if self.on_event is not None else []
        from .run_log import listeners_of

        remembers, forked = self.memory is not None, self.past is not None
        return listeners_of(self.on_event, self.begun, self.sink, remembers=remembers, forked=forked)

    def _admits(self) -> bool:
        """Whether guards look at the question before it is on record; a resumed run has it on record."""
        return self.guards is not None and self.guards.of_question and self.memory is None

    def _record_start(self, scope: Scope) -> None:
        recalled = self.memory is not None
        scope.emit_result(self.begun, recalled=recalled)
        if self.given.attachments:
            scope.attach("", self.given.attachments, recalled=recalled)

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

    async def _work(self) -> Done:
        return self._told(await self._accepted(await self._drive()))

    def _told(self, done: Done) -> Done:
        """The end, after its answer was told: as a whole, unless its pieces were told while it was written."""
        scope, answer = self.scope, done.answer
        assert scope is not None
        if scope.streams and answer is not None and (self.teller is None or "".join(self.teller.answer) != answer):
            scope.tell(TextDelta("answer", "orchestrator", "answer", answer, 1, scope.now()))
        return done

    async def _guarded(self, guards: RunGuards) -> Done:
        """The work of a run that has guards."""
        if self._admits():
            refused = await self._admit(guards)
            if refused is not None:
                return Done(None, "guard", refused)
        guards.begin_beside(self.begun.question)
        return await guards.until_halted(self._work())

    async def _admit(self, guards: RunGuards) -> str | None:
        """Have the question checked, and record that the run begins. Gives why it must end, None if it need not."""
        scope, asked = self.scope, self.begun.question
        assert scope is not None
        try:
            question, refused = await guards.question(asked)
            if question != asked:
                self.begun = replace(self.begun, question=question)
                scope.question = question
                self.machine = self.settings.begin(question, self.pool, self.budget, self.begun.setup.get("found"))
        finally:
            # Also when the run is cancelled meanwhile: whatever was asked of models is on record.
            checks, scope.events = scope.events, []
            self._record_start(scope)
            for event in checks:
                scope.emit_result(event)
        return refused

    async def _drive(self) -> Done:
        """Do what the machine wants until it is done."""
        turns = Turns.of(asyncio.get_running_loop())
        place = turns.number()
        try:
            while True:
                if (turn := turns.ask(place)) is not None:
                    await turn
                step = self.machine.step()
                if isinstance(step, Done):
                    return step
                if isinstance(step, Ask):
                    await self.ask(step)
                else:
                    await self.act(step)
                    if self.scope is not None and self.scope.pending:
                        waiting = ", ".join(f"{asked.call_id} {asked.name}" for asked in self.scope.pending.values())
                        kept = self.sink is not None or self.memory is not None
                        hint = "" if kept else "; the run has no trace, so it cannot be resumed"
                        return Done(None, "suspended", f"waits for approval of {waiting}{hint}")
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
        undecided = self.guards is not None and self.guards.undecided
        if self.settings.eager and not undecided and type(machine).complete_calls is not Machine.complete_calls:
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
            return await self._request(step, name, scope)
        if running is None:
            running = asyncio.ensure_future(self._request(step, name, scope))
        for known, other in self.request_ids.prefetch(machine):
            self.early[known] = asyncio.ensure_future(self._request(other, known, scope))
        try:
            return await running
        except asyncio.CancelledError:
            running.cancel()
            # Waited for, so that the request is settled and recorded before the run ends.
            await asyncio.wait({running})
            raise

    async def _request(self, step: Ask, name: str, scope: Scope) -> Reply:
        # A pool need not bind every role of a strategy; the orchestrator's model plays the others.
        role = step.role if step.role in self.pool.roles else "orchestrator"
        if self.given is not PLAIN_INPUT:
            step = self.framed(step)
        held = self._held if step.whole else None
        sampling = step.sampling or self.settings.sampling
        request = ChatRequest(step.messages, [dict(t) for t in step.tools], sampling, schema=held)
        fresh = step.messages[len(step.messages) - step.fresh :]
        listener: StreamListener | None = self.ahead
        if scope.streams:
            from concertino.executor.text_teller import TextTeller

            # With guards of the answer, nobody sees a piece of it before they have seen the whole.
            guarded = self.guards is not None and self.guards.of_answer
            reader = None if guarded else self.machine.answer_reader
            listener = self.teller = TextTeller(scope, name, step.part or step.role, reader, then=self.ahead)
        return await self._asked(role, request, name, step.role, fresh, listener)

    async def _asked(
        self,
        model: str,
        request: ChatRequest,
        name: str,
        role: str,
        fresh: Sequence[Message],
        listener: StreamListener | None,
    ) -> Reply:
        """A reply. If the server refuses the request's schema, it is asked again without it."""
        executor, scope = self.executor, self.scope
        assert executor is not None
        assert scope is not None
        # Not checked there: an answer of the wrong type does not fail the request, it goes back with the reason.
        ask = partial(executor.ask, model, scope=scope, role=role, fresh=fresh, listener=listener, checked=False)
        try:
            return await ask(request, call_id=name)
        except CallFailed as failed:
            error = failed.observation.error
            if request.schema is None or error is None or error.code != "rejected":
                raise
            # Each server takes a part of JSON Schema of its own; the prompt says it all.
            self.schema_refused = True
            return await ask(replace(request, schema=None), call_id=f"{name}{UNHELD}")

    @property
    def _held(self) -> Mapping[str, Any] | None:
        """The schema of the answer for a server that can hold it, as long as none has refused it."""
        wanted = self.given.answer_type
        return None if wanted is None or self.schema_refused else wanted.held

    def framed(self, step: Ask) -> Ask:
        """What the machine asks, as the model is asked it."""
        return self.given.frame.around(step) if self.given.frame else step

    # -- the answer ------------------------------------------------------------------------------------------------

    async def _accepted(self, done: Done) -> Done:
        """The end with an answer of its type that the guards let pass. Another text goes back to the model."""
        wanted, guards = self.given.answer_type, self.guards
        if guards is not None:
            await guards.passed()
        if done.answer is None or (wanted is None and (guards is None or not guards.of_answer)):
            return done
        text, attempt = done.answer, 0
        while True:
            text, fault = await self._checked(wanted, text, attempt + 1)
            if fault is None:
                return replace(done, answer=text)
            attempt += 1
            if fault.final or attempt > _ANSWER_ATTEMPTS:
                return Done(None, fault.stop, fault.detail)
            try:
                text = await self._corrected(wanted, text, fault.reason, f"answer.{attempt}")
            except CallFailed as failed:
                error = failed.observation.error
                stop = _STOPS.get(error.code if error else "", "model")
                return Done(None, stop, f"{fault.detail}; and asking again: {failed}")

    async def _checked(self, wanted: AnswerType | None, text: str, attempt: int) -> tuple[str, AnswerFault | None]:
        """The answer that type and guards leave, and why it must not be given."""
        wrong = self._wrong_type(wanted, text)
        if wrong is None and self.guards is not None and self.guards.of_answer:
            left, refused = await self.guards.answer(text, attempt)
            if refused is not None:
                final = not isinstance(refused, Deny)
                said = refused.reason if final else f"a guard denied the answer: {refused.reason}"
                return text, AnswerFault("guard", refused.reason, said, final)
            if left != text:
                text, wrong = left, self._wrong_type(wanted, left)
        if wrong is None:
            return text, None
        shown = text if len(text) <= 200 else f"{text[:200]}..."
        said = f"the answer is not of its type: {shorten(wrong)}; it was: {shown}"
        return text, AnswerFault("format", wrong, said, False)

    def _wrong_type(self, wanted: AnswerType | None, text: str) -> str | None:
        """What is wrong with an answer; the value of a right one is the run's output."""
        if wanted is None:
            return None
        self.output, wrong = wanted.read(text)
        return wrong or None

    async def _corrected(self, wanted: AnswerType | None, text: str, wrong: str, name: str) -> str:
        """What the model makes of an answer that cannot be given."""
        from .answer_type import correction

        scope = self.scope
        assert scope is not None
        messages = correction(wanted.schema if wanted else None, self.begun.question, text, wrong)
        request = ChatRequest(messages, sampling=self.settings.sampling, schema=self._held)
        if scope.streams:
            from concertino.executor.text_teller import TextTeller
            from concertino.strategies.base.answer_reader import WholeText

            guarded = self.guards is not None and self.guards.of_answer
            self.teller = TextTeller(scope, name, "orchestrator", None if guarded else WholeText)
        return (await self._asked("orchestrator", request, name, "orchestrator", messages, self.teller)).text

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
        if self.guards is not None:
            await self.guards.passed()
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
        if self.memory is None:
            return False
        from concertino.traces import TraceMemory

        return isinstance(self.memory, TraceMemory) and self.memory.planned(step.round)

    def end(self, done: Done) -> None:
        """Record the end."""
        scope = self.scope
        assert scope is not None
        detail = done.detail
        if scope.sink_failed:
            detail = f"{detail}; the trace is incomplete: {scope.sink_failed}".strip("; ")
        self.ended = RunEnded(done.answer, done.stop, detail, scope.ledger.usage.to_json(), scope.now())
        scope.emit_result(self.ended)

    def collect(self, over: bool = False) -> Run:
        """The run as far as it went; if nothing more comes to it, one and the same, packed."""
        if self.given_back is not None:
            return self.given_back
        scope, ended = self.scope, self.ended
        events: list[Event] = scope.events if scope is not None else [self.begun]
        run = Run(
            id=self.begun.run_id,
            question=self.begun.question,
            answer=ended.answer if ended else None,
            stop=ended.stop if ended else "cancelled",
            detail=ended.detail if ended else "",
            rounds=[] if over else collect_rounds(events),
            usage=scope.ledger.usage if scope is not None else NOTHING,
            seconds=ended.at if ended else 0.0,
            pool_id=self.pool.id,
            events=events,
            path=self.sink.path if self.sink is not None else None,
            output=self.output,
            pending=list(scope.pending.values()) if scope is not None else [],
        )
        if over:
            self.given_back = run.pack()
        return run
