"""How long members take: percentiles of the seconds of their calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from concertino_bench.tasks.item import Item

from .metric import Metric

LATENCY = Metric(
    "latency",
    "latency of members",
    "s per call",
    "lower",
    "0 or more",
    "percentiles of `MemberUse.seconds`, between two calls by a straight line",
    "Hyndman and Fan 1996, definition 7",
    "How long the calls of each member took, failed ones included: median, 90th and 99th percentile, and the longest.",
    "latency(items)",
)


class Latency(NamedTuple):
    """Seconds of one member's calls.

    Attributes:
        kind: tool, agent, model, or unknown.
        calls: how many.
        p5, p25, p50, p75, p90, p95, p99: percentiles, seconds.
        longest: of all, seconds.
    """

    kind: str
    calls: int
    p5: float
    p25: float
    p50: float
    p75: float
    p90: float
    p95: float
    p99: float
    longest: float


def latency(items: Iterable[Item]) -> dict[str, Latency]:
    """Latencies of each member, most called first; members whose calls left no seconds are not there."""
    times: dict[str, list[float]] = {}
    kinds: dict[str, str] = {}
    for item in items:
        for name, use in item.members.items():
            times.setdefault(name, []).extend(use.seconds)
            kinds[name] = use.kind
    # Imported here: most commands read metrics without computing any, and numpy is slow to import.
    import numpy as np

    return {
        name: Latency(kinds[name], len(seconds), *np.percentile(seconds, (5, 25, 50, 75, 90, 95, 99, 100)).tolist())
        for name, seconds in sorted(times.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        if seconds
    }
