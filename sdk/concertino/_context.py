"""What an agent is given: its way to models, to other members, to the time and the budget that are left.

A function asks for it by annotation (`ctx: Context`), under any name; it never reaches the schema. Everything an
agent does through it is part of its call: it spends from the same budget, ends with the same deadline, is recorded as
a sub-trace, and is not repeated when a run is resumed.

A tool may take a context too, for its deadline and idempotency key; calling models and members is for agents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ._errors import SpecError
from ._models import ChatRequest, Message, Reply, Sampling
from ._observation import Observation
from ._plan import Call, Plan
from ._specs import function_object
from .events import Progressed, idempotency_key

if TYPE_CHECKING:
    from ._budget import Amount
    from .executor._invocation import Invocation

T = TypeVar("T")
_TELLING = 0.1
"""Seconds between two events of progress of one call."""


class BoundModel:
    """A model of the pool inside an agent's call. `name` is its pool name."""

    def __init__(self, context: Context, name: str) -> None:
        self._context = context
        self.name = name

    async def chat(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[dict[str, Any]] = (),
        sampling: Sampling | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Ask the model. A plain text is one user message; with a `schema`, the reply's `data` satisfies it.

        Raises:
            CallFailed: no answer (deadline, budget, provider), or one that breaks the schema; an agent may catch it
                and do without.
            UsageError: tools and a schema together.
        """
        if isinstance(messages, str):
            messages = [Message("user", messages)]
        request = ChatRequest(messages, tools, sampling or Sampling(), schema=schema)
        return await self._context._ask(self.name, request)


class Context:
    """Given to every tool or agent that asks for it. Not made by hand; `concertino.testing` makes one for tests."""

    def __init__(self, invocation: Invocation) -> None:
        self._call = invocation
        self._home = invocation.scope.loop
        self._told = float("-inf")
        self._complete = False

    # -- knowing ---------------------------------------------------------------------------------------------------

    @property
    def question(self) -> str:
        """The question of the whole run."""
        return self._call.scope.question

    @property
    def call_id(self) -> str:
        """Id of this call, unique in its run."""
        return self._call.call_id

    @property
    def run_id(self) -> str:
        """Id of the run."""
        return self._call.run_id

    @property
    def idempotency_key(self) -> str:
        """The same for this call whenever it is repeated, after a crash too; hand it to services that take one."""
        return idempotency_key(self._call.run_id, self._call.call_id)

    @property
    def history(self) -> tuple[Observation, ...]:
        """What the orchestrator's calls of this run have given so far, in the order of finishing."""
        return tuple(self._call.scope.finished)

    @property
    def transcript(self) -> tuple[Message, ...]:
        """The orchestrator's conversation so far."""
        return tuple(self._call.scope.transcript)

    @property
    def remaining(self) -> Amount:
        """What is left of the budget in calls, units, $ and tokens; infinity where there is no limit."""
        return self._call.ledger.remaining()

    def remaining_seconds(self) -> float:
        """Seconds until this call's deadline; infinity without one."""
        return float(self._call.deadline - self._home.time())

    @property
    def models(self) -> dict[str, str]:
        """The pool's models: the full name by every name that means one (role, full name, unambiguous short name).

        `model` takes other roles too, and gives them the model of the role `default`; an agent that is handed a name
        by its caller looks here first.
        """
        pool = self._call.scope.pool
        short = [spec.short_name for spec in pool.models]
        known = {spec.short_name: spec.name for spec in pool.models if short.count(spec.short_name) == 1}
        return {**known, **{spec.name: spec.name for spec in pool.models}, **pool.roles}

    def offered(self, *patterns: str, without: str = "") -> list[dict[str, Any]]:
        """The pool's tools and agents as OpenAI-style function objects, for an agent that lets a model choose.

        Args:
            patterns: names or patterns of members; all by default.
            without: the full or short name of one that is left out.
        """
        from .plugins._patterns import matches

        pool = self._call.scope.pool
        chosen = {
            visible
            for visible, spec in pool.actions
            if without not in (spec.name, spec.short_name) and (not patterns or any(matches(spec, p) for p in patterns))
        }
        return [tool for tool in pool.to_openai() if tool["function"]["name"] in chosen]

    @property
    def toolbox(self) -> list[dict[str, Any]]:
        """The agent's own tools as OpenAI-style function objects."""
        tools = getattr(self._call.bound.spec, "own_tools", {})
        return [function_object(name, spec.description, spec.input_schema) for name, spec in tools.items()]

    # -- doing -----------------------------------------------------------------------------------------------------

    def model(self, role_or_name: str = "default") -> BoundModel:
        """The model bound to a role, or of a name.

        Raises:
            PoolError: no such role or model.
        """
        self._only_agents("ctx.model")
        return BoundModel(self, self._call.scope.pool.model(role_or_name).name)

    async def call(self, name: str, arguments: Mapping[str, Any] | str = "{}") -> Observation:
        """Call a tool or agent of the pool. Never raises for what the call does: look at the status."""
        return (await self.run([Call(name, arguments)]))[0]

    async def run(self, plan: Plan | Iterable[Call]) -> list[Observation]:
        """Run a plan of calls; observations in the order of the calls."""
        self._only_agents("ctx.run")
        plan = plan if isinstance(plan, Plan) else Plan(plan)
        memory = self._call.scope.memory
        known = memory.claim_plan(self._call.call_id, plan.to_json()) if memory is not None else 0
        prefix = f"{self._call.call_id}/{known or self._next_number()}."
        observations: list[Observation] = await self._at_home(
            lambda: self._call.executor.run_plan(plan, self._call.scope, prefix=prefix, parent=self._call)
        )
        return observations

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Say how far this call is, to whoever watches the run: a `Progressed` event, at most ten a second.

        Args:
            done: how much is done, in units of your own.
            total: how much there is to do, if that is known.
            message: what is being done.
        """
        now = self._home.time()
        complete = done == total
        if now - self._told < _TELLING and (self._complete or not complete):
            return
        self._told, self._complete = now, complete
        call = self._call
        event = Progressed(call.call_id, call.bound.name, done, total, message, call.scope.now())
        if asyncio._get_running_loop() is self._home:
            call.scope.tell(event)
        else:
            self._home.call_soon_threadsafe(call.scope.tell, event)

    def _next_number(self) -> int:
        """A number that no plan or request of this call has had, in an earlier process neither."""
        memory = self._call.scope.memory
        if memory is not None:
            self._call.nested = max(self._call.nested, memory.highest_number(self._call.call_id))
        self._call.nested += 1
        return self._call.nested

    async def gather(self, *work: Awaitable[T] | Iterable[Awaitable[T]]) -> list[T]:
        """Await several things at once; results in order. If one raises, the others are cancelled and it is raised."""
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
            await asyncio.wait(tasks, timeout=self._call.executor.limits.grace)
            raise

    def wait(self, awaitable: Awaitable[T]) -> T:
        """For a synchronous agent in its own thread: `ctx.wait(ctx.call(...))`."""

        async def work() -> T:
            return await awaitable

        if asyncio._get_running_loop() is self._home:
            name = self._call.bound.name
            raise SpecError(f"{name!r} is async: write `await ...`; ctx.wait would block the event loop")
        return asyncio.run_coroutine_threadsafe(work(), self._home).result()

    async def _ask(self, model: str, request: ChatRequest) -> Reply:
        from .executor._asking import ask

        memory = self._call.scope.memory
        messages = [message.to_json() for message in request.messages] if memory is not None else []
        known = memory.claim_request(self._call.call_id, messages) if memory is not None else 0
        call_id = f"{self._call.call_id}/{known or self._next_number()}"
        answered: tuple[Reply, Observation] = await self._at_home(
            lambda: ask(self._call.executor, self._call.scope, model, request, call_id, parent=self._call)
        )
        return answered[0]

    async def _at_home(self, start: Any) -> Any:
        """Run on the executor's loop, wherever the agent itself runs."""
        if asyncio.get_running_loop() is self._home:
            return await start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(start(), self._home))

    def _only_agents(self, what: str) -> None:
        if self._call.kind != "agent":
            raise SpecError(f"{self._call.bound.name!r} is a tool; {what} is for agents: declare it with @agent")
