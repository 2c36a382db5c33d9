"""Calls that wait for a person's decision.

A call whose member needs approval is held back before it passes any gate: it has no deadline, holds no place and
reserves no budget while it waits. With a handler it waits here; its time is given back to the run and to the agents
above it. Without one it is *pending*: it gets an observation that is never recorded, so that a resumed run makes the
call again, and an agent that waits for it is left in the same way.

Invariant: a decision is recorded before its call begins, so it is asked for once.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from concertino.core.approval import ApprovalRequest, Approve, Decision, Deny, as_decision
from concertino.core.events import ApprovalAsked, Decided
from concertino.core.observation import ErrorInfo, Observation

from . import error_messages

if TYPE_CHECKING:
    from .bound import BoundTool
    from .execution import CallOwner
    from .scope import Scope

PENDING = "approval_pending"
"""The code of a call that waits for a decision beyond the end of its process."""


class Suspension(BaseException):
    """An agent waits for a call that waits for a person. No `except Exception` of a plugin may take it."""


def needs_approval(bound: BoundTool, arguments: Mapping[str, Any]) -> bool:
    """Whether a person has to decide about a call. A rule that fails counts as yes."""
    rule = bound.spec.approval
    if not callable(rule):
        return rule
    try:
        return bool(rule(dict(arguments)))
    except Exception:
        return True


def is_pending(observation: Observation) -> bool:
    """Whether a call, or what it waits for, has not been decided about."""
    return observation.error is not None and observation.error.code == PENDING


def pending_error(request: ApprovalRequest) -> ErrorInfo:
    """What stands in place of the result of a pending call."""
    return ErrorInfo(PENDING, error_messages.shorten(f"{request.call_id} {request.name} waits for approval"))


def decided_before(scope: Scope, call_id: str) -> Decision | None:
    """What was decided about a call: given with the resumption, or on record."""
    given = scope.decisions.get(call_id)
    if given is not None:
        return given
    known = scope.memory.decision(call_id) if scope.memory is not None else None
    if known is None:
        return None
    return Approve(known.get("arguments")) if known["approved"] else Deny(known.get("reason", ""))


async def decide(owner: CallOwner, request: ApprovalRequest) -> Decision:
    """Ask the run's handler. The time that it takes counts for no deadline and no budget of seconds."""
    scope = owner.scope
    assert scope.approver is not None
    scope.emit(ApprovalAsked(request, scope.now()))
    held = _above(owner)
    for thing in held:
        scope.clocks.hold(thing, scope.loop.time())
    waited = 0.0
    try:
        answer = scope.approver(request)
        answer = await answer if inspect.isawaitable(answer) else answer
        decision = as_decision(answer, f"the decision on {request.name}")
    except Exception as error:
        decision = Deny(f"the approval handler failed: {type(error).__name__}: {error}")
    finally:
        for thing in held:
            given_back = scope.clocks.go_on(thing, scope.loop.time())
            waited = given_back if thing is scope else waited
    record(scope, request.call_id, decision, waited)
    return decision


def record(scope: Scope, call_id: str, decision: Decision, waited: float = 0.0) -> None:
    """Put a decision on record, unless it is there already."""
    if scope.memory is not None and scope.memory.decision(call_id) is not None:
        return
    arguments = decision.arguments if isinstance(decision, Approve) else None
    reason = decision.reason if isinstance(decision, Deny) else ""
    scope.emit(Decided(call_id, isinstance(decision, Approve), arguments, reason, waited, scope.now()))


def _above(owner: CallOwner) -> list[Any]:
    """Everything whose deadline stands still while a call of this owner waits: run, plans, and agents above."""
    found: list[Any] = [owner.scope]
    above: CallOwner | None = owner
    while above is not None:
        found.append(above)
        if above.parent is not None:
            found.append(above.parent)
        above = above.parent.owner if above.parent is not None else None
    return found


def as_pending(scope: Scope, request: ApprovalRequest) -> None:
    """Note a call that waits beyond the end of this process."""
    if request.call_id not in scope.pending:
        asked = scope.memory is not None and scope.memory.approval_asked(request.call_id)
        scope.emit_result(ApprovalAsked(request, scope.now()), recalled=asked)
    scope.pending[request.call_id] = request


def request_of(scope: Scope, call_id: str, bound: BoundTool, arguments: Any) -> ApprovalRequest:
    """What a person is asked about a call."""
    return ApprovalRequest(call_id, bound.name, arguments, bound.spec.description, scope.run_id, scope.question)
