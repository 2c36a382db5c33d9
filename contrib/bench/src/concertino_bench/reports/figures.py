"""The plots of a report, each from the report alone. A plot is an SVG with a legend and a caption in HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from concertino import Status

from concertino_bench.metrics.correctness import accuracy
from concertino_bench.metrics.metric import Metric, by_system
from concertino_bench.metrics.shares import Share

from . import texts as t
from .canvas import INK, MUTED, PAPER, drawing, figure, series, svg
from .content import Curve, ReportContent
from .frontier import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = "osD^vPX*"
MEMBERS = 7
"""Members with a colour of their own; the others share one."""
ROWS = 14
"""Members in the plot of latencies."""


class Legend(NamedTuple):
    """An entry of a legend: a label, the number of its colour (-1: the rest), and whether its line is dashed."""

    label: str
    colour: int
    dashed: bool = False


class Plot(NamedTuple):
    """A plot.

    Attributes:
        name: unique on the page.
        title: its heading.
        svg: the picture.
        caption: how to read it.
        legend: what its colours mean.
    """

    name: str
    title: str
    svg: str
    caption: str
    legend: Sequence[Legend]


def draw(report: ReportContent) -> dict[str, Plot]:
    """All plots that the results have data for, by name.

    Raises:
        UsageError: matplotlib is not installed.
    """
    with drawing():
        plots = [
            *(_pareto(report, x) for x in ("usd", "seconds")),
            _curves(report),
            _members(report, "tools", "Tools and agents", report.tools),
            _members(report, "models", "Models", report.models),
            _statuses(report),
            _times(report),
            _latencies(report),
        ]
    return {plot.name: plot for plot in plots if plot is not None}


# -- accuracy against cost and time ----------------------------------------------------------------------------------


def _pareto(report: ReportContent, x: str) -> Plot | None:
    points = [point for point in report.points[x] if point.known]
    if not points:
        return None
    metric = report.metric(x)
    made, (axes,) = figure(4.4)
    made.subplots_adjust(left=0.07, right=0.98, top=0.97, bottom=0.12)
    _scales(axes, points, metric)
    frontier = [point for point in points if point.frontier]
    if len(frontier) > 1:
        at = [(_x(point), _y(point)) for point in frontier]
        axes.plot(*zip(*at, strict=True), color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
    tips: list[str] = []
    for point in points:
        number = report.systems.index(point.system)
        _cross(axes, point, series(number))
        fill = series(number) if point.frontier else PAPER
        mark = axes.scatter(
            [_x(point)],
            [_y(point)],
            s=70,
            marker=MARKS[number % len(MARKS)],
            facecolor=fill,
            edgecolor=series(number),
            linewidth=1.8,
            zorder=4,
        )
        mark.set_gid(f"tip-{len(tips)}")
        tips.append(_said(point, metric))
    unknown = [point.system for point in report.points[x] if not point.known]
    caption = (
        "Filled marks are on the frontier: no other system is as good in both and better in one. Crosses are the "
        f"intervals ({100 * report.level:g} %)."
    )
    if unknown:
        caption += f" Not shown, because the value is not known: {', '.join(unknown)}."
    title = f"Accuracy against {'cost' if x == 'usd' else 'time'}"
    legend = [Legend(point.system, report.systems.index(point.system)) for point in points]
    return Plot(f"pareto-{x}", title, svg(made, f"pareto-{x}", title, "; ".join(tips), tips), caption, legend)


def _scales(axes: Axes, points: Sequence[Point], metric: Metric) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    values = [_x(point) for point in points]
    ends = [end for point in points for end in (point.x.low, point.x.high, point.x.value) if end is not None]
    # On a linear scale a wide range would push all cheap systems into one corner.
    if min(ends) > 0 and max(values) > 5 * min(values):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(min(ends) / 1.25, max(ends) * 1.6)
    else:
        span = (max(ends) - min(ends)) or max(ends) or 1.0
        axes.set_xlim(max(0.0, min(ends) - 0.08 * span), max(ends) + 0.2 * span)
    heights = [end for point in points for end in (point.y.low, point.y.high, point.y.value) if end is not None]
    axes.set_ylim(max(-0.01, min(heights) - 0.05), min(1.01, max(heights) + 0.06))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: t.tick(value, metric.unit)))
    axes.yaxis.set_major_formatter(FuncFormatter(_percent))
    axes.set_xlabel(metric.unit if metric.title in metric.unit else f"{metric.title}, {metric.unit}")
    axes.set_ylabel("accuracy")


def _cross(axes: Axes, point: Point, colour: str) -> None:
    line = partial(axes.plot, color=colour, linewidth=1.4, alpha=0.55, zorder=2)
    if point.x.low is not None and point.x.high is not None:
        line([point.x.low, point.x.high], [_y(point)] * 2)
    if point.y.low is not None and point.y.high is not None:
        line([_x(point)] * 2, [point.y.low, point.y.high])


def _said(point: Point, metric: Metric) -> str:
    ends = f" ({t.interval(point.y, accuracy)})" if point.y.low is not None else ""
    where = "on the frontier" if point.frontier else f"beaten by {', '.join(point.beaten_by)}"
    return f"{point.system}: {t.of(point.y, accuracy)}{ends} at {t.of(point.x, metric)} per run, {where}"


def _x(point: Point) -> float:
    return point.x.value or 0.0


def _y(point: Point) -> float:
    return point.y.value or 0.0


# -- curves ----------------------------------------------------------------------------------------------------------


def _curves(report: ReportContent) -> Plot | None:
    if not report.curves:
        return None
    columns = min(3, len(report.curves))
    rows = -(-len(report.curves) // columns)
    made, panels = figure(0.5 + 2.5 * rows, rows, columns)
    made.subplots_adjust(
        left=0.06,
        right=0.99,
        top=1 - 0.3 / (0.5 + 2.5 * rows),
        bottom=0.45 / (0.5 + 2.5 * rows),
        wspace=0.08,
        hspace=0.42,
    )
    tips: list[str] = []
    for axes, (axis, of) in zip(panels, report.curves.items(), strict=False):
        levels = sorted({level for curve in of.values() for level, _ in curve})
        for name, curve in of.items():
            _curve(axes, report, name, curve, levels, tips)
        axes.set_title(t.short(axis, 40))
        axes.set_xticks(levels)
        axes.set_xlabel("level")
        _share_axis(axes)
    for axes in panels[len(report.curves) :]:
        axes.set_axis_off()
    caption = (
        "One panel per axis; a level says how much of it. Solid: several agents or models (MAS); dashed: a single "
        "one (SAS). Bars "
        f"are intervals ({100 * report.level:g} %), moved sideways so that they can be told apart."
    )
    legend = [Legend(name, i, name not in report.several) for i, name in enumerate(report.systems)]
    words = f"Accuracy by level on {', '.join(report.curves)}; the table below has the numbers."
    title = "Accuracy by axis and level"
    return Plot("curves", title, svg(made, "curves", title, words, tips), caption, legend)


def _curve(axes: Axes, report: ReportContent, name: str, curve: Curve, levels: Sequence[int], tips: list[str]) -> None:
    number, count = report.systems.index(name), len(report.systems)
    step = min((b - a for a, b in pairwise(levels)), default=1)
    # Sideways by system: intervals at one level would lie on top of each other.
    shift = (number - (count - 1) / 2) * step * min(0.08, 0.5 / count)
    xs = [level + shift for level, _ in curve]
    ys = [value.value or 0.0 for _, value in curve]
    style = "-" if name in report.several else (0, (4, 2))
    axes.plot(xs, ys, color=series(number), linestyle=style, linewidth=1.6, zorder=3)
    for x, y, (level, value) in zip(xs, ys, curve, strict=True):
        if value.low is not None and value.high is not None:
            axes.plot([x, x], [value.low, value.high], color=series(number), linewidth=1.1, alpha=0.45, zorder=2)
        mark = axes.scatter([x], [y], s=16, marker=MARKS[number % len(MARKS)], color=series(number), zorder=4)
        mark.set_gid(f"tip-{len(tips)}")
        ends = f" ({t.interval(value, accuracy)})" if value.low is not None else ""
        tips.append(f"{name}, level {level}: {t.of(value, accuracy)}{ends}, {value.tasks} tasks")


# -- shares ----------------------------------------------------------------------------------------------------------


def _members(report: ReportContent, name: str, title: str, of: Mapping[str, Mapping[str, Share]]) -> Plot | None:
    calls: dict[str, int] = {}
    for shares in of.values():
        for member, share in shares.items():
            calls[member] = calls.get(member, 0) + share.calls
    if not sum(calls.values()):
        return None
    order = sorted(calls, key=lambda member: (-calls[member], member))
    # One more is shown by name: "1 others" would take the same room.
    shown = order if len(order) <= MEMBERS + 1 else order[:MEMBERS]
    rest = len(order) - len(shown)
    rows = {}
    for system, shares in of.items():
        parts = {member: shares[member].share if member in shares else 0.0 for member in shown}
        if rest:
            parts[f"{rest} others"] = max(0.0, sum(s.share for s in shares.values()) - sum(parts.values()))
        rows[system] = parts
    legend = [Legend(member, i) for i, member in enumerate(shown)]
    legend += [Legend(f"{rest} others", -1)] if rest else []
    counts = {system: sum(share.calls for share in shares.values()) for system, shares in of.items()}
    words = "Share of the calls of each system; at the end of a bar, how many calls."
    return _stacked(name, f"{title}: who is called", rows, counts, legend, words)


def _statuses(report: ReportContent) -> Plot | None:
    counts = {
        name: sum(sum(item.statuses.values()) for item in items)
        for name, items in by_system(report.results.items).items()
    }
    if not sum(counts.values()):
        return None
    colours = {Status.OK: 2, Status.PARSE_ERR: 4, Status.EXEC_ERR: 1, Status.TIMEOUT: 3}
    known = [status.value for status in Status]
    more = sorted({each for of in report.statuses.values() for each in of} - set(known))
    legend = [Legend(status.value, colours[status]) for status in Status] + [Legend(each, -1) for each in more]
    rows = {name: {entry.label: of.get(entry.label, 0.0) for entry in legend} for name, of in report.statuses.items()}
    words = "Statuses of the orchestrator's calls; at the end of a bar, how many calls."
    return _stacked("statuses", "Status of calls", rows, counts, legend, words)


def _stacked(
    name: str,
    title: str,
    rows: Mapping[str, Mapping[str, float]],
    counts: Mapping[str, int],
    legend: Sequence[Legend],
    caption: str,
) -> Plot:
    made, (axes,) = figure(0.5 + 0.36 * len(rows))
    height = made.get_size_inches()[1]
    made.subplots_adjust(left=0.2, right=0.93, top=1 - 0.05 / height, bottom=0.32 / height)
    tips: list[str] = []
    for y, (system, parts) in enumerate(rows.items()):
        left = 0.0
        for entry, share in zip(legend, parts.values(), strict=True):
            if share <= 0:
                continue
            (bar,) = axes.barh(
                y, share, left=left, height=0.7, color=series(entry.colour), edgecolor=PAPER, linewidth=1
            )
            bar.set_gid(f"tip-{len(tips)}")
            tips.append(f"{system}, {entry.label}: {t.number(share, 'share')}")
            # In narrower parts the text would not fit.
            if share >= 0.07:
                axes.text(
                    left + share / 2, y, f"{100 * share:.0f} %", ha="center", va="center", color=PAPER, fontsize=8
                )
            left += share
        axes.text(1.01, y, f"{counts.get(system, 0):,}", ha="left", va="center", color=MUTED, fontsize=8)
    axes.set_yticks(range(len(rows)), [t.short(system, 26) for system in rows])
    axes.tick_params(axis="y", labelcolor=INK)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.grid(visible=False, axis="y")
    from matplotlib.ticker import FuncFormatter

    axes.xaxis.set_major_formatter(FuncFormatter(_percent))
    axes.spines["left"].set_visible(False)
    return Plot(name, title, svg(made, name, title, "; ".join(tips), tips), caption, legend)


# -- time ------------------------------------------------------------------------------------------------------------


def _times(report: ReportContent) -> Plot | None:
    import numpy as np

    # A logarithmic axis has no 0, which replayed runs may take.
    of = {name: [max(s, 1e-6) for s in seconds] for name, seconds in report.times.items() if seconds}
    if not of:
        return None
    made, (axes,) = figure(3.4)
    made.subplots_adjust(left=0.07, right=0.98, top=0.97, bottom=0.15)
    tips: list[str] = []
    for name, seconds in of.items():
        number = report.systems.index(name)
        at = np.percentile(seconds, range(101))
        (line,) = axes.plot(at, [p / 100 for p in range(101)], color=series(number), linewidth=1.8)
        line.set_gid(f"tip-{len(tips)}")
        tips.append(f"{name}: half of its runs within {t.number(at[50], 's')}, 90 % within {t.number(at[90], 's')}")
    _time_axis(axes, [seconds[0] for seconds in of.values()], [seconds[-1] for seconds in of.values()])
    _share_axis(axes)
    axes.set_xlabel("wall time of a run")
    axes.set_ylabel("share of runs within")
    caption = "How many of a system's runs were done within a time. Further left is quicker; steep is steady."
    legend = [Legend(name, report.systems.index(name)) for name in of]
    title = "How long runs take"
    return Plot("times", title, svg(made, "times", title, "; ".join(tips), tips), caption, legend)


def _latencies(report: ReportContent) -> Plot | None:
    of = {name: each for name, each in list(report.latency.items())[:ROWS] if each.longest > 0}
    if not of:
        return None
    made, (axes,) = figure(0.6 + 0.3 * len(of))
    height = made.get_size_inches()[1]
    made.subplots_adjust(left=0.2, right=0.98, top=1 - 0.05 / height, bottom=0.42 / height)
    tips: list[str] = []
    for y, (name, each) in enumerate(of.items()):
        low = [max(s, 1e-6) for s in (each.p5, each.p25, each.p50, each.p75, each.p95)]
        colour = series({"model": 0, "agent": 1}.get(each.kind, 2))
        axes.plot([low[0], low[4]], [y, y], color=colour, linewidth=1.4, alpha=0.6)
        axes.plot([low[1], low[3]], [y, y], color=colour, linewidth=6, alpha=0.6, solid_capstyle="butt")
        mark = axes.scatter([low[2]], [y], s=34, color=colour, edgecolor=PAPER, linewidth=1, zorder=4)
        mark.set_gid(f"tip-{len(tips)}")
        tips.append(
            f"{name}: median {t.number(each.p50, 's')}, 95 % within {t.number(each.p95, 's')}, {each.calls} calls"
        )
    axes.set_yticks(range(len(of)), [t.short(name, 26) for name in of])
    axes.tick_params(axis="y", labelcolor=INK)
    axes.set_ylim(len(of) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    _time_axis(axes, [max(each.p5, 1e-6) for each in of.values()], [each.p95 for each in of.values()])
    axes.set_xlabel("time of a call")
    left_out = len(report.latency) - len(of)
    caption = "Calls of all systems: point median, thick line the middle half, thin line from 5 % to 95 %."
    caption += f" The table has {left_out} more." if left_out else ""
    legend = [
        Legend(kind, number)
        for number, kind in enumerate(("model", "agent", "tool"))
        if any((each.kind if each.kind in ("model", "agent") else "tool") == kind for each in of.values())
    ]
    title = "How long members take"
    return Plot("latency", title, svg(made, "latency", title, "; ".join(tips), tips), caption, legend)


def _time_axis(axes: Axes, lows: Sequence[float], highs: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if max(highs) > 5 * min(lows):
        axes.set_xscale("log")
        wide = max(highs) > 1e3 * min(lows)
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: t.tick(value, "s")))


def _share_axis(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.set_ylim(-0.02, 1.02)
    axes.yaxis.set_major_formatter(FuncFormatter(_percent))


def _percent(value: float, _: int | None = None) -> str:
    return f"{100 * value:.0f} %"
