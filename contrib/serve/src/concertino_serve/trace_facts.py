"""What the files of a run say of it, for a server that did not run it, or does so no more.

Invariant: nothing is asked of the process that runs it.
"""

from __future__ import annotations

from pathlib import Path

from concertino import Budget
from concertino.core.errors import TraceError
from concertino.traces.records import first_record

from .run_moments import Moment, moments_on_disk


def has_begun(trace: Path) -> bool:
    """Whether there is a record behind the header; one that cannot be read, for it is sealed, is one too."""
    try:
        with trace.open("rb") as file:
            file.readline()
            return file.readline().endswith(b"\n")
    except OSError:
        return False


def budget_of(trace: Path) -> Budget:
    """The budget that a run was given.

    Raises:
        TraceError: the trace cannot be read.
    """
    return Budget(**first_record(trace).get("setup", {}).get("budget", {}))


def usd_of(trace: Path) -> float | None:
    """What a run has cost so far; None if that cannot be read."""
    try:
        return end_of(moments_on_disk(trace))[1]
    except TraceError:
        return None


def end_of(moments: list[Moment]) -> tuple[str, float]:
    """Why the run ended last, and what it had cost by then."""
    for moment in reversed(moments):
        if isinstance(moment, dict) and moment["t"] == "end":
            return moment["stop"], float(moment["usage"].get("usd", 0.0))
    return "unfinished", 0.0
