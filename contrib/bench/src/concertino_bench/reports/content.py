"""The content of a report: everything that a reader of results wants to see, computed once.

The invariant: a report is made from the items and the header alone, and the same results give the same report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from concertino.strategies import BUILT_IN

from concertino_bench.baselines import strategies
from concertino_bench.baselines.loops import SingleWithTools
from concertino_bench.metrics.bootstrap import intervals
from concertino_bench.metrics.catalogue import METRICS
from concertino_bench.metrics.correctness import accuracy, reward_mean, value_mean
from concertino_bench.metrics.latency import Latency, latency
from concertino_bench.metrics.metric import Metric, Terms, Value, by_system
from concertino_bench.metrics.pairs import Comparison, compare
from concertino_bench.metrics.preferences import Preference, preference_adherence
from concertino_bench.metrics.samples import g_pass_at, majority_at, pass_at
from concertino_bench.metrics.shares import Entropy, Share, model_share, tool_share
from concertino_bench.metrics.statuses import status_mix
from concertino_bench.tasks.item import REWARD, Item

from .failures import FailedItem, failures
from .frontier import Point, mark
from .results import Results

# Pairs grow with the square of the systems, and the correction for their number takes all power away.
MANY = 6
"""Up to so many systems are compared each with each; of more, each with the one that is right most often."""
COMPARED = ("accuracy", "usd", "seconds", "calls")
Curve = Sequence[tuple[int, Value]]


@dataclass(frozen=True)
class ReportContent:
    """What `compute` computed.

    Attributes:
        results: what it was made from.
        level: share of the draws that an interval holds.
        metrics: what was computed of every system, in the order of tables.
        values: by system and name of the metric.
        comparisons: pairs of systems.
        points: by name of the metric on the x axis, the systems against accuracy.
        curves: by axis and system, accuracy at each level.
        several: systems of several agents, by their declared strategy; those whose header says nothing of it, by what
            they used: agents, or models beside their leader.
        gains: by axis and level, how much more often these are right than the others; empty without either.
        tools, models: shares by system and member.
        statuses: shares of each status by system.
        latency: seconds of members' calls.
        failures: answers worth reading.
        preference: what the systems were held against, if anything.
    """

    results: Results
    level: float
    metrics: Sequence[Metric]
    values: Mapping[str, Mapping[str, Value]]
    comparisons: Sequence[Comparison]
    points: Mapping[str, Sequence[Point]]
    curves: Mapping[str, Mapping[str, Curve]]
    several: frozenset[str]
    gains: Mapping[tuple[str, int], Value]
    tools: Mapping[str, Mapping[str, Share]]
    models: Mapping[str, Mapping[str, Share]]
    statuses: Mapping[str, Mapping[str, float]]
    latency: Mapping[str, Latency]
    failures: Sequence[FailedItem]
    preference: Preference | None = None
    times: Mapping[str, Sequence[float]] = field(default_factory=dict, repr=False)

    @property
    def systems(self) -> list[str]:
        """Names of the systems, in the order of the header."""
        return list(self.values)

    @property
    def title(self) -> str:
        """What the report is called."""
        return str(self.results.header.get("title") or "Evaluation")

    def metric(self, name: str) -> Metric:
        """A metric of this report by its name."""
        return next(each for each in self.metrics if each.name == name)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data: what tables and plots are made from."""
        return {
            "title": self.title,
            "level": self.level,
            "header": dict(self.results.header),
            "notes": list(self.results.notes),
            "systems": {name: {k: v.to_json() for k, v in of.items()} for name, of in self.values.items()},
            "comparisons": [each.to_json() for each in self.comparisons],
            "pareto": {x: [point.to_json() for point in points] for x, points in self.points.items()},
            "curves": {
                axis: {name: [{"level": at, **value.to_json()} for at, value in curve] for name, curve in of.items()}
                for axis, of in self.curves.items()
            },
            "several": sorted(self.several),
            "gains": [{"axis": axis, "at": at, **v.to_json()} for (axis, at), v in self.gains.items()],
            "tools": {name: {k: v._asdict() for k, v in of.items()} for name, of in self.tools.items()},
            "models": {name: {k: v._asdict() for k, v in of.items()} for name, of in self.models.items()},
            "statuses": {name: dict(of) for name, of in self.statuses.items()},
            "latency": {name: of._asdict() for name, of in self.latency.items()},
            "failures": [{"key": list(f.item.key), "solved": f.solved, "others": f.others} for f in self.failures],
        }


def compute(
    results: Results, *, preference: Preference | None, level: float, resamples: int, seed: int
) -> ReportContent:
    """Compute everything that a report shows.

    Raises:
        ValueError: there is no item, or an argument is out of range.
    """
    if not results.items:
        raise ValueError("results without items: expected at least one; has the evaluation begun?")
    of = {name: [item for item in results.items if item.key.system == name] for name in results.systems}
    if preference is None and results.header.get("preference"):
        preference = Preference.from_json(results.header["preference"])
    metrics = _metrics(results.items, preference)
    how: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    declared = _strategies(results.header)
    several = frozenset(name for name, items in of.items() if _several(declared.get(name, ""), items))
    values = {name: {v.metric: v for v in intervals(items, metrics, **how)} for name, items in of.items()}
    return ReportContent(
        results,
        level,
        metrics,
        values,
        _comparisons(results.items, values, how),
        _points(values),
        _curves(of, how),
        several,
        _gains(results.items, several, how),
        {name: tool_share(items) for name, items in of.items()},
        {name: model_share(items) for name, items in of.items()},
        {name: status_mix(items) for name, items in of.items()},
        latency(results.items),
        failures(results.items),
        preference,
        {name: sorted(item.seconds for item in items if not item.error) for name, items in of.items()},
    )


