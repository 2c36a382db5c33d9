"""A run as lines of a log: one listener over its events, which writes to the loggers of `concertino.core.logs`.

At INFO a run is told in a few lines: it begins, each round, what a person decides, its end. At DEBUG every call and
every request to a model is told, and each attempt that is repeated. Every record has its fields in `record.concertino`.

Invariants: nothing listens unless one of the loggers is enabled when the run begins; whatever came from a model, a tool
or a person is shortened, on one line, and without secrets (`concertino.core.redaction`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from concertino.core.display_text import counted, one_line, show_arguments, show_cost, show_money
from concertino.core.events import (
    ApprovalAsked,
    Asked,
    Attached,
    CallEnded,
    CallStarted,
    Decided,
    Event,
    Planned,
    Replied,
    Retried,
    RunEnded,
    RunStarted,
)
from concertino.core.logs import any_listens, call_logger, model_logger, run_logger, write
from concertino.core.observation import Observation, Status
from concertino.core.plan import unparse
from concertino.traces import JournalSink

if TYPE_CHECKING:
    from concertino.core.redaction import Redactor

Listener = Callable[[Event], None]
How = Literal["started", "resumed", "recalled", "forked"]
"""How a run begins: anew, from its trace, from its trace alone (nothing runs again), or from another run."""

_TEXT, _VALUE = 200, 80
"""Characters of a question, an answer or a message, and of one argument."""
_NAMES = 8
"""Calls of a round that are named."""


def listeners_of(
    on_event: Listener | None, begun: RunStarted, sink: JournalSink | None, *, remembers: bool, forked: bool
) -> list[Listener]:
    """Who listens to a run: the caller's function, and a log if any logger is enabled.

    Args:
        remembers: the run begins with what its trace knows.
        forked: it continues another run.
    """
    listeners = [on_event] if on_event is not None else []
    if any_listens():
        how: How = "started"
        if remembers:
            how = "resumed" if sink is not None else "recalled"
        elif forked:
            how = "forked"
        listeners.append(RunLog(begun, how, str(sink.path) if sink is not None else None))
    return listeners


class RunLog:
    """Tells the loggers of one run. Call it with every event.

    Args:
        begun: how the run begins.
        trace: its trace file, if it has one.
    """

    def __init__(self, begun: RunStarted, how: How, trace: str | None) -> None:
        self.run_id = one_line(begun.run_id, _VALUE)
        self._how: How = how
        self._trace = trace
        # Imported here, so that a run that nobody logs does not pay for it.
        from concertino.core.redaction import Redactor

        self._redactor: Redactor = Redactor()
        self._statuses: Counter[Status] = Counter()
        self._requests = 0
        # Ids of requests to models and of checks by guards: the events of their ends are those of calls.
        self._models: set[str] = set()
        self._checks: set[str] = set()
        self._names: dict[str, str] = {}
        # By type, so that an event that nobody is told of costs one look-up: text comes in thousands of pieces.
        self._tell: dict[type, Callable[[Any], None]] = {
            RunStarted: self._started,
            Planned: self._planned,
            ApprovalAsked: self._approval_asked,
            Decided: self._decided,
            RunEnded: self._ended,
            Asked: self._asked,
            Replied: self._replied,
            CallStarted: self._call_started,
            CallEnded: self._call_ended,
            Retried: self._retried,
            Attached: self._attached,
        }
        if how == "forked":
            self._started(begun)  # a fork has no event of its own for its begin

    def __call__(self, event: Event) -> None:
        tell = self._tell.get(type(event))
        if tell is not None:
            tell(event)

    # -- the run, at INFO ------------------------------------------------------------------------------------------

    def _started(self, event: RunStarted) -> None:
        setup = event.setup
        question, budget = self._short(event.question), setup.get("budget", {})
        strategy = setup.get("strategy", {}).get("name")
        leader = self._name(setup.get("roles", {}).get("orchestrator", ""))
        members = len(setup.get("members", ()))
        limits = ", ".join(f"{name}={value:g}" for name, value in budget.items()) or "none"
        text = f'"{question}"; {strategy} led by {leader}, {counted(members, "member")}, budget: {limits}'
        self._run(
            f"run.{self._how}",
            f"{self._how}: {text}",
            question=question,
            strategy=strategy,
            leader=leader,
            members=members,
            budget=budget,
            session=setup.get("session"),
            trace=self._trace,
        )

    def _planned(self, event: Planned) -> None:
        calls = event.plan.calls
        # Whoever decides about a call, maybe in a later process, is told its id alone.
        self._names = {f"{event.round}.{call.id}": call.name for call in calls}
        names = [self._name(call.name) for call in calls[:_NAMES]]
        listed = ", ".join(names) + (f" and {len(calls) - _NAMES} more" if len(calls) > _NAMES else "")
        issues = f"; {counted(len(event.issues), 'format issue')}" if event.issues else ""
        self._run(
            "round.planned",
            f"round {event.round}: {counted(len(calls), 'call')}: {listed}{issues}",
            round=event.round,
            calls=len(calls),
            names=names,
            issues=len(event.issues),
        )

    def _approval_asked(self, event: ApprovalAsked) -> None:
        call_id, name = event.request.call_id, self._name(event.request.name)
        self._names[call_id] = name
        self._run("approval.asked", f"{call_id} {name} waits for approval", call_id=call_id, member=name)

    def _decided(self, event: Decided) -> None:
        name = self._name(self._names.get(event.call_id, "")) or None
        edited = event.arguments is not None
        what = ("approved with other arguments" if edited else "approved") if event.approved else "denied"
        reason = self._short(event.reason) if event.reason else None
        told = [event.call_id, *([name] if name else []), what]
        told += [f"after {event.waited:.1f} s"] if event.waited else []
        self._run(
            "approval.decided",
            f"{' '.join(told)}{f': {reason}' if reason else ''}",
            call_id=event.call_id,
            member=name,
            approved=event.approved,
            edited=edited,
            reason=reason,
            waited=round(event.waited, 3),
        )

    def _ended(self, event: RunEnded) -> None:
        usage, counts = event.usage, {str(each): self._statuses[each] for each in Status if each in self._statuses}
        calls = ", ".join(f"{count} {status}" for status, count in counts.items()) or "none"
        tokens = f"{usage.get('input_tokens', 0):,} + {usage.get('output_tokens', 0):,} tokens"
        cost = f"{show_money(usage.get('usd', 0.0))}, {usage.get('units', 0):g} u, {tokens}"
        if usage.get("unpriced"):
            cost += f"; {counted(usage['unpriced'], 'request')} of unknown price"
        detail = self._short(event.detail) if event.detail else None
        why = f" ({detail})" if detail else ""
        head = "suspended" if event.stop == "suspended" else f"ended: {event.stop}"
        self._run(
            "run.suspended" if event.stop == "suspended" else "run.ended",
            f"{head}{why} after {event.at:.2f} s; calls: {calls}; {counted(self._requests, 'request')}; {cost}",
            stop=event.stop,
            detail=detail,
            answer=None if event.answer is None else self._short(event.answer),
            seconds=round(event.at, 3),
            calls=sum(counts.values()),
            statuses=counts,
            requests=self._requests,
            **_amounts(usage),
        )

    # -- calls and requests, at DEBUG ------------------------------------------------------------------------------

    def _call_started(self, event: CallStarted) -> None:
        is_model = event.kind == "model"
        if is_model:
            self._models.add(event.call_id)
        elif event.kind == "guard":
            self._checks.add(event.call_id)
        logger = model_logger if is_model else call_logger
        if not logger.isEnabledFor(logging.DEBUG):
            return
        name = self._name(event.name)
        shown = show_arguments(self._redactor.data(unparse(event.arguments), _VALUE), _TEXT)
        self._debug(
            logger,
            "model.asked" if is_model else "call.started",
            f"{event.call_id} {name} {'asked' if is_model else 'started'}: {shown}",
            call_id=event.call_id,
            parent=event.parent or None,
            **{"model": name} if is_model else {"member": name, "kind": event.kind, "arguments": shown},
        )

    def _call_ended(self, event: CallEnded) -> None:
        seen, is_model = event.observation, event.observation.call_id in self._models
        if is_model:
            self._requests += 1
        elif not event.parent and seen.call_id not in self._checks:
            self._statuses[seen.status] += 1
        self._told(model_logger if is_model else call_logger, seen, is_model, event.parent or None)

    def _asked(self, event: Asked) -> None:
        self._models.add(event.call_id)
        if not model_logger.isEnabledFor(logging.DEBUG):
            return
        model, role = self._name(event.model), self._name(event.role)
        self._debug(
            model_logger,
            "model.asked",
            f"{event.call_id} {model} asked as {role}: {counted(len(event.messages), 'new message')}",
            call_id=event.call_id,
            model=model,
            role=role,
            messages=len(event.messages),
        )

    def _replied(self, event: Replied) -> None:
        self._requests += 1
        self._told(model_logger, event.observation, True, None, role=event.role)

    def _told(
        self, logger: logging.Logger, seen: Observation, is_model: bool, parent: str | None, role: str | None = None
    ) -> None:
        """The end of a call or a request."""
        if not logger.isEnabledFor(logging.DEBUG):
            return
        usage, name = seen.usage.to_json(), self._name(seen.name)
        tokens = f", {seen.usage.input_tokens:,} + {seen.usage.output_tokens:,} tokens" if seen.usage.tokens else ""
        # A plugin may have codes of its own.
        code = self._name(seen.error.code) if seen.error is not None else None
        message = self._short(seen.error.message) if seen.error is not None else None
        known = ", recorded" if seen.replayed else ""
        attempts = f", {seen.attempts} attempts" if seen.attempts > 1 else ""
        cost = show_cost(usage)
        text = f"{seen.call_id} {name} {seen.status.value} in {seen.ended - seen.started:.3f} s"
        text += f"{tokens}{'' if cost == '-' else f', {cost}'}{attempts}{known}"
        self._debug(
            logger,
            "model.replied" if is_model else "call.ended",
            f"{text}; {code}: {message}" if code else text,
            call_id=seen.call_id,
            parent=parent,
            role=role,
            **{"model" if is_model else "member": name},
            status=seen.status.value,
            code=code,
            message=message,
            seconds=round(seen.ended - seen.started, 6),
            attempts=seen.attempts,
            recorded=seen.replayed,
            **_amounts(usage),
        )

    def _retried(self, event: Retried) -> None:
        is_model = event.call_id in self._models
        logger = model_logger if is_model else call_logger
        if not logger.isEnabledFor(logging.DEBUG):
            return
        message, name = self._short(event.message), self._name(event.name)
        self._debug(
            logger,
            "model.retried" if is_model else "call.retried",
            f"{event.call_id} {name} again in {event.delay:.2f} s after attempt {event.attempt} "
            f"({event.failure}): {message}",
            call_id=event.call_id,
            **{"model" if is_model else "member": name},
            attempt=event.attempt,
            failure=event.failure,
            message=message,
            delay=round(event.delay, 3),
        )

    def _attached(self, event: Attached) -> None:
        if not run_logger.isEnabledFor(logging.DEBUG):
            return
        kinds = [each.kind for each in event.attachments]
        where = f"the result of {event.call_id}" if event.call_id else "the question"
        self._debug(
            run_logger,
            "files.attached",
            f"{counted(len(kinds), 'file')} came with {where}: {', '.join(kinds)}",
            call_id=event.call_id or None,
            kinds=kinds,
        )

    # -- writing ---------------------------------------------------------------------------------------------------

    def _short(self, text: object, width: int = _TEXT) -> str:
        return one_line(self._redactor.short(text, width), width)

    def _name(self, name: object) -> str:
        """The name of a member, which a model may have made up."""
        return self._short(name, _VALUE)

    def _run(self, event: str, text: str, **fields: Any) -> None:
        write(run_logger, logging.INFO, f"{self.run_id} {text}", event=event, run_id=self.run_id, **fields)

    def _debug(self, logger: logging.Logger, event: str, text: str, **fields: Any) -> None:
        write(logger, logging.DEBUG, f"{self.run_id} {text}", event=event, run_id=self.run_id, **fields)


def _amounts(usage: Mapping[str, Any]) -> dict[str, Any]:
    """What was used, under the names that `Usage` has; what is zero is left out."""
    names = ("usd", "units", "input_tokens", "output_tokens", "cached_tokens", "unpriced")
    return {name: usage[name] for name in names if usage.get(name)}
