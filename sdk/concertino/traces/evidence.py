"""What earlier runs say of members: the questions of those in which a call of a member succeeded.

Invariant: a trace that cannot be read, or whose run gave no answer, says nothing.
"""

from __future__ import annotations

from pathlib import Path

from concertino.core.errors import TraceError, UsageError
from concertino.core.observation import Status

from .store import TraceStore
from .trace import Trace

_TRACES = 2_000
"""Traces that are read, the newest first."""


def answered_questions(folder: str | Path) -> dict[str, list[str]]:
    """Questions by the name of the member that a call of succeeded; the newest first, each once.

    Args:
        folder: of traces.

    Raises:
        UsageError: there is no such folder.
    """
    place = Path(folder)
    if not place.is_dir():
        raise UsageError(f"learn_from={str(folder)!r}: expected a folder of traces; it is not there")
    found: dict[str, dict[str, None]] = {}
    for path in TraceStore(place).paths()[:_TRACES]:
        try:
            trace = Trace.load(path)
        except TraceError:
            continue
        if not trace.finished or trace.records[-1]["answer"] is None:
            continue
        for seen in trace.observations():
            if seen.status is Status.OK:
                found.setdefault(seen.name, {})[trace.question] = None
    return {name: list(questions) for name, questions in found.items()}
