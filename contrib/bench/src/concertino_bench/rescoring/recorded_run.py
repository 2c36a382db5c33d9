"""A finished run, read back from its trace.

The invariant: a run that is read back and the run that wrote the trace give equal numbers, once `as_recorded` has cut
the times of the latter to the microseconds that a trace keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from concertino import Call, Observation, Plan, Reply, Run, Trace, TraceError, Usage
from concertino.core.events import Asked, CallEnded, CallStarted, Event, Planned, Replied, RunEnded, RunStarted
from concertino.core.format_issue import FormatIssue
from concertino.core.model import Message
from concertino.runs.run import collect_rounds

_DIGITS = 6
"""Digits behind the point of a time in a trace."""


def run_of(trace: Trace) -> Run:
    """The run that a trace is the record of. Nobody is asked.

    Raises:
        TraceError: the run has no end, or a record is not what a trace holds.
    """
    where = trace.path or trace.run_id
    if trace.damage and not trace.finished:
        raise TraceError(f"{where} is damaged before its end: {trace.damage}")
    end = trace.end
    if end is None:
        raise TraceError(f"{where}: the run has no end yet; resume it first")
    try:
        events = _events(trace)
        run = Run(
            id=trace.run_id,
            question=trace.question,
            answer=end["answer"],
            stop=str(end["stop"]),
            detail=str(end["detail"]),
            rounds=collect_rounds(events),
            usage=Usage.from_json(end["usage"]),
            seconds=float(end["at"]),
            pool_id=str(trace.setup.get("pool", "")),
            events=events,
            path=trace.path,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TraceError(f"{where}: a record is not what a trace holds: {type(error).__name__}: {error}") from error
    # The record is here already; made again from the events, it would lack what they do not hold.
    run.__dict__["trace"] = trace
    return run


def as_recorded(run: Run) -> Run:
    """A run of this process as its trace keeps it: times in whole microseconds."""
    events = [_rounded(event) for event in run.events]
    kept = replace(run, events=events, rounds=collect_rounds(events), seconds=round(run.seconds, _DIGITS))
    if "trace" in run.__dict__:
        kept.__dict__["trace"] = run.trace
    return kept


def _rounded(event: Event) -> Event:
    if isinstance(event, CallEnded | Replied):
        seen = event.observation
        return replace(
            event,
            observation=replace(seen, started=round(seen.started, _DIGITS), ended=round(seen.ended, _DIGITS)),
        )
    return event


def _events(trace: Trace) -> list[Event]:
    """The events that a run is read from; a call that was stopped and made again counts as it ended last."""
    records = [record for record in trace.records if record["t"] in _READERS]
    last = {(record["t"], record["id"]): place for place, record in enumerate(records) if record["t"] in _ONCE}
    return [
        _READERS[record["t"]](record, trace)
        for place, record in enumerate(records)
        if record["t"] not in _ONCE or last[record["t"], record["id"]] == place
    ]


def _begun(record: Mapping[str, Any], trace: Trace) -> Event:
    return RunStarted(record["run"], record["question"], record.get("setup", {}), record["at"])


def _asked(record: Mapping[str, Any], trace: Trace) -> Event:
    messages = [Message.from_json(each) for each in record["messages"]]
    return Asked(record["id"], record["role"], record["model"], messages, record["at"])


def _replied(record: Mapping[str, Any], trace: Trace) -> Event:
    seen = Observation.from_json(record["observation"])
    return Replied(record["id"], record["role"], Reply.from_json(record["reply"]), seen)


def _planned(record: Mapping[str, Any], trace: Trace) -> Event:
    issues = tuple(FormatIssue.from_json(each) for each in record.get("issues", ()))
    plan = Plan.parse([Call.from_json(each) for each in record["calls"]])
    return Planned(record["round"], plan, record["at"], issues)


def _started(record: Mapping[str, Any], trace: Trace) -> Event:
    return CallStarted(
        trace.run_id,
        record["id"],
        record.get("parent", ""),
        record["name"],
        record["kind"],
        record["arguments"],
        record["at"],
    )


def _ended(record: Mapping[str, Any], trace: Trace) -> Event:
    return CallEnded(Observation.from_json(dict(record)), record.get("parent", ""), record.get("full"))


def _over(record: Mapping[str, Any], trace: Trace) -> Event:
    return RunEnded(record["answer"], record["stop"], record["detail"], record["usage"], record["at"])


_READERS: Mapping[str, Callable[[Mapping[str, Any], Trace], Event]] = {
    "run": _begun,
    "ask": _asked,
    "reply": _replied,
    "plan": _planned,
    "intent": _started,
    "result": _ended,
    "end": _over,
}
"""Of each kind of record that a run is read from, what makes the event."""
_ONCE = frozenset({"result", "intent"})
"""Kinds that a resumed run may have written twice for one call."""
