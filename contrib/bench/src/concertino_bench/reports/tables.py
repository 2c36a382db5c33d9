"""The tables of a report, as both Markdown and HTML show them: headings, and cells with what they are sorted by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from concertino_bench.metrics.correctness import accuracy
from concertino_bench.metrics.metric import Metric, Value
from concertino_bench.metrics.pairs import Difference, holm
from concertino_bench.metrics.shares import Share

from . import texts as t
from .content import ReportContent

OVERVIEW = ("usd", "cost_of_pass", "seconds", "calls", "ok_rate", "format_rate")


class Cell(NamedTuple):
    """A cell.

    Attributes:
        text: what it says.
        more: in small letters below, such as an interval.
        sort: what a column is sorted by; the text if None.
        best: whether it is the best of its column.
    """

    text: str
    more: str = ""
    sort: float | None = None
    best: bool = False

    @property
    def value(self) -> str:
        """What a page sorts by, as JavaScript reads a number; empty without one."""
        known = self.sort is not None and (math.isfinite(self.sort) or self.sort == math.inf)
        return "Infinity" if self.sort == math.inf else repr(self.sort) if known else ""


@dataclass(frozen=True)
class ReportTable:
    """A table.

    Attributes:
        head: headings of columns.
        rows: cells.
        notes: for each heading what it means; empty for what needs no word.
        numeric: columns that hold numbers.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    numeric: frozenset[int] = frozenset()

    def note(self, column: int) -> str:
        """What a heading means; empty for what needs no word."""
        return self.notes[column] if column < len(self.notes) else ""


def overview(report: ReportContent) -> ReportTable:
    """One row per system: what one looks at first."""
    sampled = [metric for metric in report.metrics if metric.name.startswith(("pass@", "maj@", "preference"))]
    metrics = [report.metric("accuracy"), *sampled, *(report.metric(name) for name in OVERVIEW)]
    best = {metric.name: _best(report, metric) for metric in metrics}
    rows = []
    for name in report.systems:
        cells = [_cell(report.values[name][metric.name], metric, best[metric.name]) for metric in metrics]
        rows.append([Cell(name), Cell("several" if name in report.several else "single"), *cells])
    head = ["system", "kind", *(metric.title for metric in metrics)]
    notes = [
        "",
        "several: its strategy hands work to members; single: one model, with or without tools",
        *(metric.summary for metric in metrics),
    ]
    return ReportTable(head, rows, notes, frozenset(range(2, len(head))))


def everything(report: ReportContent) -> ReportTable:
    """All metrics: one row each, one column per system."""
    rows = []
    for metric in report.metrics:
        best = _best(report, metric)
        cells = [_cell(report.values[name][metric.name], metric, best) for name in report.systems]
        rows.append([Cell(metric.title, metric.unit), *cells])
    return ReportTable(["metric", *report.systems], rows, (), frozenset(range(1, 1 + len(report.systems))))


def comparisons(report: ReportContent) -> ReportTable:
    """One row per pair."""
    notes = {
        "a": "",
        "b": "",
        "tasks": "tasks that both have",
        "dropped": "items that only one of the two has",
        "b - a, accuracy": "difference of accuracies on common tasks, with the interval of the paired bootstrap",
        "only a right": "",
        "only b right": "",
        "p": "McNemar's exact test, two-sided",
        "p, Holm": "the same, corrected for the number of pairs",
        "$": "b's $ per run as a multiple of a's",
        "time": "b's wall time as a multiple of a's",
    }
    corrected = holm([each.mcnemar.p for each in report.comparisons])
    rows = []
    for each, p in zip(report.comparisons, corrected, strict=True):
        gap, dropped = each["accuracy"], each.dropped_a + each.dropped_b
        rows.append(
            [
                Cell(each.a),
                Cell(each.b),
                _count(each.tasks),
                _count(dropped),
                Cell(_points(gap.difference), _between(gap), gap.difference),
                _count(each.mcnemar.only_a),
                _count(each.mcnemar.only_b),
                Cell(t.p_value(each.mcnemar.p), "", each.mcnemar.p),
                Cell(t.p_value(p), "", p),
                _ratio(each["usd"]),
                _ratio(each["seconds"]),
            ]
        )
    return ReportTable(list(notes), rows, list(notes.values()), frozenset(range(2, len(notes))))


