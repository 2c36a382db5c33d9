"""`spans.md`: every span, attribute, metric and event of concertino-otel, made from its table of names."""

from __future__ import annotations

from collections.abc import Iterator

from concertino_otel.conventions import (
    ATTRIBUTES,
    DETAILS_EVENT,
    METRICS,
    SPAN_EVENTS,
    SPAN_KINDS,
    SPANS,
    Attribute,
    Metric,
)

HEAD = """\
# Spans

What concertino-otel sends. [Send spans to a backend](../how-to/send-spans.md) says how. Names are those of the GenAI
conventions of OpenTelemetry, in one of two dialects (`semconv`): `1.41`, which most backends read today, and
`genai-0.1`, which is newer. What the conventions have no name for begins with `concertino.`.

Level: *required* and *if known* are those of the conventions; *ours* has no place in them; *opt-in* is content, and
sent only where `content` says so. This page is made from the table in the code.

## Spans

| Kind | Name | Span kind | What it is |
|---|---|---|---|
"""
NAMES = {
    "run": "invoke_agent concertino",
    "plan": "plan concertino",
    "chat": "chat MODEL",
    "tool": "execute_tool TOOL",
    "agent": "invoke_agent AGENT",
    "guard": "guard GUARD",
}
TREE = """
The run is the root. A request of the orchestrator that led to a plan is below the span of that plan, any other one
below the run. Calls of a plan are below the run, calls of an agent below that agent. A call that waited for others has
links to them. A call that failed has the status ERROR and `error.type`.

## Attributes
"""
METRIC_HEAD = """
## Metrics

Histograms, each the difference since the last batch (delta). Sent where `signals` has `metrics`.

| Name in `1.41` | Name in `genai-0.1` | Unit | Of spans | What |
|---|---|---|---|---|
"""


def reference_page() -> str:
    """The page."""
    return "".join([HEAD, *_spans(), TREE, *_attributes(), METRIC_HEAD, *map(_metric, METRICS), *_events()])


def _spans() -> Iterator[str]:
    for kind in SPAN_KINDS:
        form = SPANS[kind]
        yield f"| {kind} | `{NAMES[kind]}` | {'CLIENT' if form.client else 'INTERNAL'} | {form.about} |\n"


def _attributes() -> Iterator[str]:
    for kind in SPAN_KINDS:
        yield f"\n### Of {kind} spans\n\n| Name | Type | Level | Meaning |\n|---|---|---|---|\n"
        for each in ATTRIBUTES:
            if kind in each.spans:
                yield f"| {_names(each)} | {each.type} | {each.level} | {each.about} |\n"


def _names(attribute: Attribute) -> str:
    if not attribute.newer:
        return f"`{attribute.name}`"
    return f"`{attribute.name}`; in `genai-0.1` " + (f"`{attribute.newer}`" if attribute.newer != "-" else "left out")


def _metric(metric: Metric) -> str:
    names = [f"`{name}`" if name else "-" for name in (metric.name, metric.newer)]
    kind = f", `gen_ai.token.type` is `{metric.token_type}` in `1.41`" if metric.token_type else ""
    return f"| {names[0]} | {names[1]} | {metric.unit} | {', '.join(metric.spans)} | {metric.about}{kind} |\n"


def _events() -> Iterator[str]:
    yield "\n## Events inside a span\n\n| Name | What |\n|---|---|\n"
    for name, about in SPAN_EVENTS.items():
        yield f"| `{name}` | {about} |\n"
    yield (
        '\n## Log records\n\nWith `content = "events"` or `"both"`, each request to a model is also a log record with '
        f"the event name\n`{DETAILS_EVENT}`, in the span of the request. Its messages are structures,\n"
        "not texts of JSON.\n"
    )
