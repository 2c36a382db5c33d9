"""One trace on its way to one receiver: read, folded, cut into batches by bytes, sent, and acknowledged.

    export = TraceExport(path, options)
    while not export.over:
        export.send_news()          # raises Away while the receiver is; nothing is lost, call it again

Invariants: at most one batch is held, so a receiver that is away costs no memory; nothing behind a batch is read before
it is taken; the position is that of the last record all of whose spans were taken.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from concertino.core.errors import TraceError
from concertino.traces import TraceTail

from .encoding import Encoder
from .fold import Span, SpanFold
from .options import Options
from .positions import Position, read_position, write_position
from .sending import Away, Refused, Send, TooLarge, sender

BATCH_BYTES = 2 << 20
"""Bytes of a batch before it is packed; common receivers take 4 MiB at most."""


@dataclass
class _Batch:
    """Spans that are sent at once; `upto`: the record that is acknowledged with them."""

    upto: int = 0
    size: int = 0
    encoded: list[bytes] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)

    def add(self, span: Span, encoded: bytes) -> None:
        self.encoded.append(encoded)
        self.spans.append(span)
        self.size += len(encoded)


class TraceExport:
    """The way of a trace to a receiver.

    Args:
        path: of the trace; it may grow meanwhile.
        again: send what the receiver has already, too. Metrics are never sent twice, since they would count twice.
        send: what sends; by default over HTTP.

    Attributes:
        sent: spans that the receiver has taken; `rejected`: those of them that it will not keep.
        over: whether it has the whole run; `going`: whether the run was under way at the last look.
    """

    def __init__(self, path: Path, options: Options, *, again: bool = False, send: Send | None = None) -> None:
        self.path = path
        self.sent = self.rejected = 0
        self.over = self.going = False
        self._options = options
        self._send = send or sender(options)
        self._before = read_position(path, options.receiver)
        self._skipped = 0 if again else self._before.record
        self._acknowledged = self._before.record
        self._tail = TraceTail(path)
        self._fold = SpanFold(content=options.content != "none")
        self._encoder: Encoder | None = None
        self._batch = _Batch()
        self._news = self._tail.news()
        self._settled: deque[Span] = deque()
        self._read = 0
        self._rests = False

    @property
    def run_id(self) -> str:
        """Of the trace; empty before its first record was read."""
        return self._fold.run_id

    @property
    def trace_id(self) -> str:
        """Its id at the receiver, 32 hex digits; empty before the first record was read."""
        return self._encoder.trace_id.hex() if self._encoder else ""

    @property
    def holds(self) -> bool:
        """Whether it has something that could not be sent yet."""
        return bool(self._batch.encoded or self._settled)

    def promise(self) -> None:
        """Write down that this receiver is to have the trace, so that a later process sends what this one cannot.

        Raises:
            OSError: it cannot be written.
        """
        write_position(self.path, self._options.receiver, Position(self._acknowledged))

    def send_news(self) -> None:
        """Send what the trace has by now.

        Raises:
            Away: the receiver cannot take it now.
            Refused: the receiver does not take it.
            TraceError: the trace cannot be read.
        """
        going = self.going = self._tail.is_written()
        self._pump()
        if not going and not self._rests and (ended := self._fold.at_rest()):
            self._settled.extend(ended)
            self._rests = True
        self._pump()
        self._deliver()
        self.over = self._rests
        if self.over or self._batch.upto > self._acknowledged:
            self._acknowledge(self._batch.upto)
        damage = self._tail.damage
        if not going and not self.over and damage is not None and not damage.torn:
            raise TraceError(f"{self.path}: damaged, sent up to there: {damage.reason}")

    def _pump(self) -> None:
        """Take all spans that are settled by now. What cannot be taken stays where it is, for the next time."""
        while True:
            while self._settled:
                self._take(self._settled[0])
                self._settled.popleft()
            self._batch.upto = max(self._batch.upto, self._read)
            record = next(self._news, None)
            if record is None:
                self._news = self._tail.news()
                return
            self._settled.extend(self._fold.apply(record))
            self._read = record["n"]
            self._rests = False

    def send_unfinished(self) -> None:
        """Send what is open as it stands, of a run that was killed. It is not acknowledged: its end may still come."""
        for span in self._fold.unfinished():
            self._batch.add(span, self._encoding().span(span))
        self._deliver()

    # -- batches -----------------------------------------------------------------------------------------------------

    def _take(self, span: Span) -> None:
        """Add a span to the batch, and send the batch where it would be too large with it."""
        if span.settled <= self._skipped:
            return
        encoded = self._encoding().span(span)
        if self._batch.encoded and self._batch.size + len(encoded) > BATCH_BYTES:
            self._deliver()
        self._batch.add(span, encoded)

    def _encoding(self) -> Encoder:
        if self._encoder is None:
            options = self._options
            self._encoder = Encoder(
                self._fold.run_id,
                self._fold.caller,
                options.semconv,
                options.resource,
                content=options.content in ("spans", "both"),
            )
        return self._encoder

    def _deliver(self) -> None:
        """Send the batch. If that fails, it stays as it is."""
        batch = self._batch
        if not batch.encoded:
            return
        if "traces" in self._options.signals and "traces" not in batch.sent:
            self.rejected += self._send_spans(batch.encoded)
            batch.sent.add("traces")
        encoder = self._encoding()
        if "logs" in self._options.signals and "logs" not in batch.sent:
            if body := encoder.logs(batch.spans):
                self._send("logs", body)
            batch.sent.add("logs")
        if "metrics" in self._options.signals:
            counted = [span for span in batch.spans if span.settled > self._before.record]
            if body := encoder.metrics(counted):
                self._send("metrics", body)
        self.sent += len(batch.encoded)
        self._batch = _Batch(batch.upto)
        if batch.upto > self._acknowledged:
            self._acknowledge(batch.upto)

    def _send_spans(self, spans: list[bytes]) -> int:
        """Send spans, in halves where they are too many at once. Gives how many will not be kept."""
        try:
            return self._send("traces", self._encoding().spans(spans))
        except TooLarge as error:
            if len(spans) == 1:
                raise Refused(f"{error}, for a single span is too large; set content = 'none'") from None
        half = len(spans) // 2
        return self._send_spans(spans[:half]) + self._send_spans(spans[half:])

    def _acknowledge(self, record: int) -> None:
        self._acknowledged = max(record, self._acknowledged)
        try:
            write_position(self.path, self._options.receiver, Position(self._acknowledged, self.over))
        except OSError as error:
            raise Away(f"{self.path}: its position cannot be written ({error.strerror})") from error
