"""A member as a plain async function."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Coroutine
from typing import Any

from concertino.core.approval import Approver
from concertino.core.attachment import give_attachments
from concertino.core.budget import Budget
from concertino.core.events import Event
from concertino.core.observation import CallFailed
from concertino.executor.executor import Executor
from concertino.members.parameters import read_parameters
from concertino.pool.live import LivePool
from concertino.pool.pool import Pool

from .outlet import Outlet, need_handler


def as_function(
    pool: Pool | LivePool,
    name: str,
    *,
    budget: Budget | None = None,
    deps: Any = None,
    approve: Approver | None = None,
    executor: Executor | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """A tool or agent of a pool as a plain async function, with a name, a docstring and a signature made of its schema.

    It returns the result: plain JSON data in full length, or the attachment that the member returned.

    Args:
        pool: of a `LivePool`, the current pool of each call.
        name: full, visible or unambiguous short name of the member.
        budget: of each call, with everything that an agent spends in it.
        deps: what `ctx.deps` gives.
        approve: decides about calls that need approval, as for an `Orchestrator`.
        executor: shared by several calls, so that models and workers stay open; without one, each call has its own.
        on_event: called with every event of a call.

    Raises:
        PoolError: the pool has no such member.
        UsageError: it is a model, or needs approval and nobody can be asked.
        CallFailed: of the function, if the call does not succeed; `observation` says why.
    """
    options = {"budget": budget, "deps": deps, "approve": approve, "executor": executor, "on_event": on_event}
    outlet, spec, visible = Outlet.of(pool, name, options)
    need_handler(spec, approve)
    parameters = read_parameters(spec.input_schema, spec.output_schema)

    async def function(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments = parameters.arguments(args, kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None
        seen, content, known = await outlet.call(arguments)
        if not seen.ok:
            raise CallFailed(seen)
        return give_attachments(content, known)

    function.__name__ = function.__qualname__ = _identifier(visible)
    function.__doc__ = "\n\n".join(filter(None, [outlet.current.card(spec), parameters.documented]))
    function.__annotations__ = {each.name: each.annotation for each in parameters.signature.parameters.values()}
    function.__annotations__["return"] = parameters.signature.return_annotation
    vars(function)["__signature__"] = parameters.signature
    return function


def _identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name)
    return f"_{name}" if not name.isidentifier() or keyword.iskeyword(name) else name