def curves(report: ReportContent) -> ReportTable:
    """Accuracy by axis and level: one row each, one column per system."""
    rows = []
    for axis, of in report.curves.items():
        for level in sorted({at for curve in of.values() for at, _ in curve}):
            values = {name: dict(of.get(name, ())).get(level) for name in report.systems}
            best = max((v.value or 0.0 for v in values.values() if v), default=None)
            cells = [_cell(v, accuracy, best) if v else Cell("–") for v in values.values()]
            tasks = max(v.tasks for v in values.values() if v)
            gain = report.gains.get((axis, level))
            gap = [Cell(_points(gain.value), _between(gain), gain.value)] if gain else []
            rows.append([Cell(axis), _count(level), _count(tasks), *cells, *gap])
    head = ["axis", "level", "tasks", *report.systems, *(["several - single"] if report.gains else [])]
    notes = [""] * (len(head) - 1) + ["mean accuracy of systems of several agents or models, less that of single ones"]
    return ReportTable(head, rows, notes if report.gains else (), frozenset(range(1, len(head))))


def shares(report: ReportContent, which: Mapping[str, Mapping[str, Share]]) -> ReportTable:
    """Members by use: one row each, one column per system."""
    names: dict[str, int] = {}
    for of in which.values():
        for name, share in of.items():
            names[name] = names.get(name, 0) + share.calls
    rows = []
    for name in sorted(names, key=lambda each: (-names[each], each)):
        kind = next(of[name].kind for of in which.values() if name in of)
        cells = [
            Cell(t.number(of[name].share, "share"), f"{of[name].calls:,}", of[name].share) if name in of else Cell("–")
            for of in (which[system] for system in report.systems)
        ]
        rows.append([Cell(name), Cell(kind), *cells])
    head = ["member", "kind", *report.systems]
    return ReportTable(head, rows, (), frozenset(range(2, len(head))))


def latencies(report: ReportContent) -> ReportTable:
    """One row per member."""
    head = ["member", "kind", "calls", "median", "90 %", "99 %", "longest"]
    rows = [
        [Cell(name), Cell(of.kind), _count(of.calls), *(_seconds(s) for s in (of.p50, of.p90, of.p99, of.longest))]
        for name, of in report.latency.items()
    ]
    return ReportTable(head, rows, (), frozenset(range(2, len(head))))


def failures(report: ReportContent) -> ReportTable:
    """One row per failure."""
    head = ["system", "task", "verdict", "why", "others right", "ended", "time", "trace"]
    rows = []
    for each in report.failures:
        item = each.item
        sample = f"sample {item.key.sample}" if item.key.sample else ""
        why = f"it could not begin: {item.error}" if item.error else item.reason
        rows.append(
            [
                Cell(item.key.system),
                Cell(item.key.task, sample),
                Cell(item.verdict.value),
                Cell(t.short(why)),
                Cell(f"{each.solved} of {each.others}", "", float(each.solved)),
                Cell(item.stop or "–", t.short(item.detail, 100)),
                _seconds(item.seconds),
                Cell(item.trace or "–"),
            ]
        )
    return ReportTable(head, rows, (), frozenset({4, 6}))


def conditions(report: ReportContent) -> ReportTable:
    """What was run, as far as the headers say it."""
    headers = report.results.headers or {"": report.results.header}
    rows = [[Cell(file), Cell(name), Cell(text)] for file, header in headers.items() for name, text in _said(header)]
    if not report.results.headers:
        return ReportTable(["what", "value"], [row[1:] for row in rows])
    return ReportTable(["file", "what", "value"], rows)


def systems(report: ReportContent) -> ReportTable:
    """What each system is, as far as the header says it."""
    there = [each for each in report.results.header.get("systems", ()) if isinstance(each, Mapping)]
    said = {str(each.get("name")): each for each in there}
    rows = []
    for name in report.systems:
        each = said.get(name, {})
        strategy = each.get("strategy", "–")
        options = {k: v for k, v in strategy.items() if k != "name"} if isinstance(strategy, Mapping) else {}
        other = {k: each.get(k) for k in ("only", "offer", "roles", "sampling", "eager")} | {"options": options}
        label = strategy.get("name", "–") if isinstance(strategy, Mapping) else strategy
        pools = sorted({item.pool for item in report.results.items if item.key.system == name and item.pool})
        rows.append(
            [
                Cell(name, t.short(each.get("summary", ""))),
                Cell(str(label)),
                Cell(str(each.get("model", "–"))),
                Cell(", ".join(pools[:3]) + (f" and {len(pools) - 3} more" if len(pools) > 3 else "") or "–"),
                Cell(t.short(t.plain(other), 300) or "–"),
            ]
        )
    return ReportTable(["system", "strategy", "leader", "pool", "more"], rows)


