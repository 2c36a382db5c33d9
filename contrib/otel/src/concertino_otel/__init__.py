"""concertino-otel: runs as spans, metrics and events of the GenAI conventions, sent to any OpenTelemetry backend.

Everything is a fold over the trace: what is sent can be sent again, by this process or another, and is the same.

    conventions   the table of names, in two dialects      ids        trace and span ids, made from the run's id
    fold          records to finished spans                content    prompts and results, where they are wanted
    encoding      spans to the bytes of OTLP               options    where to, and what
    sending       one request                              positions  how far a receiver is
    exporting     one trace to one receiver                shipping   all runs of a process, while they go on
    spans         the current span, for instrumentation of other libraries

Invariant: importing this package imports neither protobuf nor anything of OpenTelemetry; the hooks below do.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concertino import Finding, Observation, ProviderSettings, hookimpl

__all__ = ["export_trace"]


def export_trace(path: str | Path, url: str, **settings: Any) -> int:
    """Send the spans of a trace to a receiver of OTLP over HTTP. Gives how many it took.

    Args:
        path: of the trace file.
        url: of the receiver, such as `http://127.0.0.1:4318`.
        settings: as in the table `[providers.otel]`.

    Raises:
        TraceError: the trace cannot be read.
        UsageError: a setting is wrong, or the receiver is away or does not take it; says what to do.
    """
    from .command import send_trace
    from .options import Options

    return send_trace(Path(path), Options.of(settings).to(url)).sent


@hookimpl
def concertino_before_run(run_id: str, trace: Path, settings: ProviderSettings) -> Mapping[str, Any] | None:
    """Send the spans of the run while it goes on. Notes the span that it was started in, as `traceparent`."""
    from .options import Options
    from .shipping import shipper_for
    from .spans import began

    options = Options.of(settings)
    if options.url:
        shipper_for(options).ship(trace)
    return began(run_id, trace)


@hookimpl(tryfirst=True)
def concertino_before_call(call_id: str, run_id: str) -> None:
    """Make the call's span the current one, for libraries that make spans of their own."""
    from .spans import enter

    enter(run_id, call_id)


@hookimpl(trylast=True)
def concertino_after_call(observation: Observation) -> None:
    """The call is over, and so is its span."""
    from .spans import leave

    leave(observation.call_id)


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino traces export RUN --otlp URL`."""
    from .command import export_command

    return [export_command]


@hookimpl
def concertino_doctor(settings: ProviderSettings) -> list[Finding]:
    """Whether there is a receiver, and whether it answers."""
    from .command import look
    from .options import Options

    return look(Options.of(settings))
