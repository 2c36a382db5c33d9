"""One call, from the moment it may start to its one terminal observation.

    parsed -> validated -> queued -> reserved -> started(attempt) -> OK | EXEC_ERR | TIMEOUT -> settled -> seen
       └────────────┴─ PARSE_ERR (free)                └─ in doubt: started, and no end after a crash

Plugin code runs inside the call's own task. When the deadline passes the ladder begins: cancel, wait `grace`, cancel
again, wait, close the coroutine, give it up. Nobody waits longer than that for a plugin: the observation is delivered
by the ladder if the task does not deliver it. A plugin may raise whatever it likes, `SystemExit` included: it is this
call's EXEC_ERR. What plugin code leaves behind in the background ends with the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from concertino.core.budget import Amount
from concertino.core.events import CallEnded, CallStarted, Event, Retried
from concertino.core.observation import CallFailed, ErrorInfo, Observation, Status
from concertino.core.provider_error import FailureClass
from concertino.core.result import Result
from concertino.core.usage import Usage

from . import error_messages as causes
from .content import BadResult, to_content, truncate
from .hooks import after_call, before_call
from .isolation.orphans import CURRENT
from .isolation.threads import abandoned_by
from .ledger import Ledger, Reservation
from .limits import Gate, leave
from .retry import COUNTS_AGAINST_BREAKER, Failure, classify

if TYPE_CHECKING:
    from .bound import Bound
    from .context import CallContext
    from .executor import Executor
    from .plan_run import PlanRun
    from .scope import Scope


class Invocation:
    """The life of one call of a tool or agent."""

    __slots__ = (
        "arguments",
        "attempts",
        "begun",
        "begun_at",
        "bound",
        "call_id",
        "calls",
        "children",
        "coroutine",
        "deadline",
        "depth",
        "executor",
        "full",
        "gates",
        "going",
        "index",
        "interrupted",
        "kind",
        "ledger",
        "nested",
        "over",
        "owner",
        "parent",
        "probing",
        "queued",
        "recalled",
        "repairs",
        "reservation",
        "run_id",
        "scope",
        "started",
        "stopped_by",
        "task",
        "throttled_past_deadline",
        "timeout",
        "timer",
        "waiting_after",
    )

    kind: str
    hooked = True
    """Whether hooks are asked: around tools and agents, not around requests to models."""

    def __init__(
        self, executor: Executor, scope: Scope, bound: Bound, call_id: str, arguments: Any, owner: PlanRun, index: int
    ) -> None:
        self.executor = executor
        self.scope = scope
        self.bound = bound
        self.call_id = call_id
        self.arguments = arguments
        self.owner = owner
        self.index = index
        self.run_id = scope.run_id
        self.kind = bound.spec.kind
        self.parent: Invocation | None = owner.parent
        self.depth: int = owner.depth
        self.ledger: Ledger = owner.ledger
        self.timeout: float | None = bound.timeout
        self.gates: tuple[Gate, ...] = ()
        self.repairs: tuple[str, ...] = ()
        self.attempts = 0
        self.nested = 0
        self.over = False
        self.begun = False
        self.probing = False
        self.throttled_past_deadline = False
        self.going = False
        self.interrupted = False
        self.begun_at = 0.0
        self.waiting_after: Failure | None = None
        self.queued = False
        self.recalled = False
        self.started = 0.0
        self.deadline: float = owner.deadline
        self.stopped_by: str = ""
        self.full: Any = None
        self.reservation: Reservation | None = None
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.coroutine: Any = None
        self.children: set[asyncio.Future[Any]] | None = None
        self.calls: set[Invocation] | None = None

    # -- starting --------------------------------------------------------------------------------------------------

    def wait_in_queue(self) -> None:
        """Parked at a gate: the caller's deadline ends the waiting."""
        self.queued = True
        self.executor.waiting += 1
        self.ledger.hold_up()
        self.executor.deadlines.add(self.deadline, self)

    def _expire_in_queue(self) -> None:
        self._leave_queue()
        self.gates = ()
        self.conclude(self._error(Status.TIMEOUT, causes.timed_out_waiting()))
        self.deliver()

    def _leave_queue(self) -> None:
        if self.queued:
            self.queued = False
            self.executor.waiting -= 1
            self.ledger.go_on()

    def start(self) -> None:
        """All gates let it through: begin."""
        loop = self.scope.loop
        if self.queued:
            self._leave_queue()
            self.executor.deadlines.remove(self.deadline, self)
        now = self.owner.now or loop.time()
        self.started = now - self.scope.started
        if self.timeout is not None and now + self.timeout < self.deadline:
            self.deadline = now + self.timeout
        self.executor.deadlines.add(self.deadline, self)
        # In the context of whoever asked for it: it may be started by a call of another run that made room.
        self.task = asyncio.Task(self._live(), loop=loop, context=self.owner.context.copy())
        self.executor.tasks[self.task] = self

    async def _live(self) -> None:
        self.begun = True
        CURRENT.set(self if self.hooked else None)  # a model's tasks belong to the model, which serves other calls too
        try:
            observation = await self._perform()
        except asyncio.CancelledError:
            observation = self._stopped()
        except BaseException as error:  # of concertino's own code or of a hook: still this call's observation
            observation = self._error(Status.EXEC_ERR, causes.failed(classify(error), self.attempts, retry_safe=True))
            observation.note = "".join(traceback.format_exception(error))[-4000:]
        if self.over:
            return
        if self.scope.after and self.hooked and self.attempts:
            observation = await after_call(self.scope.after, self.bound.spec, observation)
            if self.over:
                return  # given up while a hook held it: its observation has been delivered
        self.conclude(observation)
        if self.scope.must_flush and self.scope.sink is not None:
            with contextlib.suppress(asyncio.CancelledError):
                try:
                    await self.scope.sink.flush()
                except Exception as error:
                    self.scope.sink_failed = str(error)
        self.deliver()

    # -- running ---------------------------------------------------------------------------------------------------

    async def _perform(self) -> Observation:
        scope, bound = self.scope, self.bound
        if scope.memory is not None:
            known = self._remember()
            if known is not None:
                return known
        if scope.loop.time() >= self.deadline:
            return self._error(Status.TIMEOUT, causes.timed_out_waiting())
        refusal = self._refuse()
        if refusal is not None:
            return self._error(Status.EXEC_ERR, refusal)
        amount = self.amount()
        self.reservation = self.ledger.try_reserve(amount) or await self.ledger.reserve(amount)
        if self.reservation is None:
            return self._error(Status.EXEC_ERR, causes.budget_exhausted(self._lacking(amount)))
        if scope.before and self.hooked:
            try:
                answer = await before_call(scope.before, bound.spec, self.arguments, self.call_id)
            except PermissionError as error:
                return self._error(Status.EXEC_ERR, causes.denied(str(error)))
            if answer is not None:
                return replace(answer, started=self.started, ended=scope.now())
        scope.emit(self.started_event())
        if scope.must_flush and scope.sink is not None:
            await scope.sink.flush()
        bound.provider.called()
        return await self._attempts()

    @property
    def parent_id(self) -> str:
        """Id of the agent's call inside which this one was made, `""` for the orchestrator's own."""
        return self.parent.call_id if self.parent is not None else ""

    def recorded_arguments(self) -> Any:
        """The arguments as the trace keeps them."""
        return self.arguments

    def started_event(self) -> Event:
        """What the trace keeps before the call starts."""
        return CallStarted(
            self.run_id, self.call_id, self.parent_id, self.bound.name, self.kind, self.arguments, self.started
        )

    def ended_event(self, observation: Observation) -> Event:
        """What the trace keeps when it has ended."""
        return CallEnded(observation, self.parent_id, self.full)

    def amount(self) -> Amount:
        """The most that this call can cost, apart from its sub-calls."""
        return self.bound.amount

    def _refuse(self) -> ErrorInfo | None:
        """What speaks against starting it at all."""
        bound, provider = self.bound, self.bound.provider
        if bound.quarantine:
            return causes.quarantined(bound.name, bound.quarantine)
        left = abandoned_by(bound.name) if bound.isolation != "process" else 0
        if left > self.executor.limits.abandoned:
            return causes.quarantined(bound.name, f"{left} of its calls could not be stopped and still run")
        if provider.name in self.scope.switched_off:
            return causes.quarantined(provider.name, self.scope.switched_off[provider.name])
        if self.kind != "agent" and provider.breaker.state != "closed":
            if not provider.breaker.allows(alone=self.executor.alone(self)):
                return causes.breaker_open(provider.name or bound.name, provider.breaker.seconds_left())
            self.probing = True
        return None

    def _lacking(self, amount: Amount) -> str:
        left = self.ledger.remaining()
        lacking = [
            f"it needs {need:g} {name}, {have:g} left"
            for name, need, have in zip(amount._fields, amount, left, strict=True)
            if need > have + 1e-9
        ]
        return "; ".join(lacking) or "the budget is frozen after an overrun"

    async def _attempts(self) -> Observation:
        """Run it, and repeat it where the retry table allows."""
        provider = self.bound.provider
        while True:
            self.attempts += 1
            self.begun_at = self.scope.loop.time()
            self._attempt_begins()
            try:
                value = await self.invoke()
            except asyncio.CancelledError:
                if self.stopped_by:
                    self.interrupted = True
                    raise
                failure = Failure(FailureClass.BUG, "CancelledError: the plugin cancelled itself")
                return self._failed(failure, None)
            except CallFailed as error:
                late = error.observation.status is Status.TIMEOUT
                failed = self._error(Status.TIMEOUT if late else Status.EXEC_ERR, causes.inner_failure(error))
                return self._with_partial(failed, error.observation.content)
            except BaseException as error:
                failure = classify(error)
                self._count_against_breaker(failure)
                delay = self._delay(failure)
                if delay is None:
                    return self._failed(failure, error)
                self.scope.emit(
                    Retried(self.call_id, self.bound.name, self.attempts, failure.kind.value, failure.message, delay)
                )
            else:
                if self.kind != "agent":
                    provider.breaker.succeeded()
                    provider.gate.succeeded()
                return self.succeeded(value)
            finally:
                self._attempt_ends()
            self.waiting_after = failure
            await asyncio.sleep(delay)
            if self.kind != "agent":
                await provider.gate.turn()
            self.waiting_after = None

    # What an agent does is told by its own calls: it is no attempt on the provider, and must not stand in their way.

    def _attempt_begins(self) -> None:
        self.going = True
        if self.kind != "agent":
            self.bound.provider.gate.began()

    def _attempt_ends(self) -> None:
        """The attempt has come back, or nobody waits for it any more; counted once."""
        if self.going:
            self.going = False
            if self.kind != "agent":
                self.bound.provider.gate.ended()

    def _count_against_breaker(self, failure: Failure) -> None:
        if self.kind == "agent":
            return
        if failure.kind in COUNTS_AGAINST_BREAKER:
            self.bound.provider.breaker.failed(at_once=failure.kind is FailureClass.AUTH)
        elif failure.kind is FailureClass.THROTTLED:
            self.bound.provider.gate.throttled(self.begun_at, self.scope.loop.time())

    async def invoke(self) -> Any:
        """One attempt."""
        value = await self.bound.run(self)
        if not self.bound.spec.is_async and inspect.isawaitable(value):
            value = await value
        return value

    def _delay(self, failure: Failure) -> float | None:
        """Seconds before another attempt; None if the table, a budget or the deadline forbids one."""
        delay = self.executor.retries.delay(failure, self.attempts, retry_safe=self.bound.retry_safe)
        if delay is None:
            return None
        if self.scope.loop.time() + delay >= self.deadline:
            self.throttled_past_deadline = failure.kind is FailureClass.THROTTLED
            return None
        if self.bound.own_usd and self.reservation is not None:
            again = Amount(usd=self.bound.spec.cost.usd)
            if not self.reservation.grow(again):
                return None
        return delay if self.bound.provider.may_retry(failure.kind) else None

    def _failed(self, failure: Failure, error: BaseException | None) -> Observation:
        if self.throttled_past_deadline:  # a provider that only said "later" has not failed: the time was too short
            return self._error(Status.TIMEOUT, causes.throttled_too_long(failure, self.attempts))
        if failure.kind is FailureClass.AUTH:
            self.scope.switched_off[self.bound.provider.name] = failure.message
        observation = self._error(
            Status.EXEC_ERR, causes.failed(failure, self.attempts, retry_safe=self.bound.retry_safe)
        )
        if error is not None:
            observation.note = "".join(traceback.format_exception(error))[-4000:]
        return observation

    def succeeded(self, value: Any) -> Observation:
        """The observation of a result, unless the result cannot be used."""
        billed = None
        if type(value) is Result:
            billed, value = value, value.content
        try:
            content, text = to_content(value, self.executor.limits.result_bytes, self.bound.max_chars)
        except BadResult as error:
            return self._error(Status.EXEC_ERR, causes.bad_result(str(error)))
        bound = self.bound
        if bound.output is not None and not bound.output.is_valid(content):
            first = bound.output.check(content)
            problem = f"its result breaks its own output schema: {first[0] if first else 'invalid'}"
            return self._error(Status.EXEC_ERR, causes.bad_result(problem))
        cut = 0
        if len(text) > bound.max_chars:
            self.full = content
            content, cut = truncate(content, text, bound.max_chars)
        ended = self.scope.now()
        if self.stopped_by == "deadline":
            return self._error(
                Status.TIMEOUT, causes.timed_out(ended - self.started, self.timeout, nested=self.parent is not None)
            )
        return Observation(
            self.call_id,
            bound.name,
            Status.OK,
            content,
            None,
            self._usage(ended, billed),
            self.attempts,
            self.started,
            ended,
            self.repairs,
            cut,
        )

    def _with_partial(self, observation: Observation, content: Any) -> Observation:
        """The same failure with what there was to show for it, bounded like any result."""
        if content is not None:
            with contextlib.suppress(BadResult):
                content, text = to_content(content, self.executor.limits.result_bytes, self.bound.max_chars)
                shown, observation.truncated = truncate(content, text, self.bound.max_chars)
                if observation.truncated:
                    self.full = content
                observation.content = shown
        return observation

    def _usage(self, ended: float, billed: Result | None = None) -> Usage:
        """What the call itself consumed; its sub-calls are added at the end."""
        seconds = ended - self.started
        cost = self.bound.spec.cost
        usd = cost.usd * max(1, self.attempts) + cost.usd_per_second * seconds if self.bound.own_usd else 0.0
        if billed is None:
            return Usage(1, cost.units, usd, 0, 0, 0, seconds)
        return Usage(
            1,
            cost.units + billed.units,
            usd + billed.usd,
            billed.input_tokens,
            billed.output_tokens,
            0,
            seconds,
        )

    def _error(self, status: Status, error: ErrorInfo) -> Observation:
        ended = self.scope.now()
        ran = self.attempts > 0
        return Observation(
            self.call_id,
            self.bound.name,
            status,
            None,
            error,
            self._usage(ended) if ran else Usage(),
            self.attempts,
            self.started if ran else ended,
            ended,
            self.repairs,
        )

    # -- memory and context ----------------------------------------------------------------------------------------

    def _remember(self) -> Observation | None:
        memory = self.scope.memory
        assert memory is not None
        known = memory.recall(self.call_id, self.bound.name, self.recorded_arguments())
        if known is not None:
            known.replayed = self.recalled = True
            self.full = memory.full_content(self.call_id)
            self.ledger.charge(known.usage)
            return known
        self.ledger.charge(memory.charged(self.call_id))
        # An agent is entered again: what it calls is remembered one by one.
        if memory.in_doubt(self.call_id) and not self.bound.retry_safe and self.kind != "agent":
            self.attempts = 1
            amount = self.amount()
            self.ledger.charge(Usage(int(amount.calls), amount.units, amount.usd))
            return self._error(Status.EXEC_ERR, causes.in_doubt())
        return None

    def make_context(self) -> CallContext:
        """The injected parameter of the plugin's function."""
        from .context import CallContext

        if self.kind == "agent" and self.ledger is self.owner.ledger:
            self.ledger = self.owner.ledger.child()
        return CallContext(self)

    # -- stopping --------------------------------------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        """Whether it has ended or been told to: it may begin nothing any more."""
        return self.over or bool(self.stopped_by)

    def made(self, call: Invocation) -> None:
        """Remember a call that this agent makes: it must not outlive this one."""
        if self.calls is None:
            self.calls = set()
        self.calls.add(call)

    def adopt(self, task: asyncio.Future[Any]) -> None:
        """Remember a background task that plugin code of this call created."""
        if self.children is None:
            self.children = set()
        self.children.add(task)
        task.add_done_callback(self.children.discard)

    def deadline_passed(self) -> None:
        """Its time is over, in the queue or while it runs."""
        if self.queued:
            self._expire_in_queue()
        else:
            self.stop("deadline")

    def stop(self, why: str) -> None:
        """Begin the ladder: `why` is `deadline` or `cancelled`."""
        if self.over or self.stopped_by:
            return
        self.stopped_by = why
        if self.task is None:
            self._leave_queue()
            self.gates = ()
            self.conclude(self._stopped())
            self.deliver()
            return
        self.task.cancel()
        if not self.begun:  # a task that is cancelled before its first step never runs: nobody else would tell
            self.conclude(self._stopped())
            self.deliver()
            return
        self.timer = self.scope.loop.call_later(self.executor.limits.grace, self._insist)

    def _insist(self) -> None:
        if self.task is not None and not self.over:
            self.task.cancel()
            self.timer = self.scope.loop.call_later(self.executor.limits.grace, self._abandon)

    def _abandon(self) -> None:
        """It does not obey: deliver without it, and give it up."""
        if self.over or self.task is None:
            return
        self.conclude(self._stopped())
        self.deliver()
        self._give_up()

    def _give_up(self) -> None:
        """Close its coroutine; count it if that does not end it."""
        if self.task is None or self.task.done():
            return
        ended = False
        if self.coroutine is not None:
            with contextlib.suppress(BaseException):
                self.coroutine.close()
            ended = inspect.getcoroutinestate(self.coroutine) == inspect.CORO_CLOSED
        self.task.cancel()
        if ended:
            self.executor.closed_calls += 1
            self.executor.leaving(self.task)
        else:
            self.executor.note_abandoned(self)

    def end_with_agent(self) -> None:
        """The agent that made this call has ended, and so does this, at once; whether it obeys shows afterwards."""
        self.stopped_by = self.stopped_by or "cancelled"
        self._leave_queue()
        self.conclude(self._stopped())
        self.deliver()
        if self.task is not None:
            self.task.cancel()
            self.executor.leaving(self.task)
            self.scope.loop.call_later(2 * self.executor.limits.grace, self._give_up)

    def _stopped(self) -> Observation:
        if self.stopped_by == "deadline":
            if self.waiting_after is not None and self.waiting_after.kind is FailureClass.THROTTLED:
                return self._error(Status.TIMEOUT, causes.throttled_too_long(self.waiting_after, self.attempts))
            seconds = self.scope.now() - self.started
            return self._error(Status.TIMEOUT, causes.timed_out(seconds, self.timeout, nested=self.parent is not None))
        return self._error(Status.EXEC_ERR, causes.cancelled())

    # -- ending ----------------------------------------------------------------------------------------------------

    def conclude(self, observation: Observation) -> None:
        """Settle, count and record; exactly once."""
        if self.over:
            return
        self.over = True
        under_way = self.going or self.interrupted
        self._attempt_ends()
        self.executor.deadlines.remove(self.deadline, self)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.parent is not None and self.parent.calls is not None:
            self.parent.calls.discard(self)
        if self.calls or self.children:
            self._end_what_it_began()
        if self.probing and self.bound.provider.breaker.state == "half-open":
            self.bound.provider.breaker.undecided()
        own = observation.usage
        if self.ledger is not self.owner.ledger:
            self.ledger.close()
        if self.reservation is not None:
            uncertain = self.attempts > 0 and ((bool(self.stopped_by) and under_way) or _is_unknown(observation))
            self.reservation.ledger.settle(self.reservation, own, at_reservation=uncertain)
        if self.ledger is not self.owner.ledger:
            observation.usage = own.plus(self.ledger.usage)
        self.scope.emit_result(self.ended_event(observation), recalled=self.recalled)
        self.owner.observed(self, observation)
        if self.task is not None:
            self.executor.tasks.pop(self.task, None)
            leave(self.gates)

    def _end_what_it_began(self) -> None:
        for call in list(self.calls or ()):
            call.end_with_agent()
        for child in list(self.children or ()):
            if (loop := child.get_loop()) is self.scope.loop:
                child.cancel()
                self.executor.leaving(child)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(child.cancel)

    def deliver(self) -> None:
        """Let the one who waits see it."""
        self.owner.delivered(self)


def _is_unknown(observation: Observation) -> bool:
    return observation.error is not None and observation.error.code == "unknown_outcome"
