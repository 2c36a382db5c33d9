"""The caller of a run: the span of the client that asked a server for it, as a `traceparent` (W3C Trace Context).

A server reads it from a request. A plugin that sends spans asks for it when the run begins.

Invariant: it holds for one request alone, and nothing here looks into the text, which a stranger wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_caller: ContextVar[str] = ContextVar("concertino_caller", default="")


def caller() -> str:
    """The header of the request for which this code runs; empty where there is none."""
    return _caller.get()


@contextmanager
def called_by(traceparent: str) -> Iterator[None]:
    """Runs that begin in this block were asked for by a request with this header."""
    token = _caller.set(traceparent)
    try:
        yield
    finally:
        _caller.reset(token)