def summary(report: ReportContent) -> list[str]:
    """What the results say, in a few sentences."""
    items, tasks = report.results.items, {item.key.task for item in report.results.items}
    lines = [
        f"{_s(len(report.systems), 'system')}, {_s(len(tasks), 'task')}, {_s(len(items), 'item')}. "
        f"Intervals hold {100 * report.level:g} % of the draws of a bootstrap over tasks."
    ]
    if broken := [item for item in items if item.error]:
        lines.append(f"{_s(len(broken), 'item')} could not begin; the first says: {t.short(broken[0].error)}.")
    if unanswered := [item for item in items if not item.error and item.stop == "model"]:
        lines.append(f"{_s(len(unanswered), 'item')} ended because a model did not answer; they count as not right.")
    lines += _leader(report)
    costs = {n: v["cost_of_pass"].value for n, v in report.values.items()}
    known = {name: cost for name, cost in costs.items() if cost is not None and math.isfinite(cost)}
    if known:
        cheapest = min(known, key=lambda name: known[name])
        lines.append(f"{cheapest} costs least per right answer: {t.number(known[cheapest], '$')}.")
    if unknown := [name for name, of in report.values.items() if of["usd"].value is None and of["usd"].unknown]:
        lines.append(f"What it costs is not known of {', '.join(unknown)}.")
    return lines


def _leader(report: ReportContent) -> list[str]:
    """Which system is right most often, if they can be compared."""
    asked = {name: {i.key.task for i in report.results.items if i.key.system == name} for name in report.systems}
    # Accuracies on different tasks say nothing about which system is better.
    if len(asked) > 1 and not set.intersection(*asked.values()):
        return ["The systems share no task, so their accuracies cannot be ranked."]
    order = sorted(report.systems, key=lambda name: -(report.values[name]["accuracy"].value or 0.0))
    best = report.values[order[0]]["accuracy"]
    shown = _whole(best, report.metric("accuracy"))
    if len(order) == 1:
        return [f"{order[0]} is right: {shown}."]
    ties = [name for name in order if report.values[name]["accuracy"].value == best.value]
    if len(ties) > 1:
        return [f"{', '.join(ties)} are right equally often: {shown}."]
    lines = [f"{order[0]} is right most often: {shown}."]
    if gap := _gap(report, order[0], order[1]):
        lines.append(gap)
    if len({frozenset(tasks) for tasks in asked.values()}) > 1:
        lines.append("Not all systems have the same tasks; only the pairs below compare on common ones.")
    return lines


def _gap(report: ReportContent, first: str, second: str) -> str:
    corrected = holm([each.mcnemar.p for each in report.comparisons])
    for each, p in zip(report.comparisons, corrected, strict=True):
        if {each.a, each.b} == {first, second}:
            apart = "is unlikely to be chance" if p < 0.05 else "may well be chance"
            return f"Its lead over {second} {apart} (p = {t.p_value(p)}, corrected)."
    return ""


def _said(header: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in header.items():
        if key in ("title", "systems", "version", "pools", "sets") or value in (None, "", [], {}):
            continue
        yield key, t.short(t.plain(value), 400)
    for each in header.get("sets", ()):
        yield "task set", t.short(t.plain(each), 400)


def _cell(value: Value, metric: Metric, best: float | None) -> Cell:
    more = t.interval(value, metric)
    if value.value is None and value.unknown:
        more = f"no price for {_s(value.unknown, 'item')}"
    return Cell(t.of(value, metric), more, value.value, value.value is not None and value.value == best)


def _best(report: ReportContent, metric: Metric) -> float | None:
    known = [v for of in report.values.values() if (v := of[metric.name].value) is not None]
    # A mark at the only value, or at all of them, tells nothing.
    if not metric.better or len(known) < 2 or len(set(known)) < 2:
        return None
    return max(known) if metric.better == "higher" else min(known)


def _whole(value: Value, metric: Metric) -> str:
    ends = t.interval(value, metric)
    return f"{t.of(value, metric)} ({ends})" if ends else t.of(value, metric)


def _points(difference: float | None) -> str:
    return "–" if difference is None else f"{100 * difference:+.1f} points"


def _between(gap: Difference | Value) -> str:
    return "" if gap.low is None or gap.high is None else f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}"


def _ratio(gap: Difference) -> Cell:
    return Cell("–") if gap.ratio is None else Cell(f"× {t.number(gap.ratio)}", "", gap.ratio)


def _count(count: int) -> Cell:
    return Cell(f"{count:,}", "", float(count))


def _seconds(seconds: float) -> Cell:
    return Cell(t.number(seconds, "s"), "", seconds)


def _s(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
