"""The executor: runs plans. It knows calls, edges and members, and nothing of paradigms, prompts or models' texts.

Each call starts the moment its own predecessors have succeeded; there are no levels. A round never raises, never
cancels siblings, and returns observations in the order of the plan's calls. Calls that write run one after another, in
plan order. Everything else is bounded by gates (`gates`), the ledger (`ledger`) and deadlines (`runtime`).

One executor serves many runs and pools, on one event loop. It holds three things: the members made ready to run
and the gates that calls pass (`bindings`), what the executions under way share (`runtime`), and a watch on the event
loop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from concertino.core.approval import Approver, Decision
from concertino.core.attachment import with_attachments
from concertino.core.budget import Budget
from concertino.core.errors import UsageError
from concertino.core.events import Event
from concertino.core.known_secrets import look_around
from concertino.core.observation import CallFailed, Observation, Status
from concertino.core.plan import Call, Plan
from concertino.members.routing import RouterSpec
from concertino.members.specs import ModelSpec

from .bindings import Bindings, close_quietly
from .breaker import BreakerPolicy
from .execution import Execution, stop_all
from .gates import Waiting
from .hooks import plugin_hooks
from .isolation.orphans import unwatch, watch
from .isolation.stall import StallWatch
from .isolation.threads import Crew, abandoned
from .ledger import Ledger
from .limits import Limits
from .model_call import StreamListener, ask_model
from .plan_run import PlanRun
from .retry import RetryPolicy
from .runtime import Deadlines, Runtime, UnderWay
from .scope import Duplicates, Memory, Scope, Sink
from .turns import Turns
from .validation import refused_schema

if TYPE_CHECKING:
    from concertino.core.model import ChatRequest, Message, Reply
    from concertino.pool.pool import Pool

_LIMITS, _RETRIES, _BREAKER = Limits(), RetryPolicy(), BreakerPolicy()
"""The defaults, which nobody changes: an executor is often made for one run."""


class Executor:
    """Runs plans over pools.

    Args:
        limits: concurrency, grace periods, sizes.
        retries: waiting times between attempts.
        breaker: when a failing provider is not asked.

    Use it as an async context manager, or call `aclose` when done.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        retries: RetryPolicy | None = None,
        breaker: BreakerPolicy | None = None,
    ) -> None:
        if not isinstance(limits, Limits | None):
            raise UsageError(f"limits={limits!r}: expected Limits, such as Limits(calls=8)")
        limits = limits or _LIMITS
        self.runtime = Runtime(limits, retries or _RETRIES)
        self.bindings = Bindings(limits, breaker or _BREAKER)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watch: StallWatch[UnderWay] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop what still runs; end threads, processes and models that belong to this executor."""
        runtime = self.runtime
        # Lists, because stopping an execution takes it out of its queue and out of the tasks.
        tasks = list(runtime.tasks)
        unfinished: list[Waiting | UnderWay] = [*self.bindings.queued(), *runtime.tasks.values()]
        for execution in unfinished:
            execution.stop("cancelled")
        await runtime.settle_down(tasks)
        # Workers first: threads of the crew wait for their answers, and leave when the processes are gone.
        await self.bindings.close()
        runtime.crew.close()
        # A closed executor may be used again, on another event loop.
        runtime.crew = Crew()
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        if self._loop is not None:
            unwatch(self._loop)
            self._loop = None

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
        deps: Any = None,
        streams: bool = False,
        approver: Approver | None = None,
        decisions: Mapping[str, Decision] | None = None,
        spared: float = 0.0,
    ) -> Scope:
        """Open the scope of a run on the current event loop.

        Args:
            run_id: of the record, and part of idempotency keys; a fresh one by default.
            before: hooks in addition to those of plugins; they are asked first.
            after: hooks in addition to those of plugins; they are told last.
            elapsed: seconds that an earlier process spent on this run; they count towards its deadline.
            deps: what `ctx.deps` gives.
            streams: whether listeners get text as it is written.
            approver: decides about calls that need approval.
            decisions: what was decided about calls already.
            spared: seconds of `elapsed` during which a person decided; they count for no deadline.
        """
        look_around()
        loop = asyncio.get_running_loop()
        self._attach(loop)
        budget = budget or Budget()
        members = pool.members  # loads the plugins of an installed pool, whose hooks count from here on
        plugins_before, plugins_after = plugin_hooks(pool)
        started = loop.time() - elapsed
        scope = Scope(
            # Idempotency keys are made of it: a service must not take a second plan for the first one, repeated.
            run_id or f"run-{os.urandom(6).hex()}",
            pool,
            Ledger(budget.limits()),
            loop,
            started,
            started + budget.seconds + spared if budget.seconds is not None else float("inf"),
            question,
            sink,
            memory,
            list(listeners),
            [*before, *plugins_before],
            [*plugins_after, *after],
            duplicates,
        )
        scope.deps, scope.streams, scope.approver, scope.decisions = deps, streams, approver, decisions or {}
        self.bindings.keep_for(scope, members)
        return scope

    async def release(self, scope: Scope) -> None:
        """A run is over: forget members that are neither in the newest pool nor in that of a run under way."""
        await self.bindings.release(scope)

    def _attach(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("an Executor belongs to one event loop; make another one, or aclose() this one first")
        runtime = self.runtime
        if self._watch is not None:  # the loop before was closed; so are the connections of its models
            self._watch.stop()
            for opened in self.bindings.take_models():
                runtime.leaving(loop.create_task(close_quietly(opened)))
        self._loop = loop
        runtime.deadlines, runtime.turns = Deadlines.of(loop), Turns.of(loop)
        watch(loop)
        self._watch = StallWatch(loop, lambda: bool(runtime.tasks), runtime.limits.stall, runtime.whose, runtime.blame)

    async def run(
        self, plan: Plan | Iterable[Call], pool: Pool, *, budget: Budget | None = None, **options: Any
    ) -> list[Observation]:
        """Run a plan without an orchestrator.

        Returns:
            One observation per call, in the order of the calls.
        """
        scope = self.open(pool, budget=budget, **options)
        try:
            return await self.run_plan(plan if isinstance(plan, Plan) else Plan(plan), scope)
        finally:
            await self.release(scope)

    async def ask(
        self,
        model: str,
        request: ChatRequest,
        scope: Scope,
        *,
        call_id: str = "",
        parent: Execution | None = None,
        role: str = "",
        fresh: Sequence[Message] = (),
        listener: StreamListener | None = None,
        checked: bool = True,
    ) -> Reply:
        """Ask a model inside a scope: with its limits, retries, budget and record.

        Args:
            model: a role or name of the scope's pool; of a router, one of its models answers.
            call_id: unique in the scope; by default `ask.1`, `ask.2`, …
            parent: the agent's call that asks.
            role: the strategy's role that asks, for the record; empty outside of a strategy.
            fresh: the messages that are new since the role's last request; only they are recorded.
            listener: hears the text while it is written; the model is then asked for a stream.
            checked: a reply that breaks the request's schema is a failure; without, the caller checks it.

        Raises:
            CallFailed: it did not answer; the observation says why.
            PoolError: no such role or model.
        """
        if not call_id:
            scope.asks += 1
            call_id = f"ask.{scope.asks}"
        spec = scope.pool.model(model)
        if scope.attachments:
            request = replace(request, messages=with_attachments(request.messages, scope.attachments))
        # Checked before anything is paid, since every model of a router would be asked in vain.
        if request.schema is not None and (wrong := refused_schema(request.schema)) is not None:
            raise CallFailed(Observation(call_id, spec.name, Status.EXEC_ERR, None, wrong))
        seconds = spec.per_model if isinstance(spec, RouterSpec) else None

        def ask(chosen: ModelSpec, name: str, fresh: Sequence[Message]) -> Awaitable[Reply]:
            return ask_model(self, scope, chosen, request, name, parent, role, fresh, listener, seconds, checked)

        if isinstance(spec, RouterSpec):
            from .routes import Route, ask_in_turn

            route = Route(self.bindings, scope, spec, request)
            return await ask_in_turn(route, ask, call_id, fresh, parent.deadline if parent else scope.deadline)
        return await ask(spec, call_id, fresh)

    async def run_plan(
        self,
        plan: Plan,
        scope: Scope,
        *,
        prefix: str = "",
        parent: Execution | None = None,
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
        # Without a call, nothing would ever settle the future of the run.
        if not plan.calls:
            return []
        if parent is not None and parent.over:
            raise asyncio.CancelledError  # left over from a call that was given up: nobody sees what it does now
        run = self.begin_plan(plan, scope, prefix=prefix, parent=parent, begun=begun)
        try:
            return await run.future
        except asyncio.CancelledError:
            # Its calls have tasks of their own, which the cancellation of the caller does not reach.
            await self.stop_plan(run)
            raise

    def begin_plan(
        self,
        plan: Plan,
        scope: Scope,
        *,
        prefix: str = "",
        parent: Execution | None = None,
        begun: Mapping[str, PlanRun] | None = None,
    ) -> PlanRun:
        """Begin a plan without waiting for it; its `future` gives the observations. Arguments as for `run_plan`."""
        run = PlanRun(self, scope, plan, prefix, parent, begun)
        run.begin()
        return run

    async def stop_plan(self, run: PlanRun) -> None:
        """Stop what still runs of a plan."""
        # First, or the end of one call would start those behind it.
        run.cancelled = True
        run.stop_waiting()
        await stop_all([call for call in run.calls if not call.over], self.runtime)

    # -- misbehaviour ----------------------------------------------------------------------------------------------

    def health(self) -> dict[str, Any]:
        """What went wrong so far.

        Calls that ignored their cancellation and had to be closed, or could not be; abandoned threads; stalls;
        quarantined members; breakers that are not closed.
        """
        tools, providers = self.bindings.tools.values(), self.bindings.providers.values()
        noted = self.runtime.misbehaviour
        return {
            "closed_calls": noted.closed_calls,
            "abandoned_calls": len(noted.abandoned_calls),
            "abandoned_threads": abandoned(),
            "stalls": [stall.to_json() for stall in noted.stalls],
            "quarantined": {bound.name: bound.quarantine for bound in tools if bound.quarantine},
            "breakers": {p.name: p.breaker.state for p in providers if p.breaker.state != "closed"},
        }
