"""The page of the reference about metrics, made from their definitions."""

from __future__ import annotations

from . import GROUPS, METRICS

_HEAD = """\
# Metrics

Every metric is computed from the items of one system, `metric(items)`, and gives a `Value`: the value, how many tasks
it rests on, and how many items could not be used (`missing`, of which `unknown` for want of a price).
`intervals(items, metrics)` adds an interval: tasks are drawn with replacement 2,000 times, each with all of its
samples, and the interval holds the middle 95 % of the results. `compare(items, a, b, metrics)` compares two systems on
the tasks that both have.

Not known is not zero: money is unknown as soon as the price of one request is, and then the value is None. A system
that could not begin a task is not right, and is missing wherever consumption is measured. Where a metric is *strict*,
one item with an unknown price makes the value unknown; the others are of the items that are left.
"""


def reference_page() -> str:
    """The text of `docs/reference/metrics.md`, as Markdown."""
    lines = [_HEAD]
    for group, names in GROUPS.items():
        lines += [f"## {group}", "", "| Metric | Unit | Better | Source |", "|---|---|---|---|"]
        for name in names:
            metric = METRICS[name]
            cells = (f"[`{name}`](#{_anchor(name)})", metric.unit, metric.better or "neither", metric.source)
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        lines.append("")
        for name in names:
            lines += _section(name)
    return "\n".join(lines).rstrip() + "\n"


def _section(name: str) -> list[str]:
    metric = METRICS[name]
    strict = "; strict" if metric.strict else ""
    return [
        f"### `{name}` {{ #{_anchor(name)} }}",
        "",
        metric.summary,
        "",
        f"- Formula: {metric.formula}",
        f"- Unit: {metric.unit}. Range: {metric.within}. Better: {metric.better or 'neither'}{strict}.",
        f"- Source: {metric.source}",
        f"- In Python: `{metric.use}`",
        "",
    ]


def _anchor(name: str) -> str:
    return name.replace("@", "-at-").replace("_", "-")
