"""The executor: runs plans. It knows calls, edges and members, and nothing of paradigms, prompts or models' texts.

Each call starts the moment its own predecessors have succeeded; there are no levels. A round never raises, never
cancels siblings, and returns observations in the order of the plan's calls. Calls that write run one after another, in
plan order. Everything else is bounded by gates (`_limits`), the ledger (`_budget`) and deadlines.

One executor serves many runs and pools, on one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from concertino._budget import Budget, Ledger
from concertino._events import CallEnded, Event, Stalled
from concertino._observation import ErrorInfo, Observation, Status
from concertino._plan import Call, Plan, substitute
from concertino._specs import ModelSpec, ToolSpec
from concertino.reading import ReadingError, read_json
from concertino.schema import InstanceRefused, guard_instance

from . import _causes as causes
from ._breaker import BreakerPolicy
from ._invocation import Invocation
from ._limits import Gate, Limits, Waiting, enter
from ._members import Bound, BoundModel, Provider
from ._orphans import unwatch, watch
from ._retry import RetryPolicy
from ._scope import Duplicates, Memory, Scope, Sink
from ._stall import StallWatch
from ._threads import Crew, abandoned

if TYPE_CHECKING:
    from concertino._pool import Pool

logger = logging.getLogger("concertino")


class Executor:
    """Runs plans over pools.

    Args:
        limits: concurrency and patience.
        retries: waiting times between attempts.
        breaker: when providers are spared.

    Use it as an async context manager, or call `aclose` when done.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        retries: RetryPolicy | None = None,
        breaker: BreakerPolicy | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.retries = retries or RetryPolicy()
        self.breaker = breaker or BreakerPolicy()
        self.tasks: dict[asyncio.Task[None], Invocation] = {}
        self.abandoned_calls: set[asyncio.Task[None]] = set()
        self._leaving: set[asyncio.Future[Any]] = set()
        self.stalls: list[Stalled] = []
        self.crew = Crew()
        self._bound: dict[ToolSpec, Bound] = {}
        self._models: dict[ModelSpec, BoundModel] = {}
        self._providers: dict[str, Provider] = {}
        self._tool_gate = Gate(self.limits.calls)
        self._thread_gate = Gate(self.limits.threads)
        self._agent_gates: dict[int, Gate] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watch: StallWatch | None = None
        self._parked = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop what still runs; end threads, processes and models that belong to this executor."""
        queued = [cast(Invocation, call) for queue in self._queues() for call in queue]
        unfinished = [*queued, *self.tasks.values()]
        for invocation in unfinished:
            invocation.stop("cancelled")
        await self.settle_down(unfinished)
        for bound in self._bound.values():
            bound.close()
        self.crew.close()
        self.crew = Crew()
        for model in self._models.values():
            with contextlib.suppress(Exception):
                await model.close()
        for provider in self._providers.values():
            provider.close()
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        if self._loop is not None:
            unwatch(self._loop)
            self._loop = None
        self._bound.clear()
        self._models.clear()

    # -- running plans ---------------------------------------------------------------------------------------------

    def open(
        self, pool: Pool, *, run_id: str = "", question: str = "", budget: Budget | None = None,
        sink: Sink | None = None, memory: Memory | None = None, listeners: Iterable[Callable[[Event], None]] = (),
        before: Sequence[Callable[..., Any]] = (), after: Sequence[Callable[..., Any]] = (),
        duplicates: Duplicates = "run",
    ) -> Scope:  # fmt: skip
        """Open the scope of a run on the current event loop."""
        loop = asyncio.get_running_loop()
        self._attach(loop)
        budget = budget or Budget()
        deadline = loop.time() + budget.seconds if budget.seconds is not None else float("inf")
        ledger = Ledger(budget.limits())
        return Scope(
            run_id or "run", pool, ledger, loop, deadline, question, sink, memory, list(listeners), before, after,
            duplicates,
        )  # fmt: skip

    def _attach(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("an Executor belongs to one event loop; make another one, or aclose() this one first")
        self._loop = loop
        watch(loop)
        self._watch = StallWatch(loop, lambda: bool(self.tasks), self.limits.stall, self._whose, self._blame)

    async def run(
        self, plan: Plan | Iterable[Call], pool: Pool, *, budget: Budget | None = None, **options: Any
    ) -> list[Observation]:
        """Run a plan by itself, outside of any orchestrator.

        Returns:
            One observation per call, in the order of the calls.
        """
        scope = self.open(pool, budget=budget, **options)
        return await self.run_plan(plan if isinstance(plan, Plan) else Plan(plan), scope)

    async def run_plan(
        self, plan: Plan, scope: Scope, *, prefix: str = "", parent: Invocation | None = None
    ) -> list[Observation]:
        """Run a plan inside a scope.

        Args:
            prefix: put before the ids of the calls, so that they are unique in the run.
            parent: the agent's call that wants this plan run.

        Returns:
            One observation per call, in the order of the calls. Never raises for what a call does.
        """
        if not plan.calls:
            return []
        if parent is not None and parent.over:
            raise asyncio.CancelledError  # left over from a call that was given up: nobody sees what it does now
        run = PlanRun(self, scope, plan, prefix, parent)
        run.begin()
        try:
            return await run.future
        except asyncio.CancelledError:
            unfinished = [invocation for invocation in run.invocations if not invocation.over]
            run.cancelled = True
            for invocation in unfinished:
                invocation.stop("cancelled")
            await self.settle_down(unfinished)
            raise

    async def settle_down(self, invocations: Iterable[Invocation]) -> None:
        """Wait until stopped calls have left their tasks, but never longer than the ladder takes."""
        tasks: list[asyncio.Future[Any]] = [i.task for i in invocations if i.task is not None]
        tasks = [task for task in (*tasks, *self._leaving) if not task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=2.5 * self.limits.grace)

    def leaving(self, task: asyncio.Future[Any]) -> None:
        """A task was cancelled and nobody awaits it; closing the executor does, for a moment."""
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    # -- members ---------------------------------------------------------------------------------------------------

    def provider(self, name: str) -> Provider:
        """The state kept about a provider."""
        known = self._providers.get(name)
        if known is None:
            capacity = self.limits.per_provider.get(name, 2**30)
            known = self._providers[name] = Provider(name, capacity, self.breaker)
        return known

    def bind(self, spec: ToolSpec) -> Bound:
        """A tool or agent made ready to run."""
        bound = self._bound.get(spec)
        if bound is None:
            bound = self._bound[spec] = Bound(spec, self.provider(spec.provider or spec.name))
        return bound

    def bind_model(self, spec: ModelSpec) -> BoundModel:
        """A model made ready to be asked."""
        bound = self._models.get(spec)
        if bound is None:
            bound = self._models[spec] = BoundModel(spec, self.provider(spec.provider or spec.name))
        return bound

    def gates(self, bound: Bound, depth: int) -> tuple[Gate, ...]:
        """The gates that a call passes. An agent holds no place that its own calls could need."""
        own = () if bound.gate is None else (bound.gate,)
        if bound.spec.kind == "agent":
            common = self._agent_gates.get(depth)
            if common is None:
                common = self._agent_gates[depth] = Gate(self.limits.calls)
            return (common, *own)
        if bound.spec.is_async:
            return (self._tool_gate, bound.provider.gate, *own)
        return (self._tool_gate, bound.provider.gate, *own, self._thread_gate)

    def submit(self, invocation: Invocation) -> None:
        """Let a call pass its gates now or later."""
        if not enter(invocation):
            invocation.wait_in_queue()

    def overloaded(self, invocation: Invocation) -> bool:
        """Whether a call would have to wait while the queue is full."""
        for gate in invocation.gates:
            if gate.running >= gate.capacity:
                return self.waiting() >= self.limits.queue
        return False

    def _queues(self) -> Iterator[deque[Waiting]]:
        gates = {self._tool_gate, self._thread_gate, *self._agent_gates.values()}
        gates.update(provider.gate for provider in self._providers.values())
        bounds: list[Bound | BoundModel] = [*self._bound.values(), *self._models.values()]
        gates.update(bound.gate for bound in bounds if bound.gate is not None)
        return (queue for gate in gates for queue in gate.waiting.values())

    def waiting(self) -> int:
        """How many calls wait at gates."""
        return sum(len(queue) for queue in self._queues())

    def alone(self, invocation: Invocation) -> bool:
        """Whether no other provider of the pool offers members of the same kind."""
        kind = invocation.kind if isinstance(invocation.bound, Bound) else "model"
        providers = {m.provider or m.name for m in invocation.scope.pool.members if m.kind == kind}
        return len(providers) <= 1

    # -- misbehaviour ----------------------------------------------------------------------------------------------

    def note_abandoned(self, invocation: Invocation) -> None:
        """A call did not obey the ladder."""
        bound = invocation.bound
        if invocation.task is not None:
            self.abandoned_calls.add(invocation.task)
            invocation.task.add_done_callback(self.abandoned_calls.discard)
        bound.abandoned += 1
        if bound.isolation == "thread":
            bound.provider.replace_loop_thread()
        if bound.abandoned > self.limits.abandoned:
            bound.quarantine = f"{bound.abandoned} of its calls could not be stopped"
        logger.warning("%s did not stop when cancelled and was given up (call %s)", bound.name, invocation.call_id)

    def _whose(self, task: asyncio.Task[Any]) -> Invocation | None:
        """The call that a task, or a background task of plugin code, belongs to."""
        found = self.tasks.get(task)
        return found or next((i for i in list(self.tasks.values()) if i.children and task in i.children), None)

    def _blame(self, invocation: Invocation | None, seconds: float, where: str) -> None:
        if invocation is None:
            logger.warning("the event loop was blocked for %.2f s at %s, not by a concertino call", seconds, where)
            return
        stall = Stalled(invocation.call_id, invocation.bound.name, seconds, where)
        self.stalls.append(stall)
        invocation.bound.move_to_thread()
        with contextlib.suppress(Exception):
            invocation.scope.emit(stall)
        logger.warning(
            "%s blocked the event loop for %.2f s at %s; it runs on a thread of its own from now on",
            stall.name, seconds, where,
        )  # fmt: skip

    def health(self) -> dict[str, Any]:
        """What went wrong so far: abandoned calls and threads, stalls, quarantined members, open breakers."""
        return {
            "abandoned_calls": len(self.abandoned_calls),
            "abandoned_threads": abandoned(),
            "stalls": [stall.to_json() for stall in self.stalls],
            "quarantined": {b.name: b.quarantine for b in self._bound.values() if b.quarantine},
            "breakers": {p.name: p.breaker.state for p in self._providers.values() if p.breaker.state != "closed"},
        }


class PlanRun:
    """One plan under way: which calls wait for whom, and who waits for all of them."""

    __slots__ = (
        "_after", "_contents", "_missing", "_positions", "_settling", "cancelled", "context", "deadline", "depth", "executor",
        "future", "invocations", "ledger", "left", "observations", "parent", "plan", "prefix", "scope",
    )  # fmt: skip

    def __init__(self, executor: Executor, scope: Scope, plan: Plan, prefix: str, parent: Invocation | None) -> None:
        self.executor = executor
        self.scope = scope
        self.plan = plan
        self.prefix = prefix
        self.context = contextvars.copy_context()
        self.parent = parent
        self.depth = parent.depth + 1 if parent is not None else 0
        self.ledger: Ledger = parent.ledger if parent is not None else scope.ledger
        self.deadline = parent.deadline - executor.limits.margin if parent is not None else scope.deadline
        self.invocations: list[Invocation] = []
        self.left = len(plan.calls)
        self.observations: list[Observation | None] = [None] * self.left
        self.future: asyncio.Future[list[Observation]] = scope.loop.create_future()
        self.cancelled = False
        self._missing: dict[int, int] = {}
        self._after: dict[int, list[tuple[int, bool]]] = {}
        self._positions: dict[str, int] = {}
        self._contents: dict[str, Any] = {}
        self._settling: deque[tuple[int, Observation]] = deque()

    # -- starting --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start every call that waits for nothing."""
        calls = self.plan.calls
        writers = [i for i, call in enumerate(calls) if self._writes(call)]
        if self.plan.edges or len(writers) > 1:
            self._connect(writers)
        if not self._missing:
            for index, call in enumerate(calls):
                self._start(index, call)
            return
        for index in [index for index in range(len(calls)) if index not in self._missing]:
            self._start(index, calls[index])

    def _writes(self, call: Call) -> bool:
        spec = self.scope.pool.find(call.name)
        return spec is not None and spec.writes

    def _connect(self, writers: list[int]) -> None:
        """Count what each call waits for: data edges need success, the order of writing calls only an end."""
        self._positions = {call.id: index for index, call in enumerate(self.plan.calls)}
        for call_id, before in self.plan.edges.items():
            for other in before:
                self._edge(self._positions[other], self._positions[call_id], True)
        if len(writers) > 1:
            writing = set(writers)
            order = [self._positions[call_id] for call_id in self.plan.topological_order()]
            chain = [index for index in order if index in writing]
            for first, second in pairwise(chain):
                self._edge(first, second, False)

    def _edge(self, first: int, second: int, needs_success: bool) -> None:
        self._after.setdefault(first, []).append((second, needs_success))
        self._missing[second] = self._missing.get(second, 0) + 1

    def _start(self, index: int, call: Call) -> None:
        """Read, check and submit one call; what cannot be run is observed at once."""
        call_id = f"{self.prefix}{call.id}"
        spec = self.scope.pool.find(call.name)
        if call.error is not None:
            self._refuse(
                index,
                call_id,
                call.name,
                Status.PARSE_ERR,
                ErrorInfo(call.error[0], causes.shorten(call.error[1])),
            )
            return
        if spec is None:
            known = [visible for visible, _ in self.scope.pool.actions]
            self._refuse(index, call_id, call.name, Status.PARSE_ERR, causes.unknown_name(call.name, known))
            return
        bound = self.executor.bind(spec)
        arguments, repairs, error = self._read(bound, call)
        if error is not None:
            self._refuse(index, call_id, bound.name, Status.PARSE_ERR, error, repairs)
            return
        invocation = Invocation(self.executor, self.scope, bound, call_id, arguments, self, index)
        invocation.repairs = repairs
        if self._repeats(invocation):
            return
        if self.parent is not None and self.parent.stopping:
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, causes.cancelled())
            return
        if self.depth >= self.executor.limits.depth:
            text = f"agents are nested deeper than {self.executor.limits.depth}"
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, causes.denied(text))
            return
        invocation.gates = self.executor.gates(bound, self.depth)
        if self.executor.overloaded(invocation):
            error = causes.overloaded(self.executor.limits.queue)
            self._refuse(index, call_id, bound.name, Status.EXEC_ERR, error)
            return
        self.invocations.append(invocation)
        if self.parent is not None:
            self.parent.made(invocation)
        self.executor.submit(invocation)

    def _read(self, bound: Bound, call: Call) -> tuple[Any, tuple[str, ...], ErrorInfo | None]:
        """The arguments as data, validated against the schema that the model saw."""
        arguments: Any = call.arguments
        repairs = call.repairs
        validator = bound.validator
        try:
            if isinstance(arguments, str):
                reading = read_json(arguments or "{}", maths_fields=bound.spec.maths_fields)
                arguments, repairs = reading.value, repairs + reading.repairs
            else:
                if call.id in self.plan.edges:
                    arguments = substitute(arguments, self._contents)
                guard_instance(arguments)
                if not isinstance(arguments, Mapping):
                    return (
                        None,
                        repairs,
                        causes.refused_arguments(f"expected an object, got {type(arguments).__name__}"),
                    )
                arguments = dict(arguments)
            if not validator.is_valid(arguments):
                arguments, coerced = validator.coerce(arguments)
                repairs += coerced
                violations = validator.check(arguments)
                if violations:
                    return arguments, repairs, causes.invalid_arguments(violations, validator)
        except ReadingError as error:
            return None, repairs, causes.bad_json(error)
        except InstanceRefused as error:
            return None, repairs, causes.refused_arguments(str(error))
        return arguments, repairs, self._converted(bound, arguments)

    @staticmethod
    def _converted(bound: Bound, arguments: Mapping[str, Any]) -> ErrorInfo | None:
        """Whether the plugin's own types (pydantic) take what its schema took."""
        if bound.convert is None:
            return None
        try:
            bound.convert(arguments)
        except Exception as error:
            return causes.refused_arguments(f"{error}")
        return None

    def _repeats(self, invocation: Invocation) -> bool:
        """Note the call, and answer it here if the run wants repeated calls answered or refused."""
        scope = self.scope
        if scope.duplicates == "run" or invocation.bound.spec.writes:
            return False
        key = (invocation.bound.name, json.dumps(invocation.arguments, sort_keys=True))
        first = scope.seen.setdefault(key, invocation.call_id)
        if first == invocation.call_id:
            return False
        earlier = scope.results.get(first)
        if scope.duplicates == "reuse" and earlier is not None and earlier.ok:
            answer = Observation(
                invocation.call_id, earlier.name, earlier.status, earlier.content, None, attempts=0,
                started=scope.now(), ended=scope.now(), repairs=invocation.repairs, replayed=True,
            )  # fmt: skip
            self._deliver_now(invocation.index, answer)
            return True
        if scope.duplicates == "refuse":
            error = causes.duplicate(first)
            self._refuse(invocation.index, invocation.call_id, invocation.bound.name, Status.EXEC_ERR, error)
            return True
        return False

    def _refuse(
        self,
        index: int,
        call_id: str,
        name: str,
        status: Status,
        error: ErrorInfo,
        repairs: tuple[str, ...] = (),
    ) -> None:
        now = self.scope.now()
        self._deliver_now(
            index, Observation(call_id, name, status, None, error, started=now, ended=now, repairs=repairs)
        )

    def _deliver_now(self, index: int, observation: Observation) -> None:
        parent = self.parent.call_id if self.parent is not None else ""
        self.scope.emit_result(CallEnded(observation, parent))
        self._note(observation)
        self._settle(index, observation)

    # -- ending ----------------------------------------------------------------------------------------------------

    def observed(self, invocation: Invocation, observation: Observation) -> None:
        """A call has its observation; it is recorded but not yet seen."""
        self.observations[invocation.index] = observation
        self._note(observation)

    def _note(self, observation: Observation) -> None:
        self.scope.results[observation.call_id] = observation
        if self.depth == 0:
            self.scope.finished.append(observation)

    def delivered(self, invocation: Invocation) -> None:
        """A call's observation may be seen: whoever waits for it goes on."""
        observation = self.observations[invocation.index]
        assert observation is not None
        if invocation.full is not None:
            self._contents[self.plan.calls[invocation.index].id] = invocation.full
        self._settle(invocation.index, observation)

    def _settle(self, index: int, observation: Observation) -> None:
        """Pass an observation on to the followers, without recursion: a chain of failures may be long."""
        self._settling.append((index, observation))
        if len(self._settling) > 1:
            return  # a follower that was refused at once; the loop below, further up the stack, takes it
        while self._settling:
            index, observation = self._settling[0]
            self._pass_on(index, observation)
            self._settling.popleft()
        if self.left == 0 and not self.future.done():
            self.future.set_result([seen for seen in self.observations if seen is not None])

    def _pass_on(self, index: int, observation: Observation) -> None:
        self.observations[index] = observation
        self.left -= 1
        call = self.plan.calls[index]
        if self.plan.edges:
            self._contents.setdefault(call.id, observation.content)
        for follower, needs_success in self._after.get(index, ()):
            if self._missing.get(follower, 0) <= 0:
                continue
            if needs_success and not observation.ok:
                self._missing[follower] = 0
                self._settling.append((follower, self._unreachable(follower, call.id, observation)))
            else:
                self._missing[follower] -= 1
                if self._missing[follower] == 0 and not self.cancelled:
                    self._start(follower, self.plan.calls[follower])

    def _unreachable(self, index: int, before: str, because: Observation) -> Observation:
        call = self.plan.calls[index]
        now = self.scope.now()
        spec = self.scope.pool.find(call.name)
        observation = Observation(
            f"{self.prefix}{call.id}", spec.name if spec else call.name, Status.EXEC_ERR, None,
            causes.dependency_failed(before, because.status.value), started=now, ended=now,
        )  # fmt: skip
        self.scope.emit_result(CallEnded(observation, self.parent.call_id if self.parent is not None else ""))
        self._note(observation)
        return observation
