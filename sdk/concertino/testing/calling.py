"""Calling: one member run by the real executor, with nothing around it that a test did not ask for.

`run_call` gives the observation that an orchestrator would have seen: validated arguments, deadline, budget, cost and
all. `make_context` gives the `Context` of a running agent's call, to test a function that takes one. Each has an
executor of its own and closes it, so nothing is shared between two tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from concertino.core.budget import Budget
from concertino.core.model import Model
from concertino.core.observation import Observation
from concertino.core.plan import Call
from concertino.executor import Executor, Limits
from concertino.members.context import Context
from concertino.members.specs import AgentSpec, ModelSpec, Spec, ToolSpec
from concertino.pool.pool import Pool


def make_pool(*members: Spec, **roles: Model) -> Pool:
    """A pool of members, with model objects bound to roles: `make_pool(agent, worker=ScriptedModel("42"))`."""
    # `partial` binds the model now; a lambda would give every role the last one.
    models = [ModelSpec(f"model-{role}", partial(_same, model)) for role, model in roles.items()]
    return Pool.of(*members, *models, **{role: f"model-{role}" for role in roles})


def _same(model: Model) -> Model:
    return model


async def run_call(
    spec: ToolSpec,
    arguments: Mapping[str, Any] | str,
    *,
    pool: Pool | None = None,
    budget: Budget | None = None,
    limits: Limits | None = None,
    **options: Any,
) -> Observation:
    """Run one call.

    Args:
        arguments: data, or raw JSON text as a model would write it.
        pool: what an agent may call and ask; the spec is added where it is missing.
        budget: what the call may use, no limit by default.
        options: of `Executor.open`, such as `before`, `after` and `question`.

    Returns:
        The call's one observation, whatever it did.
    """
    async with Executor(limits) as executor:
        return (await executor.run([Call(spec.name, arguments)], with_member(pool, spec), budget=budget, **options))[0]


def call(spec: ToolSpec, arguments: Mapping[str, Any] | str, **options: Any) -> Observation:
    """`run_call` for a test without an event loop."""
    return asyncio.run(run_call(spec, arguments, **options))


@asynccontextmanager
async def make_context(
    pool: Pool | None = None, *, budget: Budget | None = None, **options: Any
) -> AsyncIterator[Context]:
    """A context as an agent is given it, for as long as the block lasts.

        async with make_context(make_pool(search, worker=ScriptedModel("42"))) as ctx:
            assert await my_helper(ctx) == "42"

    Args:
        pool: what it may call and ask.
        budget: what it may use.
        options: of `Executor.open`, such as `question`.
    """
    begun: asyncio.Future[Context] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()

    async def hold(arguments: dict[str, Any], *, context: Context) -> None:
        begun.set_result(context)
        await leave.wait()

    holder = AgentSpec.from_schema(
        "held-by-a-test", "Holds its context for a test.", {"type": "object"}, hold, context="context", timeout=None
    )
    async with Executor() as executor:
        work = executor.run([Call(holder.name, {})], with_member(pool, holder), budget=budget, **options)
        running = asyncio.ensure_future(work)
        try:
            waiting: set[asyncio.Future[Any]] = {begun, running}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            # The call ended before it began: only the budget can refuse a call without arguments.
            if not begun.done():
                raise AssertionError(f"the budget {budget} does not let a single call begin")
            yield begun.result()
        finally:
            leave.set()
            await running


def with_models(pool: Pool, roles: Sequence[str], factory: Callable[[], Model]) -> Pool:
    """The pool with each of its models, and each role that it binds to none, answered by models of `factory`."""
    members = [member.with_(factory=factory) if isinstance(member, ModelSpec) else member for member in pool.members]
    unbound = [role for role in roles if role not in pool.roles]
    if unbound:
        members.append(ModelSpec("a-model-of-this-check", factory))
    bound = dict.fromkeys(unbound, "a-model-of-this-check")
    return Pool(members, roles={**pool.roles, **bound}, aliases=pool.aliases)


def with_member(pool: Pool | None, spec: ToolSpec) -> Pool:
    """The pool with the spec in it; a member of the same name is replaced."""
    if pool is None:
        return Pool.of(spec)
    if spec.name in pool:
        return pool.replace(spec.name, spec)
    return pool.adding(spec)
