"""The one lifecycle of everything that an executor runs, from the moment it may start to its one observation.

    new -> queued -> started -> running -> over
            gates     task      reserve, attempt 1..n, ladder of stopping     settle, record, deliver

An `Execution` has two kinds: a call of a tool or agent (`call.MemberCall`) and a request to a model
(`model_call.ModelCall`). They differ in what they cost, how one attempt is made, and what the trace keeps.

Plugin code runs inside the execution's own task. When the deadline passes the ladder begins: cancel, wait `grace`,
cancel again, wait, close the coroutine, give it up. Nobody waits longer than that for a plugin: the observation is
delivered by the ladder if the task does not deliver it. Whatever a plugin raises, `SystemExit` included, is this
execution's EXEC_ERR. What plugin code leaves in the background ends with it.

Invariants: each execution is concluded exactly once, and then delivered to its owner; what it was charged replaces what
it had reserved; it is recorded before anybody sees it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any, Literal, Protocol

from concertino.core.budget import Amount
from concertino.core.events import Event, Retried, Stalled
from concertino.core.known_secrets import without_secrets
from concertino.core.model import ChatRequest, Reply
from concertino.core.observation import CallFailed, ErrorInfo, Observation, Status
from concertino.core.plan import Plan
from concertino.core.provider_error import FailureClass
from concertino.core.usage import Usage

from . import error_messages
from .approval import PENDING, Suspension, is_pending
from .bindings import Bindings
from .bound import Bound
from .content import BadResult, takes_long
from .descendants import Descendants
from .gates import Gate, enter, leave
from .isolation.orphans import CURRENT
from .isolation.threads import abandoned_by
from .ladder import Ladder, StopReason
from .ledger import Ledger, Reservation
from .retry import COUNTS_AGAINST_BREAKER, Failure, classify
from .runtime import Runtime
from .scope import Memory, Scope, Sink
from .secrecy import clean_error
from .turns import CALL, RESULT

logger = logging.getLogger("concertino")

Phase = Literal["new", "queued", "started", "running", "over"]
"""Where in its life an execution is: `started` has a task, `running` has entered it."""


class Host(Protocol):
    """The executor, as its executions see it."""

    @property
    def runtime(self) -> Runtime:
        """What all executions share."""

    @property
    def bindings(self) -> Bindings:
        """The members made ready to run, and their gates."""

    async def run_plan(
        self, plan: Plan, scope: Scope, *, prefix: str = "", parent: Execution | None = None
    ) -> list[Observation]:
        """Run a plan that an agent's call asks for."""

    async def ask(
        self, model: str, request: ChatRequest, scope: Scope, *, call_id: str = "", parent: Execution | None = None
    ) -> Reply:
        """Ask a model, for an agent's call."""


class CallOwner(ABC):
    """Who waits for executions, and what they inherit: a plan under way, or whoever asked a model one thing.

    Attributes:
        parent: the agent's call inside which the owner is, None for the orchestrator's own.
        depth: how many agents' calls are above.
        ledger: who pays.
        deadline: when everything of this owner has to be over, on the event loop's clock.
        context: the context variables of whoever asked.
        now: the loop's time while several executions begin at one instant, 0 otherwise.
    """

    __slots__ = ("context", "deadline", "depth", "host", "ledger", "now", "parent", "scope")

    def __init__(self, host: Host, scope: Scope, parent: Execution | None) -> None:
        self.host = host
        self.scope = scope
        self.parent = parent
        self.context = contextvars.copy_context()
        self.now = 0.0
        self.depth: int = 0
        self.ledger: Ledger = scope.ledger
        self.deadline: float = scope.deadline
        if parent is not None:
            self.depth = parent.owner.depth + 1
            self.ledger = parent.ledger
            # A sub-call ends before its caller, which needs time to react to the TIMEOUT.
            self.deadline = parent.deadline - host.runtime.limits.margin

    @property
    def parent_id(self) -> str:
        """Id of the agent's call inside which this is, `""` for the orchestrator's own."""
        return self.parent.call_id if self.parent is not None else ""

    @abstractmethod
    def observed(self, index: int, observation: Observation, full: Any) -> None:
        """An execution has its observation, which is recorded and must not be seen yet.

        Args:
            index: its place among the executions of this owner.
            full: the content before it was cut, None if it was not.
        """

    @abstractmethod
    def delivered(self, index: int) -> None:
        """The observation of an execution may be seen: whoever waits for it continues."""

    def entered(self, execution: Execution) -> None:
        """An execution that was just submitted found room: it can run."""
        execution.run(at_once=True)


