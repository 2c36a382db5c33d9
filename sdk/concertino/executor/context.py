"""The context of a call: what `concertino.Context` promises, kept by the executor.

Every method works on the executor's own event loop, wherever the tool or agent itself runs (a thread of its own
included). The numbers of nested calls and requests survive a crash, so a resumed run repeats nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, TypeVar

from concertino.core.budget import Amount
from concertino.core.errors import SpecError
from concertino.core.events import Progressed, idempotency_key
from concertino.core.known_secrets import without_secrets
from concertino.core.model import ChatRequest, Message, Reply
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan
from concertino.members.context import Context, ContextModel
from concertino.members.patterns import matches
from concertino.members.specs import function_object

from .approval import Suspension, is_pending
from .execution import Execution

T = TypeVar("T")
_REPORT_INTERVAL = 0.1
"""Seconds between two progress events of one call."""


class PoolModel(ContextModel):
    """A model of the pool inside an agent's call."""

    def __init__(self, context: CallContext, name: str) -> None:
        self._context = context
        self.name = name

    async def ask(self, request: ChatRequest) -> Reply:
        return await self._context._ask(self.name, request)


class CallContext(Context[Any]):
    """The context of one call."""

    def __init__(self, call: Execution) -> None:
        self._call = call
        self._host = call.owner.host
        self._home = call.scope.loop
        self._reported_at = float("-inf")
        self._complete = False

    # -- knowing ---------------------------------------------------------------------------------------------------

    @property
    def deps(self) -> Any:
        if self._call.scope.deps is None:
            raise SpecError(
                f"{self._call.bound.name!r} asks for ctx.deps, and the run has none; give run(..., deps=...)"
            )
        return self._call.scope.deps

    @property
    def question(self) -> str:
        return self._call.scope.question

    @property
    def call_id(self) -> str:
        return self._call.call_id

    @property
    def run_id(self) -> str:
        return self._call.run_id

    @property
    def idempotency_key(self) -> str:
        return idempotency_key(self._call.run_id, self._call.call_id)

    @property
    def history(self) -> tuple[Observation, ...]:
        return tuple(self._call.scope.finished)

    @property
    def transcript(self) -> tuple[Message, ...]:
        return tuple(self._call.scope.transcript)

    @property
    def remaining(self) -> Amount:
        return self._call.ledger.remaining()

    def remaining_seconds(self) -> float:
        return self._call.deadline - self._home.time()

    @property
    def models(self) -> dict[str, str]:
        pool = self._call.scope.pool
        short = [spec.short_name for spec in pool.models]
        known = {spec.short_name: spec.name for spec in pool.models if short.count(spec.short_name) == 1}
        # Roles last: a role wins over a model of the same name, as in `Pool.model`.
        return {**known, **{spec.name: spec.name for spec in pool.models}, **pool.roles}

    def offered(self, *patterns: str, without: str = "", question: str = "") -> list[Mapping[str, Any]]:
        pool = self._call.scope.pool
        if question and not patterns and pool.searched is not None:
            left_out = {v for v, spec in pool.actions if without in (spec.name, spec.short_name)} if without else set()
            return [
                tool
                for tool in pool.searched.listing(pool.searched.find(question))
                if tool["function"]["name"] not in left_out
            ]
        chosen = {
            visible
            for visible, spec in pool.actions
            if without not in (spec.name, spec.short_name) and (not patterns or any(matches(spec, p) for p in patterns))
        }
        return [tool for tool in pool.functions if tool["function"]["name"] in chosen]

    @property
    def toolbox(self) -> list[dict[str, Any]]:
        tools = self._call.bound.own_tools
        return [function_object(name, spec.description, spec.input_schema) for name, spec in tools.items()]

    # -- doing -----------------------------------------------------------------------------------------------------

    def model(self, role_or_name: str = "default") -> PoolModel:
        self._only_agents("ctx.model")
        return PoolModel(self, self._call.scope.pool.model(role_or_name).name)

    async def call(self, name: str, arguments: Mapping[str, Any] | str = "{}") -> Observation:
        return (await self.run([Call(name, arguments)]))[0]

    async def run(self, plan: Plan | Iterable[Call]) -> list[Observation]:
        self._only_agents("ctx.run")
        plan = plan if isinstance(plan, Plan) else Plan(plan)
        memory = self._call.scope.memory
        # Found by its content: a resumed agent may do things in another order than before.
        known = memory.claim_plan(self._call.call_id, plan.to_json()) if memory is not None else 0
        prefix = f"{self._call.call_id}/{known or self._next_number()}."
        observations: list[Observation] = await self._at_home(
            lambda: self._host.run_plan(plan, self._call.scope, prefix=prefix, parent=self._call)
        )
        if any(map(is_pending, observations)):
            raise Suspension
        return observations

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        now = self._home.time()
        complete = done == total
        # The report that the call is complete always passes, but only once.
        if now - self._reported_at < _REPORT_INTERVAL and (self._complete or not complete):
            return
        self._reported_at, self._complete = now, complete
        call = self._call
        event = Progressed(call.call_id, call.bound.name, done, total, without_secrets(message), call.scope.now())
        # Not `get_running_loop`, which raises in the thread of a synchronous tool.
        if asyncio._get_running_loop() is self._home:
            call.scope.tell(event)
        else:
            self._home.call_soon_threadsafe(call.scope.tell, event)

    def _next_number(self) -> int:
        """A number that no plan or request of this call has had, in an earlier process neither."""
        memory, family = self._call.scope.memory, self._call.family()
        if memory is not None:
            family.numbered = max(family.numbered, memory.highest_number(self._call.call_id))
        family.numbered += 1
        return family.numbered

    async def gather(self, *work: Awaitable[T] | Iterable[Awaitable[T]]) -> list[T]:
        awaitables: list[Awaitable[T]] = []
        for item in work:
            if isinstance(item, Awaitable):
                awaitables.append(item)
            else:
                awaitables.extend(item)
        tasks = [asyncio.ensure_future(item) for item in awaitables]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            # Bounded: what does not obey its cancellation ends with the call.
            await asyncio.wait(tasks, timeout=self._call.runtime.limits.grace)
            raise

    def wait(self, awaitable: Awaitable[T]) -> T:

        # `run_coroutine_threadsafe` takes coroutines only, and a future is awaitable too.
        async def work() -> T:
            return await awaitable

        if asyncio._get_running_loop() is self._home:
            name = self._call.bound.name
            raise SpecError(f"{name!r} is async: write `await ...`; ctx.wait would block the event loop")
        return asyncio.run_coroutine_threadsafe(work(), self._home).result()

    async def _ask(self, model: str, request: ChatRequest) -> Reply:
        memory = self._call.scope.memory
        messages = [message.to_json() for message in request.messages] if memory is not None else []
        known = memory.claim_request(self._call.call_id, messages) if memory is not None else 0
        call_id = f"{self._call.call_id}/{known or self._next_number()}"
        reply: Reply = await self._at_home(
            lambda: self._host.ask(model, request, self._call.scope, call_id=call_id, parent=self._call)
        )
        return reply

    async def _at_home(self, start: Any) -> Any:
        """Run on the executor's loop, wherever the agent itself runs."""
        if asyncio.get_running_loop() is self._home:
            return await start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(start(), self._home))

    def _only_agents(self, what: str) -> None:
        if not self._call.bound.is_agent:
            raise SpecError(f"{self._call.bound.name!r} is a tool; {what} is for agents: declare it with @agent")
