"""Guards at work: each check is an execution of its own, with a deadline, a status and a place in the trace.

    question -> (guards) -> run ... call -> (guards) -> approval -> made -> result -> (guards) -> seen, recorded

Guards of one stage are asked in their order; each sees what the one before it left. The first `Deny` or `EndRun` ends
the checking.

Invariants: a resumed run reads recorded verdicts and asks no guard again; what a guard looked at is not recorded with
its check, so what it replaced or denied never reaches the trace through it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from concertino.core.approval import Deny
from concertino.core.budget import Amount
from concertino.core.events import CallStarted, Event
from concertino.core.late import present
from concertino.core.observation import ErrorInfo, Observation, Status
from concertino.core.usage import Usage
from concertino.members.guards import EndRun, Guard, Replace, Stage, Verdict, verdict_from

from . import error_messages
from .call import MemberCall
from .execution import CallOwner, Execution, Host, stop_all
from .scope import Scope

if TYPE_CHECKING:
    from concertino.members.specs import ToolSpec


@dataclass(frozen=True, slots=True)
class Check:
    """What is checked.

    Attributes:
        stage: at which guards look.
        about: id of the call, or which text; unique in the run for this stage.
        parent: the agent's call inside which it happens.
    """

    stage: Stage
    about: str
    parent: Execution | None = None


class _Asked(CallOwner):
    """Who waits for one check."""

    __slots__ = ("full", "future", "observation")

    def __init__(self, host: Host, scope: Scope, parent: Execution | None) -> None:
        super().__init__(host, scope, parent)
        self.future: asyncio.Future[None] = scope.loop.create_future()
        self.observation: Observation | None = None
        self.full: Any = None

    def observed(self, index: int, observation: Observation, full: Any) -> None:
        self.observation, self.full = observation, full

    def delivered(self, index: int) -> None:
        if not self.future.done():
            self.future.set_result(None)


class GuardCall(MemberCall):
    """One check by one guard. It is no call of the budget; what it asks of models is paid like all requests."""

    __slots__ = ("check",)

    has_hooks = False
    check: Check

    def amount(self) -> Amount:
        return self.bound.amount._replace(calls=0.0)

    def usage(self, ended: float) -> Usage:
        return super().usage(ended)._replace(calls=0)

    def recorded_arguments(self) -> Any:
        return {"stage": self.check.stage, "about": self.check.about}

    def started_event(self) -> Event:
        return CallStarted(
            self.scope.run_id,
            self.call_id,
            self.owner.parent_id,
            self.bound.name,
            self.bound.spec.kind,
            self.recorded_arguments(),
            self.started,
        )


class Guarding:
    """The guards of one run, by what they look at."""

    __slots__ = ("_numbered",)

    def __init__(self, guards: Sequence[Guard]) -> None:
        self._numbered = list(enumerate(guards, 1))

    def of(self, stage: Stage, member: ToolSpec | None = None, *, beside: bool = False) -> list[tuple[int, Guard]]:
        """The guards of a stage, of calls to a member, with their places in the run's list."""
        return [
            (number, guard)
            for number, guard in self._numbered
            if guard.stage == stage and guard.beside == beside and (member is None or guard.looks_at(member))
        ]

    async def judge(
        self,
        guards: Sequence[tuple[int, Guard]],
        host: Host,
        scope: Scope,
        check: Check,
        value: Any,
        subject: Callable[[Any], Mapping[str, Any]],
    ) -> tuple[Any, Deny | EndRun | None]:
        """Ask guards one after another.

        Args:
            value: what they may replace.
            subject: from the value to what a guard's function gets.

        Returns:
            The value that is left, and why it must not be used, None if it may.
        """
        for number, guard in guards:
            verdict = await _ask(host, scope, guard, number, check, dict(subject(value)))
            if isinstance(verdict, Replace):
                if guard.beside:
                    return value, Deny(f"guard {guard.name!r} runs beside the model and cannot replace the question")
                value = verdict.value
            elif verdict is not None:
                return value, verdict
        return value, None

    async def judge_call(
        self, owner: CallOwner, spec: ToolSpec, call_id: str, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], ErrorInfo | None]:
        """The arguments with which a call may be made, and why it must not be made, None if it may."""

        def subject(value: Any) -> Mapping[str, Any]:
            return {"call_id": call_id, "name": spec.name, "arguments": value, "description": spec.description}

        check = Check("call", call_id, owner.parent)
        value, refused = await self.judge(self.of("call", spec), owner.host, owner.scope, check, arguments, subject)
        return value, None if refused is None else self._denied(owner.scope, refused)

    async def judge_result(self, call: MemberCall, observation: Observation) -> Observation:
        """What is left of a call's observation."""
        scope, spec = call.scope, call.bound.spec
        guards = self.of("result", spec)
        if not guards:
            return observation
        failed = observation.error is not None and observation.content is None
        message = observation.error.message if observation.error is not None else ""
        given = message if failed else call.full if call.full is not None else observation.content

        def subject(value: Any) -> Mapping[str, Any]:
            return {
                "call_id": call.call_id,
                "name": spec.name,
                "arguments": call.arguments,
                "status": observation.status.value,
                "content": value,
            }

        check = Check("result", call.call_id, call.owner.parent)
        # The call has done its work: the time of its guards is not its own.
        scope.clocks.hold(call, scope.loop.time())
        try:
            value, refused = await self.judge(guards, call.owner.host, scope, check, given, subject)
        finally:
            scope.clocks.go_on(call, scope.loop.time())
        if refused is not None:
            call.full = None
            error = self._denied(scope, refused)
            return replace(observation, status=Status.EXEC_ERR, content=None, error=error, truncated=0, note="")
        if value is given:
            return observation
        if failed:
            assert observation.error is not None
            said = replace(observation.error, message=error_messages.shorten(str(value)))
            return replace(observation, error=said, note="")
        return call.showing(observation, value)

    @staticmethod
    def _denied(scope: Scope, refused: Deny | EndRun) -> ErrorInfo:
        if isinstance(refused, EndRun):
            scope.end_run(refused.reason)
        return error_messages.denied(refused.reason)


async def _ask(host: Host, scope: Scope, guard: Guard, number: int, check: Check, subject: dict[str, Any]) -> Verdict:
    """The verdict of one guard; `Deny` where it has none."""
    owner = _Asked(host, scope, check.parent)
    bound = host.bindings.tool(guard)
    call = GuardCall(
        owner, bound, f"guard{number}.{check.stage}.{check.about}", subject, host.bindings.guard_gates(bound)
    )
    call.check = check
    call.submit()
    try:
        await owner.future
    except asyncio.CancelledError:
        await stop_all([call] if not call.over else [], host.runtime)
        raise
    seen = owner.observation
    assert seen is not None
    if seen.error is not None:
        return Deny(f"guard {guard.name!r} failed: {seen.error.message}")
    return verdict_from(present(owner.full) if owner.full is not None else seen.content)
