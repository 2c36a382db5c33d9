"""The current span: what makes spans of other libraries (HTTP clients, MCP, databases) children of our calls.

Our spans are made from the trace, after they have ended; but their ids are known before. So a span with the run's id is
the current one of OpenTelemetry in the run, one with the call's id during a call of a tool or agent, and whatever a
library makes meanwhile is below it.

Invariant: where no library has imported OpenTelemetry, nothing happens here, and nothing is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from concertino.core.caller import caller
from concertino.core.errors import TraceError

from .fold import ROOT
from .ids import Caller, read_traceparent, span_id, trace_id, write_traceparent

_MOST = 1024
"""Runs whose trace ids are remembered."""
_trace_ids: dict[str, bytes] = {}
_entered: ContextVar[tuple[str, Any] | None] = ContextVar("concertino_otel_entered", default=None)


def began(run_id: str, trace: Path) -> Mapping[str, Any] | None:
    """What a run notes about the span that it is started in; None if there is none. The run begins in this context."""
    above = _recorded(trace) if trace.exists() else _current()
    while len(_trace_ids) >= _MOST:
        _trace_ids.pop(next(iter(_trace_ids)), None)
    _trace_ids[run_id] = above.trace_id if above else trace_id(run_id)
    if (api := _api()) is not None:
        _make_current(api, run_id, ROOT)
    return {"traceparent": write_traceparent(above)} if above else None


def enter(run_id: str, call_id: str) -> None:
    """A call begins in this context."""
    if (api := _api()) is None or run_id not in _trace_ids:
        return
    from opentelemetry import context

    _entered.set((call_id, context.get_current()))
    _make_current(api, run_id, call_id)


def _make_current(api: Any, run_id: str, key: str) -> None:
    """From here on, what libraries make in this context is below one of our spans."""
    from opentelemetry import context

    said = api.SpanContext(
        trace_id=int.from_bytes(_trace_ids[run_id], "big"),
        span_id=int.from_bytes(span_id(run_id, key), "big"),
        is_remote=False,
        trace_flags=api.TraceFlags(api.TraceFlags.SAMPLED),
    )
    context.attach(api.set_span_in_context(api.NonRecordingSpan(said)))


def leave(call_id: str) -> None:
    """A call has ended in this context; an agent that goes on is in its own span again."""
    entered = _entered.get()
    if entered is None or entered[0] != call_id:
        return
    from opentelemetry import context

    context.attach(entered[1])  # not `detach`, which has to happen in the very context of its `attach`
    _entered.set(None)


def _api() -> Any:
    """OpenTelemetry's module of spans; None where no library has imported it."""
    return sys.modules.get("opentelemetry.trace")


def _current() -> Caller | None:
    """The span in which this code runs: of this process, of the request that it answers, or that it was started in."""
    api = _api()
    said = api.get_current_span().get_span_context() if api is not None else None
    if said is not None and said.is_valid:
        return Caller(said.trace_id.to_bytes(16, "big"), said.span_id.to_bytes(8, "big"))
    return read_traceparent(caller()) or read_traceparent(os.environ.get("TRACEPARENT"))


def _recorded(trace: Path) -> Caller | None:
    """What a run that is resumed has noted at its beginning."""
    from concertino.traces.records import first_record

    try:
        noted = first_record(trace).get("setup", {}).get("noted", {}).get("otel", {})
    except TraceError:
        return None
    return read_traceparent(noted.get("traceparent"))
