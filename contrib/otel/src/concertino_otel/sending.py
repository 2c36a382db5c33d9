"""Sending: one HTTP request with OTLP bytes, and what its answer means.

Invariant: a request ends in one of four ways: taken, `Away` (try again later), `TooLarge` (send less at once), or
`Refused` (a person has to change something). Nothing is ever sent to another address than the one that was set.
"""

from __future__ import annotations

import gzip
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

from concertino import UsageError
from concertino.core.display_text import one_line
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from .options import Options, Signal

TIMEOUT = 10.0
"""Seconds for an answer."""
_AGAIN = (408, 429, 502, 503, 504)
"""Statuses after which the standard has a sender try again."""
_MOST = 64 << 10
"""Bytes of an answer that are read."""
_LONGEST_WAIT = 300.0


class Away(Exception):
    """The receiver cannot take anything now. `after`: seconds that it asks to be left alone."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after


class TooLarge(Exception):
    """The receiver takes no request of this size."""


class Refused(UsageError):
    """The receiver takes nothing like this, however often it is sent."""


Send = Callable[[Signal, bytes], int]
"""Sends a request, and gives how many of its items the receiver took but will not keep."""


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: spans are for one receiver."""

    def redirect_request(self, *_: Any) -> None:
        return None


def sender(options: Options) -> Send:
    """What sends to the receiver of the options."""
    opener = urllib.request.build_opener(_Straight)
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip", **options.headers}

    def send(signal: Signal, body: bytes) -> int:
        packed = gzip.compress(body, compresslevel=1, mtime=0)
        request = urllib.request.Request(options.address(signal), data=packed, headers=headers, method="POST")
        try:
            with opener.open(request, timeout=TIMEOUT) as answer:
                return _rejected(answer.read(_MOST), signal)
        except urllib.error.HTTPError as error:
            with error:
                raise _meaning(error, options, signal) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise Away(f"{options.receiver} cannot be reached ({one_line(reason, 120)})") from None

    return send


def _meaning(error: urllib.error.HTTPError, options: Options, signal: Signal) -> Exception:
    told = f"{options.receiver} answered {error.code} to {signal}"
    if error.code in _AGAIN:
        return Away(told, _seconds(error.headers.get("Retry-After", "")))
    if error.code == 413:
        return TooLarge(told)
    try:
        said = one_line(error.read(_MOST).decode("utf-8", "replace"), 200)
    except OSError:
        said = ""
    return Refused(f"{told}{f': {said}' if said else ''}; {_hint(error.code, signal)}")


def _hint(status: int, signal: Signal) -> str:
    if status in (401, 403):
        return "put its key into OTEL_EXPORTER_OTLP_HEADERS, such as 'authorization=Bearer%20KEY'"
    if status in (404, 405) and signal != "traces":
        return f"it may take no {signal}: leave it out of 'signals'"
    return "check the address, and that the receiver takes OTLP over HTTP"


def _seconds(text: str) -> float:
    """`Retry-After`: seconds, or a date."""
    import time

    try:
        wait = float(text)
    except ValueError:
        try:
            wait = parsedate_to_datetime(text).timestamp() - time.time()
        except ValueError:
            return 0.0
    return min(max(wait, 0.0), _LONGEST_WAIT) if wait == wait else 0.0


def _rejected(body: bytes, signal: Signal) -> int:
    """What a partial success says; receivers that answer something else have taken all."""
    if signal != "traces" or not body:
        return 0
    try:
        return int(ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans)
    except Exception:  # protobuf's own error of an answer that is none
        return 0
