"""Which systems are worth their price: points of two metrics, and the frontier that no other system beats.

A point is on the frontier if no other is at least as good in both metrics and better in one. Whether more is better is
what the metrics say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from concertino.schema import suggestion

from concertino_bench.metrics.bootstrap import LEVEL, RESAMPLES, intervals
from concertino_bench.metrics.catalogue import METRICS
from concertino_bench.metrics.metric import Metric, Value, by_system
from concertino_bench.tasks.item import Item


@dataclass(frozen=True)
class Point:
    """One system in the plane of two metrics.

    Attributes:
        system: its name.
        x, y: the values, with intervals.
        frontier: whether no other system beats it; False where a value is unknown.
        beaten_by: systems that beat it.
    """

    system: str
    x: Value
    y: Value
    frontier: bool = False
    beaten_by: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether both values are numbers."""
        return all(v.value is not None and isfinite(v.value) for v in (self.x, self.y))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "system": self.system,
            "x": self.x.to_json(),
            "y": self.y.to_json(),
            "frontier": self.frontier,
            "beaten_by": list(self.beaten_by),
        }


def pareto(
    items: Iterable[Item],
    x: str | Metric = "usd",
    y: str | Metric = "accuracy",
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Point]:
    """All systems by rising x, those with an unknown value last.

    Raises:
        ValueError: no such metric, or one that has no direction or no single value.
    """
    metrics = [_metric(x), _metric(y)]
    found = []
    for system, of_system in by_system(items).items():
        value_x, value_y = intervals(of_system, metrics, level=level, resamples=resamples, seed=seed)
        found.append(Point(system, value_x, value_y))
    return mark(found, *metrics)


def mark(points: Sequence[Point], x: Metric, y: Metric) -> list[Point]:
    """The points by rising x, with the frontier marked."""
    known = [point for point in points if point.known]
    marked = []
    for point in points:
        # A system whose value is unknown beats nobody and is not on the frontier.
        beaten = tuple(other.system for other in known if point.known and _beats(other, point, x, y))
        marked.append(Point(point.system, point.x, point.y, point.known and not beaten, beaten))
    return sorted(marked, key=lambda point: (not point.known, point.x.value or 0.0, point.system))


def _beats(one: Point, other: Point, x: Metric, y: Metric) -> bool:
    gains = [_gain(one.x, other.x, x), _gain(one.y, other.y, y)]
    return min(gains) >= 0 and max(gains) > 0


def _gain(one: Value, other: Value, metric: Metric) -> float:
    more = (one.value or 0.0) - (other.value or 0.0)
    return more if metric.better == "higher" else -more


def _metric(given: str | Metric) -> Metric:
    metric = METRICS.get(given) if isinstance(given, str) else given
    usable = sorted(name for name, each in METRICS.items() if each.better and each.terms is not None)
    if metric is None:
        hint = suggestion(str(given), METRICS)
        raise ValueError(f"no metric {given!r}; {hint}")
    if not metric.better or metric.terms is None:
        raise ValueError(
            f"metric {metric.name!r} has no better direction or no single value; choose {', '.join(usable)}"
        )
    return metric
