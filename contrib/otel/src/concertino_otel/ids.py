"""Ids of traces and spans: made from the run's id alone, so that whoever makes them again makes the same.

A run that is resumed continues its trace, a second export sends the same spans, and a child of a call can name its
parent before that has been sent. Where the caller of a run has a trace of its own (`traceparent`), the run is a part
of that one.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}(-.*)?\Z")


class Caller(NamedTuple):
    """The span that a run was started in."""

    trace_id: bytes
    span_id: bytes


def trace_id(run_id: str) -> bytes:
    """The 16 bytes of a run's trace."""
    return hashlib.sha256(f"trace\0{run_id}".encode()).digest()[:16]


def span_id(run_id: str, key: str) -> bytes:
    """The 8 bytes of a span; `key` is what it is in the run: `run`, `plan.2`, `ask.3`, or the id of a call."""
    return hashlib.sha256(f"span\0{run_id}\0{key}".encode()).digest()[:8]


def read_traceparent(text: object) -> Caller | None:
    """The span that a `traceparent` header of W3C Trace Context names; None where it is none, which is ignored."""
    found = _TRACEPARENT.match(text.strip().lower()) if isinstance(text, str) else None
    if found is None or found[0].startswith("ff") or not int(found["trace"], 16) or not int(found["span"], 16):
        return None  # version ff and ids of zeros are invalid by the standard
    return Caller(bytes.fromhex(found["trace"]), bytes.fromhex(found["span"]))


def write_traceparent(caller: Caller) -> str:
    """The header for a span."""
    return f"00-{caller.trace_id.hex()}-{caller.span_id.hex()}-01"
