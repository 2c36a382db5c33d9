"""A receiver of OTLP over HTTP in this process, which can be away, refuse, and say what it got."""

from __future__ import annotations

import gzip
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

KINDS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


class Receiver:
    """What it got; `answers` are the statuses of the next requests, 200 when they are used up."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        self.answers: list[int] = []
        self.headers: list[dict[str, str]] = []
        self.asked = 0
        self.away = False
        self.largest = 1 << 30
        self.url = ""

    def answer(self, path: str, headers: Any, packed: bytes) -> int:
        self.asked += 1
        body = gzip.decompress(packed)
        status = 503 if self.away else self.answers.pop(0) if self.answers else 200
        if status == 200 and len(body) > self.largest:
            status = 413
        if status == 200:
            self.bodies.append((path, body))
            self.headers.append(dict(headers))
        return status

    def requests(self, path: str) -> list[Any]:
        return [KINDS[path].FromString(body) for to, body in self.bodies if to == path]

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests("/v1/traces")
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def receiving(port: int = 0, receiver: Receiver | None = None) -> Iterator[Receiver]:
    """A receiver at a port, by default a free one; it goes on with what `receiver` got before."""
    receiver = receiver or Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.answer(self.path, self.headers, body)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{receiver.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def values(span: Any) -> dict[str, Any]:
    """The attributes of a span, a point or a record, as plain data."""
    return {pair.key: plain(pair.value) for pair in span.attributes}


def plain(value: Any) -> Any:
    which = value.WhichOneof("value")
    if which == "array_value":
        return [plain(each) for each in value.array_value.values]
    if which == "kvlist_value":
        return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
    return getattr(value, which)


def assert_one_tree(spans: list[Span]) -> Span:
    """Each id once, one root, every parent there, and children of one trace. Gives the root."""
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    assert len({span.trace_id for span in spans}) == 1
    roots = [span for span in spans if span.parent_span_id not in by_id]
    assert len(roots) == 1, [span.name for span in roots]
    for span in spans:
        seen = set()
        while span.span_id != roots[0].span_id:
            assert span.span_id not in seen, "a circle"
            seen.add(span.span_id)
            span = by_id[span.parent_span_id]
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    return roots[0]
