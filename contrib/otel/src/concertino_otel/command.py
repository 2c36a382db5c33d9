"""`concertino traces export RUN --otlp URL`, and what the doctor says about the receiver."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from concertino import Finding, UsageError
from concertino.cli.terminal import say, say_json
from concertino.core.settings import load_settings

from .exporting import TraceExport
from .options import Options
from .positions import read_position
from .sending import Away, Refused, Send, sender

WAIT = 10.0
"""Seconds for which the command asks a receiver again that is away."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 2.0
"""Seconds between two requests to it."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What an export did.

    Attributes:
        sent: spans that the receiver took; `rejected`: those of them that it does not keep.
        over: whether the run has ended, so that its tree is whole.
    """

    run_id: str
    trace_id: str
    sent: int
    rejected: int
    over: bool


def send_trace(path: Path, options: Options, *, wait: float = WAIT, send: Send | None = None) -> Sent:
    """Send what a trace has by now. After an export that was cut short, only what is missing is sent.

    Args:
        wait: seconds for which a receiver is asked again that is away, since it failed first or took something last.

    Raises:
        TraceError: the trace cannot be read.
        UsageError: the receiver is away, or does not take it; says how much it has.
    """
    whole = read_position(path, options.receiver).over
    export = TraceExport(path, options, again=whole, send=send)
    before, limit, pause = -1, 0.0, FIRST_PAUSE
    while True:
        try:
            export.send_news()
            if not export.over and not export.going:
                export.send_unfinished()
            break
        except Away as error:
            # The time begins with a failure, so a receiver that was only slow to answer is asked twice at least.
            if export.sent > before:  # the first failure, or it has come back in between
                before, limit, pause = export.sent, time.monotonic() + wait, FIRST_PAUSE
            rest = limit - time.monotonic()
            if rest <= 0:
                raise UsageError(
                    f"{error}; {export.sent} spans were taken. Repeat the command when it is back: it goes on there"
                ) from None
            time.sleep(min(max(pause, error.after), rest))
            pause = min(2 * pause, LONGEST_PAUSE)
    return Sent(export.run_id, export.trace_id, export.sent, export.rejected, export.over)


@click.command("traces export --otlp", hidden=True)
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("url")
@click.option("--json", "as_json", is_flag=True)
def export_command(trace: Path, url: str, as_json: bool) -> None:
    """Send a trace to a receiver of OTLP over HTTP."""
    table: Any = load_settings().providers.get("otel", {})
    options = Options.of(table).to(url)
    done = send_trace(trace, options)
    if as_json:
        fields = {"sent": done.sent, "rejected": done.rejected, "over": done.over}
        say_json({"run_id": done.run_id, "trace_id": done.trace_id, "receiver": options.receiver, **fields})
        return
    rest = "" if done.over else "; the run has no end yet, so what is open was sent as it stands"
    lost = f" ({done.rejected} of them it does not keep)" if done.rejected else ""
    say(f"{done.run_id}: {done.sent} spans to {options.receiver}{lost}, trace {done.trace_id}{rest}")


def look(options: Options) -> list[Finding]:
    """What the doctor says of the receiver."""
    if not options.url:
        return [Finding("ok", "OpenTelemetry", "no receiver is set, so spans are sent by `traces export --otlp` alone")]
    try:
        sender(options)("traces", b"")
    except Away as error:
        return [Finding("warning", "OpenTelemetry", str(error), "start it; spans wait in the traces")]
    except Refused as error:
        return [Finding("error", "OpenTelemetry", str(error), "correct [providers.otel]")]
    return [Finding("ok", "OpenTelemetry", f"{options.receiver} answers")]