class Attempts:
    """The attempts of one execution.

    Attributes:
        count: how many were begun.
        begun_at: when the last one began.
        in_flight: whether one is under way; it counts at the provider's gate until it has come back.
        waiting_after: the failure after which the next one waits for its time.
        throttled_past_deadline: the provider said "later", and later is past the deadline.
        probes: whether this execution is the one that a half-open breaker let through.
    """

    # Defaults of the class: most executions set two of them, and each is made for one execution.
    count = 0
    begun_at = 0.0
    in_flight = False
    waiting_after: Failure | None = None
    throttled_past_deadline = False
    probes = False


class Execution(ABC):
    """The life of one call of a member, or of one request to a model.

    Attributes:
        bound: the member.
        index: its place among the executions of its owner.
        ledger: who pays for it; an agent that makes calls has one of its own.
        started: seconds since the run began.
        repairs: what was repaired in its arguments.
        full: the content of its result before it was cut, None if it was not.
        extra: what is recorded before its end: the attachments that came with its result.
        packed: of large events about its end, what the sink gave for them.
        recalled: whether its observation was on record already.
    """

    __slots__ = (
        "arguments",
        "attempts",
        "bound",
        "call_id",
        "coroutine",
        "deadline",
        "descendants",
        "extra",
        "full",
        "gates",
        "index",
        "ladder",
        "ledger",
        "owner",
        "packed",
        "phase",
        "recalled",
        "repairs",
        "reservation",
        "runtime",
        "scope",
        "started",
        "task",
    )

    bound: Bound
    has_hooks = True
    """Whether `before` and `after` are asked, if the run has hooks."""
    owns_tasks = True
    """Whether background tasks that its plugin code begins end with it."""

    def __init__(
        self,
        owner: CallOwner,
        bound: Bound,
        call_id: str,
        arguments: Any,
        gates: tuple[Gate, ...],
        index: int = 0,
        repairs: tuple[str, ...] = (),
    ) -> None:
        self.owner = owner
        self.runtime: Runtime = owner.host.runtime
        self.scope = owner.scope
        self.bound = bound
        self.call_id = call_id
        self.arguments = arguments
        self.gates = gates
        self.index = index
        self.repairs = repairs
        self.ledger = owner.ledger
        self.deadline = owner.deadline
        self.phase: Phase = "new"
        self.started = 0.0
        self.attempts = Attempts()
        self.recalled = False
        self.full: Any = None
        self.extra: Event | None = None
        self.packed: list[tuple[Event, bytes | None]] | None = None
        self.reservation: Reservation | None = None
        self.task: asyncio.Task[None] | None = None
        self.coroutine: Coroutine[Any, Any, Any] | None = None
        self.ladder: Ladder | None = None
        self.descendants: Descendants | None = None

    # -- what the kinds differ in ----------------------------------------------------------------------------------

    @abstractmethod
    def amount(self) -> Amount:
        """The most that it can cost, apart from its sub-calls."""

    @abstractmethod
    def invoke(self) -> Awaitable[Any]:
        """One attempt."""

    @abstractmethod
    def succeeded(self, value: Any) -> Observation:
        """The observation of what an attempt gave, unless that cannot be used."""

    @abstractmethod
    def usage(self, ended: float) -> Usage:
        """What it consumed itself; its sub-calls are added at the end."""

    @abstractmethod
    def recorded_arguments(self) -> Any:
        """The arguments as the trace keeps them."""

    @abstractmethod
    def started_event(self) -> Event:
        """What the trace keeps before it starts."""

    @abstractmethod
    def ended_event(self, observation: Observation) -> Event:
        """What the trace keeps when it has ended."""

    @abstractmethod
    def is_alone(self) -> bool:
        """Whether no other provider, or endpoint, of the pool could do it."""

    async def before(self) -> Observation | None:
        """Asked once the budget covers it. An observation is its answer, and it does not run."""
        return None

    async def after(self, observation: Observation) -> Observation:
        """Asked when an attempt was made. Gives the observation that counts."""
        return observation

    # -- queued, started -------------------------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        """The run that it belongs to."""
        return self.scope.run_id

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.phase == "over"

    @property
    def ending(self) -> bool:
        """Whether it has ended or was told to: it may begin nothing any more."""
        return self.phase == "over" or self.ladder is not None

    def submit(self) -> None:
        """Pass the gates now, or wait; the owner's deadline ends the waiting."""
        if self.scope.memory is not None and (known := self._on_record()) is not None:
            self.finish(known)  # nothing runs, so it needs neither a place nor a task
            return
        parent = self.owner.parent
        if parent is not None:
            # Before it may have to wait, so that it also ends with its agent in a queue.
            parent.family().calls.add(self)
        if not enter(self):
            self.phase = "queued"
            self.runtime.waiting += 1
            # While it waits here, the agent above cannot settle, and other calls may wait for that settlement.
            self.ledger.pause()
            self.runtime.deadlines.add(self.deadline, self)

    def _leave_queue(self) -> None:
        if self.phase == "queued":
            self.phase = "new"
            self.runtime.waiting -= 1
            self.ledger.resume()

    def start(self, *, waited: bool) -> None:
        """All gates have room: begin.

        Args:
            waited: whether it stood in a queue. Then another call is just ending, on whose stack nothing else may run.
        """
        scope, owner, runtime = self.scope, self.owner, self.runtime
        if self.phase == "queued":
            self._leave_queue()
            runtime.deadlines.remove(self.deadline, self)
        loop = scope.loop
        now = owner.now or loop.time()  # one reading of the clock for all calls that begin together
        self.started = now - scope.started
        timeout = self.bound.timeout
        if timeout is not None and now + timeout < self.deadline:
            self.deadline = now + timeout
        runtime.deadlines.add(self.deadline, self)
        self.phase = "started"
        if waited:
            self.run(at_once=False)
        else:
            owner.entered(self)

    def run(self, *, at_once: bool) -> None:
        """Give it a task. At once, it runs until it first waits; one that never waits never meets the event loop.

        Python 3.11 has no eager tasks: there, the first step is made when the event loop comes to it.
        """
        if self.ending:
            return  # it was stopped before it could run
        # In the context of whoever asked for it: it may be started by a call of another run that made room.
        # Not by the loop's task factory, which would take it for a background task of the call that made room.
        loop, context = self.scope.loop, self.owner.context.copy()
        if sys.version_info >= (3, 12) and at_once:
            asyncio.Task(self._live(), loop=loop, context=context, eager_start=True)
        else:
            self._has_task(asyncio.Task(self._live(), loop=loop, context=context))

    def _has_task(self, task: asyncio.Task[None]) -> None:
        self.task = task
        self.runtime.tasks[task] = self

    async def _live(self) -> None:
        self.phase = "running"
        if self.task is None:  # an eager task runs before its constructor has returned it
            task = asyncio.current_task()
            assert task is not None
            self._has_task(task)
        CURRENT.set(self if self.owns_tasks else None)
        try:
            if self.owns_tasks and (turn := self.runtime.turns.ask(CALL)) is not None:
                await turn
            observation = await self._perform()
        except asyncio.CancelledError:
            observation = self.stopped()
        except BaseException as error:
            observation = self._broken(error)
        if self.over:
            return  # the ladder has delivered in its place
        # Without an attempt it was refused or answered, and there is nothing for a hook to look at.
        if (self.scope.after or self.scope.guarding) and self.has_hooks and self.attempts.count:
            observation = await self.after(observation)
            if self.over:
                return  # given up while a hook held it: its observation has been delivered
        if self.scope.sink is None:
            self.conclude(observation)
        elif not await self._conclude_on_record(observation, self.scope.sink):
            return  # given up while the disk held it
        self.owner.delivered(self.index)
        # The context of the task knows the call: without this, only the garbage collector could free them.
        self.task = None

    async def _conclude_on_record(self, observation: Observation, sink: Sink) -> bool:
        """Conclude it when its record is as safe as the run wants it. False if it was given up meanwhile."""
        await self._pack(observation, sink)
        if self.over:
            return False
        self.conclude(observation)
        if sink.must_flush:
            # It is concluded, so a cancellation must not keep its observation from the waiter.
            with contextlib.suppress(asyncio.CancelledError):
                try:
                    await sink.flush()
                except Exception as error:
                    self.scope.sink_failed = str(error)
        return True

    # -- reserved --------------------------------------------------------------------------------------------------

    async def _perform(self) -> Observation:
        scope = self.scope
        if scope.memory is not None and self._was_in_doubt(scope.memory):
            return self.error(Status.EXEC_ERR, error_messages.in_doubt())
        # A sub-call's deadline lies before its caller's, and may have passed before the call begins.
        if scope.loop.time() >= self.deadline:
            return self.error(Status.TIMEOUT, error_messages.timed_out_waiting())
        # Refused before it reserves, since a reservation may have to wait for other calls.
        refusal = self._refusal()
        if refusal is not None:
            return self.error(Status.EXEC_ERR, refusal)
        amount = self.amount()
        self.reservation = self.ledger.try_reserve(amount) or await self.ledger.reserve(amount)
        if self.reservation is None:
            return self.error(Status.EXEC_ERR, error_messages.budget_exhausted(self.lacking(amount)))
        # Hooks come after the reservation: nobody is asked to approve what cannot be paid.
        if scope.before and self.has_hooks:
            try:
                answer = await self.before()
            except PermissionError as error:
                return self.error(Status.EXEC_ERR, error_messages.denied(str(error)))
            if answer is not None:
                return answer
        # The intent comes last: after a crash, it means that the call may have been executed.
        event, sink = self.started_event(), scope.sink
        scope.emit(event, await sink.pack(event) if sink is not None and sink.is_large(event) else None)
        if scope.must_flush and scope.sink is not None:
            await scope.sink.flush()
        self.bound.provider.called()
        return await self._attempt()

    def _on_record(self) -> Observation | None:
        """The observation on record, of an earlier process or a recording.

        Asked first of all: a resumed run sees what its earlier process saw, whatever time and budget are left now.
        """
        memory = self.scope.memory
        assert memory is not None
        try:
            known = memory.recall(self.call_id, self.bound.name, self.recorded_arguments)
            if known is None:
                return None
            self.full = memory.full_content(self.call_id)
        except Exception as error:  # the file of the trace, for one, is not as it was
            return self._broken(error)
        known.replayed = self.recalled = True
        # The budget of a run holds over all processes that worked on it.
        self.ledger.charge(known.usage)
        return known

    def _was_in_doubt(self, memory: Memory) -> bool:
        """Whether an earlier process began it, nobody knows its end, and it must not be made again."""
        self.ledger.charge(memory.charged(self.call_id))
        # An agent is entered again: what it calls is remembered one by one.
        if not memory.in_doubt(self.call_id) or self.bound.retry_safe or self.bound.is_agent:
            return False
        # It may have run once, so it counts and is charged the most that this can have cost.
        self.attempts.count = 1
        amount = self.amount()
        self.ledger.charge(Usage(int(amount.calls), amount.units, amount.usd))
        return True

    def _broken(self, error: BaseException) -> Observation:
        """The observation of an error of concertino's own code or of a hook: still this call's."""
        cause = error_messages.failed(classify(error), self.attempts.count, retry_safe=True)
        observation = self.error(Status.EXEC_ERR, cause)
        observation.note = _note_of(error)
        return observation

    def _refusal(self) -> ErrorInfo | None:
        """Why it must not start at all."""
        bound, provider = self.bound, self.bound.provider
        if bound.quarantine:
            return error_messages.quarantined(bound.name, bound.quarantine)
        # A worker process that does not obey is killed; only threads can be left running.
        left = abandoned_by(bound.name) if bound.isolation != "process" else 0
        if left > self.runtime.limits.abandoned:
            return error_messages.quarantined(bound.name, f"{left} of its calls could not be stopped and still run")
        if provider.name in self.scope.switched_off:
            return error_messages.quarantined(provider.name, self.scope.switched_off[provider.name])
        # Asked only while the breaker is not closed, because `is_alone` goes through the whole pool.
        if provider.breaker.state != "closed" and not bound.is_agent:
            if not provider.breaker.allows(alone=self.is_alone()):
                return error_messages.breaker_open(provider.name or bound.name, provider.breaker.seconds_left())
            self.attempts.probes = True
        return None

    def lacking(self, amount: Amount) -> str:
        """The part of an amount that the budget does not cover, in words."""
        left = self.ledger.remaining()
        missing = [
            f"it needs {need:g} {name}, {have:g} left"
            for name, need, have in zip(amount._fields, amount, left, strict=True)
            if need > have + 1e-9
        ]
        return "; ".join(missing) or "the budget is frozen after an overrun"

    # -- attempts --------------------------------------------------------------------------------------------------

    async def _attempt(self) -> Observation:
        """Run it, and repeat it where the retry table allows."""
        attempts, provider, is_agent = self.attempts, self.bound.provider, self.bound.is_agent
        while True:
            attempts.count += 1
            attempts.begun_at = self.scope.loop.time()
            self._attempt_begins()
            try:
                value = await self.invoke()
            except asyncio.CancelledError:
                if self.ladder is not None:
                    self.ladder.interrupted = True
                    raise
                # Without a ladder nobody here cancelled it, so this is an exception like any other.
                failure = Failure(FailureClass.BUG, "CancelledError: the plugin cancelled itself")
                return self._failed(failure, None)
            except (CallFailed, Suspension) as error:
                # Not classified: the inner call had retries of its own, and counted against the provider that failed.
                return self.inner_failure(error)
            except BaseException as error:
                failure = classify(error)
                self._count_against_provider(failure)
                delay = self._delay(failure)
                if delay is None:
                    return self._failed(failure, error)
                self.scope.emit(
                    Retried(self.call_id, self.bound.name, attempts.count, failure.kind.value, failure.message, delay)
                )
            else:
                if not is_agent:
                    provider.breaker.succeeded()
                    provider.gate.succeeded()
                return await self.taken_in(value) if takes_long(value) else self.succeeded(value)
            finally:
                self._attempt_ends()
            # Outside of the `try`: a call that waits to be repeated has no attempt under way at the provider's gate.
            attempts.waiting_after = failure
            await asyncio.sleep(delay)
            if not is_agent:
                await provider.gate.turn()
            attempts.waiting_after = None

    # An agent's own calls are the attempts on providers. The agent is none, and must not stand in their way.

    def _attempt_begins(self) -> None:
        self.attempts.in_flight = True
        if not self.bound.is_agent:
            self.bound.provider.gate.began()

    def _attempt_ends(self) -> None:
        """The attempt has come back, or nobody waits for it any more; counted once."""
        if self.attempts.in_flight:
            self.attempts.in_flight = False
            if not self.bound.is_agent:
                self.bound.provider.gate.ended()

    def _count_against_provider(self, failure: Failure) -> None:
        if self.bound.is_agent:
            return
        provider = self.bound.provider
        if failure.kind in COUNTS_AGAINST_BREAKER:
            provider.breaker.failed(at_once=failure.kind is FailureClass.AUTH)
        elif failure.kind is FailureClass.THROTTLED:
            provider.gate.throttled(self.attempts.begun_at, self.scope.loop.time())

    def _delay(self, failure: Failure) -> float | None:
        """Seconds before another attempt; None if the table, a budget or the deadline forbids one."""
        delay = self.runtime.retries.delay(failure, self.attempts.count, retry_safe=self.bound.retry_safe)
        if delay is None:
            return None
        if self.scope.loop.time() + delay >= self.deadline:
            self.attempts.throttled_past_deadline = failure.kind is FailureClass.THROTTLED
            return None
        if not self.reserve_again():
            return None
        # Last, because a retry that was taken from the provider's budget cannot be given back.
        return delay if self.bound.provider.may_retry(failure.kind) else None

    def reserve_again(self) -> bool:
        """Reserve what another attempt costs. Says whether the budget covers it."""
        return True

    def _failed(self, failure: Failure, error: BaseException | None) -> Observation:
        count = self.attempts.count
        if self.attempts.throttled_past_deadline:  # a provider that only said "later" has not failed
            return self.error(Status.TIMEOUT, error_messages.throttled_too_long(failure, count))
        if failure.kind is FailureClass.AUTH:
            self.scope.switched_off[self.bound.provider.name] = failure.message
        if isinstance(error, BadResult):  # its own process had a result that this one does not take
            return self.error(Status.EXEC_ERR, error_messages.bad_result(str(error)))
        cause = error_messages.failed(failure, count, retry_safe=self.bound.retry_safe)
        observation = self.error(Status.EXEC_ERR, cause)
        if error is not None:
            observation.note = _note_of(error)
        return observation

    def inner_failure(self, error: CallFailed | Suspension) -> Observation:
        """The observation of an agent that ended because a call inside it failed, or waits for a person."""
        if isinstance(error, Suspension):
            return self.error(Status.EXEC_ERR, ErrorInfo(PENDING, f"{self.bound.name} waits for a decision"))
        late = error.observation.status is Status.TIMEOUT
        return self.error(Status.TIMEOUT if late else Status.EXEC_ERR, error_messages.inner_failure(error))

    def error(self, status: Status, error: ErrorInfo) -> Observation:
        """The observation of a failure, now."""
        ended = self.scope.now()
        count = self.attempts.count
        return Observation(
            self.call_id,
            self.bound.name,
            status,
            None,
            clean_error(error),
            self.usage(ended) if count else Usage(),
            count,
            # What was never run took no time, however long it waited.
            self.started if count else ended,
            ended,
            self.repairs,
        )

    # -- stopped ---------------------------------------------------------------------------------------------------

    def deadline_passed(self) -> None:
        """Its time is over, in the queue or while it runs."""
        if self.phase == "queued":
            self._leave_queue()
            self.finish(self.error(Status.TIMEOUT, error_messages.timed_out_waiting()))
        else:
            self.stop("deadline")

    def stop_timer(self) -> None:
        """Its deadline stands still."""
        self.runtime.deadlines.remove(self.deadline, self)

    def start_timer(self) -> None:
        """Its deadline counts again."""
        if not self.over:
            self.runtime.deadlines.add(self.deadline, self)

    def stop(self, why: StopReason) -> None:
        """Begin the ladder, if it still runs; end it at once, if it has no task yet."""
        if self.ending:
            return
        if self.task is None:
            self._leave_queue()
        self.ladder = Ladder(self, why)
        self.ladder.begin()

    def end_with_agent(self) -> None:
        """End the call at once, because the agent that made it has ended; its task is stopped afterwards."""
        if self.ladder is None:
            self.ladder = Ladder(self, "cancelled")
        self._leave_queue()
        self.finish(self.stopped())
        self.ladder.close_later()

    def stopped(self) -> Observation:
        """The observation of one that was stopped."""
        self.full = None  # a result that came too late is none
        if self.ladder is None or self.ladder.why != "deadline":
            return self.error(Status.EXEC_ERR, error_messages.cancelled())
        waiting_after = self.attempts.waiting_after
        if waiting_after is not None and waiting_after.kind is FailureClass.THROTTLED:
            cause = error_messages.throttled_too_long(waiting_after, self.attempts.count)
            return self.error(Status.TIMEOUT, cause)
        return self.timed_out(self.scope.now())

    def timed_out(self, ended: float) -> Observation:
        """The observation of one that was not done in time."""
        nested = self.owner.parent is not None
        cause = error_messages.timed_out(ended - self.started, self.bound.timeout, nested=nested)
        return self.error(Status.TIMEOUT, cause)

    # -- over ------------------------------------------------------------------------------------------------------

    def finish(self, observation: Observation) -> None:
        """Conclude and deliver."""
        self.conclude(observation)
        self.owner.delivered(self.index)

    def conclude(self, observation: Observation) -> None:
        """Settle, count and record; exactly once."""
        if self.phase == "over":
            return
        attempts, ladder, owner = self.attempts, self.ladder, self.owner
        before, self.phase = self.phase, "over"
        # Read before the attempt ends, which forgets that one was in flight.
        cut_short = ladder is not None and (attempts.in_flight or ladder.interrupted)
        self._attempt_ends()
        self.runtime.deadlines.remove(self.deadline, self)
        if ladder is not None:
            ladder.end()
        if owner.parent is not None and owner.parent.descendants is not None:
            owner.parent.descendants.calls.discard(self)
        if self.descendants is not None:
            # Before its own settlement, because the agent's bill includes what its calls are charged.
            self.descendants.end(self.runtime, self.scope.loop)
        # A probe that ended without a verdict would keep the breaker half-open for ever.
        if attempts.probes and self.bound.provider.breaker.state == "half-open":
            self.bound.provider.breaker.undecided()
        own = observation.usage
        has_own_ledger = self.ledger is not owner.ledger
        if has_own_ledger:
            self.ledger.close()
        if self.reservation is not None:
            # Nobody knows what an interrupted attempt cost, so the budget pays for the most that it can have cost.
            uncertain = attempts.count > 0 and (cut_short or _is_unknown(observation))
            # An agent reserved before it had a ledger of its own, so it settles where it reserved.
            self.reservation.ledger.settle(self.reservation, own, at_reservation=uncertain)
        if has_own_ledger:
            # Added only now: sub-calls have settled for themselves, and would be charged twice.
            observation.usage = own.plus(self.ledger.usage)
        self._record(observation)
        owner.observed(self.index, observation, self.full)
        self._leave(before)

    def _leave(self, before: Phase) -> None:
        """Give its places to others. Last: the next call there must find this one settled and recorded."""
        if self.task is not None:
            self.runtime.tasks.pop(self.task, None)
        if before in ("started", "running"):
            leave(self.gates)

    def _record(self, observation: Observation) -> None:
        if self.packed is not None:
            for event, packed in self.packed:
                self.scope.emit_result(event, packed=packed)
            return
        if self.extra is not None:
            self.scope.emit_result(self.extra)
        if observation.error is None or not is_pending(observation):  # a resumed run makes a pending call again
            self.scope.emit_result(self.ended_event(observation), recalled=self.recalled)

    async def _pack(self, observation: Observation, sink: Sink) -> None:
        """Do the slow part of recording a large end, away from the event loop."""
        # An agent's usage is only known when its calls have ended; what waits for a person is not recorded.
        if self.ledger is not self.owner.ledger or (observation.error is not None and is_pending(observation)):
            return
        ended = self.ended_event(observation)
        events = [ended] if self.extra is None else [self.extra, ended]
        if not any(map(sink.is_large, events)):
            return
        packed: list[tuple[Event, bytes | None]] = []
        for event in events:
            packing = asyncio.ensure_future(sink.pack(event))
            await self._wait_through(packing)
            # If the disk refused, `append` finds out again, and that is noted.
            packed.append((event, packing.result() if packing.exception() is None else None))
        if not self.over:
            self.packed = packed

    async def taken_in(self, value: Any) -> Observation:
        """As `succeeded`, for a large result: several that come at once do not hold up the event loop."""
        turn = self.runtime.turns.ask(RESULT)
        if turn is not None:
            await self._wait_through(turn)
        return await self.succeeded_with_much(value)

    async def succeeded_with_much(self, value: Any) -> Observation:
        """As `succeeded`, when it is its turn."""
        return self.succeeded(value)

    async def _wait_through(self, future: asyncio.Future[Any]) -> None:
        """Wait for something that a call which is done needs before its end.

        Its time limit no longer counts, and a cancellation must not keep its result from the record. The ladder gives
        it up if it takes too long.
        """
        self.stop_timer()
        while not future.done():
            try:
                await asyncio.wait({future})
            except asyncio.CancelledError:
                if self.over:
                    raise  # given up: its observation has been delivered

    # -- what plugin code begins and does --------------------------------------------------------------------------

    def family(self) -> Descendants:
        """What it began and must not outlive it; made at first use."""
        if self.descendants is None:
            self.descendants = Descendants()
        return self.descendants

    def adopt(self, task: asyncio.Future[Any]) -> None:
        """Remember a background task that plugin code of this call created."""
        tasks = self.family().tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def has_begun(self, task: asyncio.Task[Any]) -> bool:
        """Whether plugin code of this call created a background task that still runs."""
        return self.descendants is not None and task in self.descendants.tasks

    def blocked_the_loop(self, seconds: float, where: str) -> None:
        """Name it, and run it elsewhere from now on, if it can be moved."""
        stall = Stalled(self.call_id, self.bound.name, seconds, where)
        self.runtime.misbehaviour.stalls.append(stall)
        moved = self.bound.move_to_thread()
        with contextlib.suppress(Exception):
            self.scope.emit(stall)
        after = "it runs on a thread of its own from now on" if moved else "it cannot be moved: make it asynchronous"
        logger.warning("%s blocked the event loop for %.2f s at %s; %s", stall.name, seconds, where, after)


async def stop_all(executions: Iterable[Execution], runtime: Runtime) -> None:
    """Stop executions, and wait until they have left, but never longer than the ladder takes."""
    executions = list(executions)
    for execution in executions:
        execution.stop("cancelled")
    await runtime.settle_down(execution.task for execution in executions)


def _note_of(error: BaseException) -> str:
    """The end of a traceback: the plugin's own frames and the error; the frames before are the executor's."""
    return without_secrets("".join(traceback.format_exception(error)))[-4000:]


def _is_unknown(observation: Observation) -> bool:
    return observation.error is not None and observation.error.code == "unknown_outcome"
