"""How long members take: percentiles of the seconds of their calls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
    found = {}
    for name, seconds in sorted(times.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        if seconds:
            seconds.sort()
            p5, p25, p50, p75, p90, p95, p99 = (percentile(seconds, p) for p in (5, 25, 50, 75, 90, 95, 99))
            found[name] = Latency(kinds[name], len(seconds), p5, p25, p50, p75, p90, p95, p99, seconds[-1])
    return found


def percentile(ordered: Sequence[float], p: float) -> float:
    """The p-th percentile, 0 to 100, of values in rising order.

    Raises:
        ValueError: there is no value, or p is out of range.
    """
    if not ordered or not 0 <= p <= 100:
        raise ValueError(f"percentile {p} of {len(ordered)} values: expected at least one value, and 0 to 100")
    at = (len(ordered) - 1) * p / 100
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)
