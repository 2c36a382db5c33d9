"""From spans to the bytes of OTLP, in one dialect: spans, metrics and log records.

Invariant: what is encoded depends on the span, the dialect and the options alone, so encoding it again gives the same
bytes.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1 import metrics_pb2 as pb
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from . import ids
from .conventions import BOUNDS, DETAILS_EVENT, METRICS, SCHEMA_URLS, SPANS, Dialect, Metric, names
from .fold import ROOT, Span

_CONTENT = ("instructions", "input", "output")
_SCOPE = InstrumentationScope(name="concertino_otel")
_ERROR = Status(code=Status.STATUS_CODE_ERROR)
_SAMPLED = 1
_SHORT = 64
"""Characters of a text that is likely to come again."""


@dataclass
class Encoder:
    """Writes spans in a dialect.

    Args:
        run_id: of the run whose spans they are.
        caller: the span that it was started in, if it was.
        resource: what the process says of itself: `service.name` and the like.
        content: whether content may stand in spans; in log records it stands in any case.
    """

    run_id: str
    caller: ids.Caller | None
    dialect: Dialect
    resource: Mapping[str, str]
    content: bool = False
    _resource: Resource = field(init=False)

    def __post_init__(self) -> None:
        self.trace_id = self.caller.trace_id if self.caller else ids.trace_id(self.run_id)
        self._names = names(self.dialect, content=self.content)
        self._all_names = names(self.dialect, content=True)
        self._resource = Resource(attributes=[_pair(key, value) for key, value in self.resource.items()])

    def span(self, span: Span) -> bytes:
        """A span of OTLP."""
        form, key = SPANS[span.kind], span.key
        parent = ids.span_id(self.run_id, span.parent) if span.parent else self.caller.span_id if self.caller else b""
        made = ProtoSpan(
            trace_id=self.trace_id,
            span_id=ids.span_id(self.run_id, key),
            parent_span_id=parent,
            name=_clean(f"{form.operation} {span.name}"),
            kind=ProtoSpan.SPAN_KIND_CLIENT if form.client else ProtoSpan.SPAN_KIND_INTERNAL,
            start_time_unix_nano=_nano(span.started),
            end_time_unix_nano=_nano(span.ended),
            attributes=self._attributes(span.fields),
            flags=_SAMPLED,
        )
        if span.error:
            made.status.CopyFrom(_ERROR)
        for other in span.links:
            made.links.add(trace_id=self.trace_id, span_id=ids.span_id(self.run_id, other))
        for event in span.events:
            pairs = [_pair(name, value) for name, value in event.fields.items()]
            made.events.add(name=event.name, time_unix_nano=_nano(event.at), attributes=pairs)
        written: bytes = made.SerializeToString()
        return written

    def spans(self, spans: Iterable[bytes]) -> bytes:
        """A request that sends spans, each as its own bytes: they were written once, to know their size."""
        url = SCHEMA_URLS[self.dialect]
        scope = ScopeSpans(scope=_SCOPE, schema_url=url).SerializeToString()
        # In protobuf, a repeated field is the sequence of its items, and may stand before or behind other fields.
        scope += b"".join(_field(ScopeSpans.SPANS_FIELD_NUMBER, span) for span in spans)
        sent = ResourceSpans(resource=self._resource, schema_url=url).SerializeToString()
        sent += _field(ResourceSpans.SCOPE_SPANS_FIELD_NUMBER, scope)
        return _field(ExportTraceServiceRequest.RESOURCE_SPANS_FIELD_NUMBER, sent)

    def metrics(self, spans: Iterable[Span]) -> bytes:
        """A request that adds spans to the histograms; empty if none of them counts."""
        series: dict[tuple[Any, ...], _Series] = {}
        for span in spans:
            for metric in METRICS:
                name = metric.called(self.dialect)
                value = span.ended - span.started if metric.field == "seconds" else span.fields.get(metric.field)
                if not name or span.kind not in metric.spans or value is None:
                    continue
                by = tuple(span.fields.get(each, "") for each in metric.by)
                key = (name, metric.token_type, by)
                if key not in series:
                    series[key] = _Series(metric, by)
                series[key].add(float(value), span)
        if not series:
            return b""
        made: dict[str, pb.Metric] = {}
        for (name, _, _), one in series.items():
            if name not in made:
                made[name] = pb.Metric(name=name, unit=one.metric.unit, description=one.metric.about)
                made[name].histogram.aggregation_temporality = pb.AGGREGATION_TEMPORALITY_DELTA
            made[name].histogram.data_points.append(self._point(one))
        url = SCHEMA_URLS[self.dialect]
        scope = pb.ScopeMetrics(scope=_SCOPE, metrics=made.values(), schema_url=url)
        sent = pb.ResourceMetrics(resource=self._resource, scope_metrics=[scope], schema_url=url)
        written: bytes = ExportMetricsServiceRequest(resource_metrics=[sent]).SerializeToString()
        return written

    def logs(self, spans: Iterable[Span]) -> bytes:
        """A request that sends the content of requests to models as log records; empty if there is none."""
        records = []
        for span in spans:
            fields = {name: span.fields[name] for name in ("operation", "provider", "model") if name in span.fields}
            told = {name: span.fields[name] for name in _CONTENT if name in span.fields}
            if span.kind != "chat" or not told:
                continue
            pairs = [_pair(self._all_names[name][0], value) for name, value in fields.items()]
            # On records of a log the conventions want structures, where spans have texts of JSON.
            pairs += [_pair(self._all_names[name][0], json.loads(value)) for name, value in told.items()]
            records.append(
                LogRecord(
                    time_unix_nano=_nano(span.ended),
                    event_name=DETAILS_EVENT,
                    attributes=pairs,
                    trace_id=self.trace_id,
                    span_id=ids.span_id(self.run_id, span.key),
                )
            )
        if not records:
            return b""
        url = SCHEMA_URLS[self.dialect]
        scope = ScopeLogs(scope=_SCOPE, log_records=records, schema_url=url)
        sent = ResourceLogs(resource=self._resource, scope_logs=[scope], schema_url=url)
        written: bytes = ExportLogsServiceRequest(resource_logs=[sent]).SerializeToString()
        return written

    def root(self) -> ids.Caller:
        """The span of the run, for whoever calls others in its name."""
        return ids.Caller(self.trace_id, ids.span_id(self.run_id, ROOT))

    def _attributes(self, fields: Mapping[str, Any]) -> list[KeyValue]:
        made = []
        for name, value in fields.items():
            known = self._names.get(name)
            if known is not None and value not in (None, "", []):
                called, kind = known
                # A number of JSON may be whole where the table says double.
                made.append(_pair(called, float(value) if kind == "double" else value))
        return made

    def _point(self, series: _Series) -> pb.HistogramDataPoint:
        pairs = [
            _pair(self._all_names[name][0], value)
            for name, value in zip(series.metric.by, series.by, strict=True)
            if value and name in self._all_names
        ]
        if series.metric.token_type and self.dialect == "1.41":
            pairs.append(_pair("gen_ai.token.type", series.metric.token_type))
        return pb.HistogramDataPoint(
            attributes=pairs,
            start_time_unix_nano=_nano(series.started),
            time_unix_nano=_nano(series.ended),
            count=sum(series.counts),
            sum=series.sum,
            min=series.least,
            max=series.most,
            explicit_bounds=series.bounds,
            bucket_counts=series.counts,
        )


class _Series:
    """One series of a histogram, while it is added up."""

    def __init__(self, metric: Metric, by: tuple[Any, ...]) -> None:
        self.metric, self.by = metric, by
        self.bounds = BOUNDS[metric.unit]
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum, self.least, self.most = 0.0, float("inf"), float("-inf")
        self.started, self.ended = float("inf"), 0.0

    def add(self, value: float, span: Span) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
        self.least, self.most = min(self.least, value), max(self.most, value)
        self.started, self.ended = min(self.started, span.started), max(self.ended, span.ended)


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes, as protobuf writes it: number and kind, length, bytes."""
    head, length = bytearray([number << 3 | 2]), len(data)
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + data


def _nano(seconds: float) -> int:
    # Whole microseconds, for a float of today has no more.
    return round(seconds * 1e6) * 1000


def _clean(text: str) -> str:
    """A text that UTF-8 can write: a model may have written half a character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _pair(key: str, value: Any) -> KeyValue:
    if type(value) is str and len(value) <= _SHORT:
        return _known_pair(key, value)
    return KeyValue(key=key, value=_value(value))


@lru_cache(maxsize=2048)
def _known_pair(key: str, value: str) -> KeyValue:
    """A pair with a short text: names and statuses, which thousands of spans share. Whoever gets it copies it."""
    return KeyValue(key=key, value=_value(value))


def _value(value: Any) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=_clean(value))
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, Mapping):
        made = AnyValue()
        made.kvlist_value.values.extend(_pair(str(name), each) for name, each in value.items())
        return made
    if isinstance(value, (list, tuple)):
        return AnyValue(array_value=ArrayValue(values=[_value(each) for each in value]))
    return AnyValue(string_value=str(value))