def _metrics(items: Sequence[Item], preference: Preference | None) -> list[Metric]:
    """What applies to these items: pass@k and the like where there are samples, what graders gave, a preference."""
    samples = 1 + max(item.key.sample for item in items)
    # Powers of two are what papers report, and the number of samples is what this file can tell at most.
    several = [k for k in (2, 4, 8, 16, 32, 64) if k < samples] + [samples] if samples > 1 else []
    found: list[Metric] = []
    for metric in METRICS.values():
        if metric.name == "pass@k":
            found += [pass_at(k) for k in several]
        elif metric.name == "maj@k":
            found += [majority_at(samples)] if several else []
        elif metric.name == "g-pass@k":
            # The thresholds that its paper reports, and their mean.
            found += [g_pass_at(samples, tau) for tau in (0.5, 0.75, 1.0, None)] if several else []
        elif metric.name == "grader_value":
            names = sorted({name for item in items for name in item.values})
            found += [reward_mean(name) if name.startswith(REWARD) else value_mean(name, items) for name in names]
        elif metric.name == "preference_adherence":
            found += [preference_adherence(items, preference)] if preference else []
        elif metric.needs:
            found += [metric] if any(metric.needs in item.values for item in items) else []
        elif metric.terms is not None or isinstance(metric, Entropy):
            found.append(metric)
    return found


def _comparisons(
    items: Sequence[Item], values: Mapping[str, Mapping[str, Value]], how: Mapping[str, Any]
) -> list[Comparison]:
    names = list(values)
    if len(names) > MANY:
        best = max(names, key=lambda name: values[name]["accuracy"].value or 0.0)
        pairs = [(best, name) for name in names if name != best]
    else:
        pairs = list(combinations(names, 2))
    of = by_system(items)
    keys = {name: {item.key[1:] for item in of[name]} for name in names}
    metrics = [METRICS[name] for name in COMPARED]
    return [compare([*of[a], *of[b]], a, b, metrics, **how) for a, b in pairs if keys[a] & keys[b]]


def _points(values: Mapping[str, Mapping[str, Value]]) -> dict[str, list[Point]]:
    y = METRICS["accuracy"]
    return {
        x: mark([Point(name, of[x], of["accuracy"]) for name, of in values.items()], METRICS[x], y)
        for x in ("usd", "seconds")
    }


def _curves(of: Mapping[str, Sequence[Item]], how: Mapping[str, Any]) -> dict[str, dict[str, Curve]]:
    groups: dict[str, dict[str, dict[int, list[Item]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for name, items in of.items():
        for item in items:
            if item.axis and item.level is not None:
                groups[item.axis][name][item.level].append(item)
    return {
        axis: {
            name: [(at, intervals(levels[at], [accuracy], **how)[0]) for at in sorted(levels)]
            for name, levels in systems.items()
        }
        for axis, systems in sorted(groups.items())
    }


def _gains(items: Sequence[Item], several: frozenset[str], how: Mapping[str, Any]) -> dict[tuple[str, int], Value]:
    """Accuracy of the systems of several agents less that of the single ones, on tasks that both kinds tried."""

    def terms(group: Sequence[Item]) -> Terms | None:
        many = [item.right for item in group if item.key.system in several]
        one = [item.right for item in group if item.key.system not in several]
        return Terms(sum(many) / len(many) - sum(one) / len(one), 1.0) if many and one else None

    gain = METRICS["accuracy"].named("gain", terms)
    groups: dict[tuple[str, int], list[Item]] = defaultdict(list)
    for item in items:
        if item.axis and item.level is not None:
            groups[item.axis, item.level].append(item)
    found = {where: intervals(group, [gain], **how)[0] for where, group in sorted(groups.items())}
    return {where: value for where, value in found.items() if value.value is not None}


def _strategies(header: Mapping[str, Any]) -> dict[str, str]:
    """The name of each system's strategy, as far as a header says it."""
    found = {}
    for each in header.get("systems", ()):
        if isinstance(each, Mapping):
            strategy = each.get("strategy")
            said = strategy.get("name") if isinstance(strategy, Mapping) else strategy
            found[str(each.get("name"))] = str(said or "")
    return found


def _several(strategy: str, items: Sequence[Item]) -> bool:
    """Whether a system is one of several agents: whoever may delegate is, also where it never did.

    A strategy that needs no members is a single agent, and so is the one of a model with its tools. Of strategies that
    neither the SDK nor this package has, it is told by what happened: they used an agent, or more than one model.
    """
    baselines: list[Any] = [*strategies()]
    known: dict[str, Any] = {**BUILT_IN, **{kind.name: kind for kind in baselines}}
    if strategy in known:
        # By what it may do: one that could delegate and did not has still chosen so.
        return bool(known[strategy].needs_members) and strategy != SingleWithTools.name
    kinds = {(use.kind, name) for item in items for name, use in item.members.items() if use.calls}
    return any(kind == "agent" for kind, _ in kinds) or sum(kind == "model" for kind, _ in kinds) > 1
