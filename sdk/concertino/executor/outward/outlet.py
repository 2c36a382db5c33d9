"""One member of a pool, called from outside: with an executor of its own or a shared one, and one observation per call.

Invariant: a member that needs approval runs only after somebody has been asked: a handler, or the framework's own way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple
from uuid import uuid4

from concertino.core.approval import ApprovalRequest, Approve, Approver, Decision, Deny
from concertino.core.attachment import Attachment
from concertino.core.budget import Budget
from concertino.core.errors import UsageError
from concertino.core.events import CallEnded, Event
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan
from concertino.executor.executor import Executor
from concertino.members.specs import ToolSpec
from concertino.pool.live import LivePool
from concertino.pool.pool import Pool

_CALL = "1"
"""The id of the one call of each plan."""
_NOBODY = "nobody can be asked here: give approve=..., a function of the request that decides"


class Outcome(NamedTuple):
    """What came of a call.

    Attributes:
        observation: as an orchestrator would see it.
        content: the result in full, where the observation's is cut for a model.
        known: attachments by the mark in the content.
    """

    observation: Observation
    content: Any
    known: Mapping[str, Attachment]


@dataclass(frozen=True)
class Outlet:
    """A member that is called from outside.

    Attributes:
        pool: where it is; of a `LivePool`, what is current at each call.
        name: its full name.
        approve: decides about it, and about members that it calls.
    """

    pool: Pool | LivePool
    name: str
    budget: Budget | None
    deps: Any
    approve: Approver | None
    executor: Executor | None
    on_event: Callable[[Event], None] | None

    @classmethod
    def of(cls, pool: Pool | LivePool, name: str, options: Mapping[str, Any]) -> tuple[Outlet, ToolSpec, str]:
        """The outlet of a member, with its spec and its visible name.

        Raises:
            PoolError: the pool has no such member.
            UsageError: it is a model, or the pool is none.
        """
        now = pool.current if isinstance(pool, LivePool) else pool
        if not isinstance(now, Pool):
            raise UsageError(f"pool={pool!r}: expected a Pool: Pool.of(tool, ...) makes one")
        spec = now[name]
        if not isinstance(spec, ToolSpec):
            raise UsageError(f"{name!r} is a {spec.kind}; offer it as an agent with pool.offering({spec.name!r})")
        return cls(pool, spec.name, **options), spec, now.visible_names[spec.name]

    @property
    def current(self) -> Pool:
        """The pool that the next call takes."""
        return self.pool.current if isinstance(self.pool, LivePool) else self.pool

    async def call(self, arguments: Mapping[str, Any] | str, deps: Any = None) -> Outcome:
        """Make one call. Never raises for what the call does."""
        if self.executor is not None:
            return await self._call(self.executor, arguments, deps)
        async with Executor() as executor:
            return await self._call(executor, arguments, deps)

    async def _call(self, executor: Executor, arguments: Mapping[str, Any] | str, deps: Any) -> Outcome:
        full: list[Any] = []

        def listen(event: Event) -> None:
            if isinstance(event, CallEnded) and event.observation.call_id == _CALL:
                full.append(event.full)
            if self.on_event is not None:
                self.on_event(event)

        scope = executor.open(
            self.current,
            run_id=f"outside-{uuid4().hex[:12]}",  # idempotency keys are made of it
            budget=self.budget,
            listeners=[listen],
            deps=self.deps if deps is None else deps,
            approver=self.approve or _refuse,
        )
        try:
            (seen,) = await executor.run_plan(Plan([Call(self.name, arguments, _CALL)]), scope)
        finally:
            await executor.release(scope)
        content = full[0] if full and full[0] is not None and seen.ok else seen.content
        return Outcome(seen, content, {each.mark: each for each in scope.attachments.values()})

    def approved_elsewhere(self) -> Outlet:
        """The same, where somebody has decided about the call itself before it is made."""

        def decide(request: ApprovalRequest) -> Decision:
            return Approve() if request.call_id == _CALL else _refuse(request)

        return replace(self, approve=decide)


def _refuse(request: ApprovalRequest) -> Decision:
    return Deny(_NOBODY)


def need_handler(spec: ToolSpec, approve: Approver | None) -> None:
    """Refuse a member that needs approval where nobody can be asked.

    Raises:
        UsageError: says what to give.
    """
    if spec.approval and approve is None:
        raise UsageError(f"{spec.kind} {spec.name!r} needs approval, and {_NOBODY}")


def failure_text(seen: Observation) -> str:
    """What a model reads about a call that did not succeed: status, code, message, and what there is of a result."""
    error = seen.error
    text = f"{seen.status} {error.code}: {error.message}" if error is not None else str(seen.status)
    return text if seen.content is None else f"{text}\n{content_text(seen.content)}"


def content_text(content: Any) -> str:
    """Content as text: itself, or as JSON."""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def imported(module: str, package: str) -> Any:
    """A module of a framework.

    Raises:
        UsageError: its package is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(f"{package} is not installed ({error}); pip install {package}") from error
