"""The executor: runs plans. It knows calls, edges and members, and nothing of paradigms, prompts or models' texts.

Each call starts the moment its own predecessors have succeeded; there are no levels. A round never raises, never
cancels siblings, and returns observations in the order of the plan's calls. Calls that write run one after another, in
plan order. Everything else is bounded by gates (`_limits`), the ledger (`_budget`) and deadlines.

One executor serves many runs and pools, on one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from concertino.core.budget import Budget
from concertino.core.events import Event, Stalled
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan
from concertino.members.specs import AgentSpec, ModelSpec, ToolSpec

from .bound import Bound, BoundModel, OpenModel, Provider
from .breaker import BreakerPolicy
from .call import Invocation
from .deadlines import Deadlines
from .hooks import plugin_hooks
from .isolation.orphans import unwatch, watch
from .isolation.stall import StallWatch
from .isolation.threads import Crew, abandoned
from .ledger import Ledger
from .limits import UNLIMITED, Gate, Limits, Waiting, enter
from .plan_run import PlanRun
from .retry import RetryPolicy
from .scope import Duplicates, Memory, Scope, Sink

if TYPE_CHECKING:
    from concertino.core.model import ChatRequest, Model, Reply
    from concertino.members.specs import Spec
    from concertino.pool.pool import Pool

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
        self.closed_calls = 0
        self.stalls: list[Stalled] = []
        self.deadlines: Deadlines
        self.crew = Crew()
        self._bound: dict[ToolSpec, Bound] = {}
        self._models: dict[ModelSpec, BoundModel] = {}
        self._open: dict[Callable[[], Model], OpenModel] = {}
        self._scopes: weakref.WeakSet[Scope] = weakref.WeakSet()
        self._newest: tuple[Spec, ...] = ()
        self._stale = False
        self._turns: Counter[str] = Counter()
        self._providers: dict[str, Provider] = {}
        self._tool_gate = Gate(self.limits.calls)
        self._thread_gate = Gate(self.limits.threads)
        self._agent_gates: dict[int, Gate] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watch: StallWatch | None = None
        self.waiting = 0

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
        for model in self._open.values():
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
        self._open.clear()

    # -- running plans ---------------------------------------------------------------------------------------------

    def open(
        self,
        pool: Pool,
        *,
        run_id: str = "",
        question: str = "",
        budget: Budget | None = None,
        sink: Sink | None = None,
        memory: Memory | None = None,
        listeners: Iterable[Callable[[Event], None]] = (),
        before: Sequence[Callable[..., Any]] = (),
        after: Sequence[Callable[..., Any]] = (),
        duplicates: Duplicates = "run",
        elapsed: float = 0.0,
    ) -> Scope:
        """Open the scope of a run on the current event loop.

        Args:
            before: hooks beside those of plugins, and asked before them.
            after: hooks beside those of plugins, and told after them.
            elapsed: seconds that an earlier process spent on this run; times and deadline go on from there.
        """
        loop = asyncio.get_running_loop()
        self._attach(loop)
        budget = budget or Budget()
        members = pool.members  # loads the plugins of an installed pool, whose hooks count from here on
        started = loop.time() - elapsed
        deadline = started + budget.seconds if budget.seconds is not None else float("inf")
        ledger = Ledger(budget.limits())
        plugins_before, plugins_after = plugin_hooks(pool)
        scope = Scope(
            run_id or "run",
            pool,
            ledger,
            loop,
            started,
            deadline,
            question,
            sink,
            memory,
            list(listeners),
            [*before, *plugins_before],
            [*plugins_after, *after],
            duplicates,
        )
        if members != self._newest:
            self._newest, self._stale = members, True
        self._scopes.add(scope)
        return scope

    async def release(self, scope: Scope) -> None:
        """A run is over: forget members that are neither in the newest pool nor in that of a run under way.

        So an executor that serves for months, over pools that come and go, holds no more than the pools in use.
        """
        self._scopes.discard(scope)
        if not self._stale:
            return
        others = [s.pool.members for s in self._scopes if s.pool.members != self._newest]
        self._stale = bool(others)
        used = {spec for members in (self._newest, *others) for spec in members}
        used |= {tool for spec in used if isinstance(spec, AgentSpec) for tool in spec.toolbox}
        for tool in [spec for spec in self._bound if spec not in used]:
            self._bound.pop(tool).close()
        for model in [spec for spec in self._models if spec not in used]:
            del self._models[model]
        needed = {spec.factory for spec in used if isinstance(spec, ModelSpec)}
        unused = [self._open.pop(factory) for factory in list(self._open) if factory not in needed]
        for opened in unused:  # none of them can be found any more, so nobody begins to use one while it closes
            with contextlib.suppress(Exception):
                await opened.close()

    def _attach(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("an Executor belongs to one event loop; make another one, or aclose() this one first")
        if self._watch is not None:  # the loop before was closed; so are the connections of its models
            self._watch.stop()
            for opened in self._open.values():
                self.leaving(loop.create_task(_close_quietly(opened)))
            self._models.clear()
            self._open.clear()
        self._loop = loop
        self.deadlines = Deadlines(loop)
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
        try:
            return await self.run_plan(plan if isinstance(plan, Plan) else Plan(plan), scope)
        finally:
            await self.release(scope)

    async def ask(self, model: str, request: ChatRequest, scope: Scope, *, call_id: str = "") -> Reply:
        """Ask a model inside a scope, outside of any strategy: with its limits, retries, budget and record.

        Args:
            model: a role or name of the scope's pool.
            call_id: unique in the scope; by default `ask.1`, `ask.2`, …

        Raises:
            CallFailed: it did not answer; the observation says why.
            PoolError: no such role or model.
        """
        from .model_call import ask

        scope.asks += 1
        reply, _ = await ask(self, scope, model, request, call_id or f"ask.{scope.asks}")
        return reply

    async def run_plan(
        self,
        plan: Plan,
        scope: Scope,
        *,
        prefix: str = "",
        parent: Invocation | None = None,
        begun: Mapping[str, PlanRun] | None = None,
    ) -> list[Observation]:
        """Run a plan inside a scope.

        Args:
            prefix: put before the ids of the calls, so that they are unique in the run.
            parent: the agent's call that wants this plan run.
            begun: calls of the plan that were begun before it, each as a plan of its own, by id.

        Returns:
            One observation per call, in the order of the calls. Never raises for what a call does.
        """
        if not plan.calls:
            return []
        if parent is not None and parent.over:
            raise asyncio.CancelledError  # left over from a call that was given up: nobody sees what it does now
        run = self.begin_plan(plan, scope, prefix=prefix, parent=parent, begun=begun)
        try:
            return await run.future
        except asyncio.CancelledError:
            await self.stop_plan(run)
            raise

    def begin_plan(
        self,
        plan: Plan,
        scope: Scope,
        *,
        prefix: str = "",
        parent: Invocation | None = None,
        begun: Mapping[str, PlanRun] | None = None,
    ) -> PlanRun:
        """Begin a plan without waiting for it; its `future` gives the observations. Arguments as for `run_plan`."""
        run = PlanRun(self, scope, plan, prefix, parent, begun)
        run.begin()
        return run

    async def stop_plan(self, run: PlanRun) -> None:
        """Stop what still runs of a plan."""
        unfinished = [invocation for invocation in run.invocations if not invocation.over]
        run.cancelled = True
        for invocation in unfinished:
            invocation.stop("cancelled")
        await self.settle_down(unfinished)

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

    def provider(self, name: str, endpoint: str = "") -> Provider:
        """The state kept about a provider, or about one of its endpoints."""
        key = endpoint or name
        known = self._providers.get(key)
        if known is None:
            capacity = self.limits.per_provider.get(key, self.limits.per_provider.get(name, UNLIMITED))
            known = self._providers[key] = Provider(key, capacity, self.breaker)
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
            opened = self._open.get(spec.factory)
            if opened is None:
                opened = self._open[spec.factory] = OpenModel(spec.factory)
            bound = self._models[spec] = BoundModel(
                spec, self.provider(spec.provider or spec.name, spec.endpoint), opened
            )
        return bound

    def turn(self, router: str) -> int:
        """How often a router was used before."""
        self._turns[router] += 1
        return self._turns[router] - 1

    def gates(self, bound: Bound, depth: int) -> tuple[Gate, ...]:
        """The gates that a call passes. An agent holds no place that its own calls could need."""
        own = () if bound.gate is None else (bound.gate,)
        if bound.spec.kind == "agent":
            common = self._agent_gates.get(depth)
            if common is None:
                common = self._agent_gates[depth] = Gate(self.limits.calls)
            return (common, *own)
        threads = () if bound.spec.is_async else (self._thread_gate,)
        # A gate that never was full is not even counted: most calls pass one gate.
        provider = () if bound.provider.gate.capacity >= UNLIMITED else (bound.provider.gate,)
        return (self._tool_gate, *provider, *own, *threads)

    def submit(self, invocation: Invocation) -> None:
        """Let a call pass its gates now or later."""
        if not enter(invocation):
            invocation.wait_in_queue()

    def overloaded(self, invocation: Invocation) -> bool:
        """Whether a call would have to wait while the queue is full."""
        for gate in invocation.gates:
            if gate.running >= gate.capacity:
                return self.waiting >= self.limits.queue
        return False

    def _queues(self) -> Iterator[deque[Waiting]]:
        gates = {self._tool_gate, self._thread_gate, *self._agent_gates.values()}
        gates.update(provider.gate for provider in self._providers.values())
        bounds: list[Bound | BoundModel] = [*self._bound.values(), *self._models.values()]
        gates.update(bound.gate for bound in bounds if bound.gate is not None)
        return (queue for gate in gates for queue in gate.waiting.values())

    def alone(self, invocation: Invocation) -> bool:
        """Whether no other provider, or endpoint, of the pool offers members of the same kind."""
        pool = invocation.scope.pool
        if not isinstance(invocation.bound, Bound):
            return len({m.endpoint or m.provider or m.name for m in pool.models if not m.needs}) <= 1
        return len({m.provider or m.name for m in pool.members if m.kind == invocation.kind}) <= 1

    # -- misbehaviour ----------------------------------------------------------------------------------------------

    def note_abandoned(self, invocation: Invocation) -> None:
        """A call did not obey the ladder."""
        bound = invocation.bound
        if invocation.task is not None:
            self.abandoned_calls.add(invocation.task)
            invocation.task.add_done_callback(self.abandoned_calls.discard)
            # `asyncio.run` waits for all tasks at its end, and this one would keep the process for ever.
            asyncio.tasks._unregister_task(invocation.task)
            invocation.task._log_destroy_pending = False  # type: ignore[attr-defined]
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
        moved = invocation.bound.move_to_thread()
        with contextlib.suppress(Exception):
            invocation.scope.emit(stall)
        after = "it runs on a thread of its own from now on" if moved else "it cannot be moved: make it asynchronous"
        logger.warning("%s blocked the event loop for %.2f s at %s; %s", stall.name, seconds, where, after)

    def health(self) -> dict[str, Any]:
        """What went wrong so far.

        Calls that ignored their cancellation and had to be closed, or could not be; abandoned threads; stalls;
        quarantined members; breakers that are not closed.
        """
        return {
            "closed_calls": self.closed_calls,
            "abandoned_calls": len(self.abandoned_calls),
            "abandoned_threads": abandoned(),
            "stalls": [stall.to_json() for stall in self.stalls],
            "quarantined": {b.name: b.quarantine for b in self._bound.values() if b.quarantine},
            "breakers": {p.name: p.breaker.state for p in self._providers.values() if p.breaker.state != "closed"},
        }


async def _close_quietly(opened: OpenModel) -> None:
    """Close a model whose event loop is gone: what can be freed is."""
    with contextlib.suppress(Exception):
        await opened.close()
