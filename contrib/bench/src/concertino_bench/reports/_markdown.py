"""A report as Markdown. Every text of others is escaped: no HTML, no links, no pictures come from results."""

from __future__ import annotations

from collections.abc import Iterator

from . import _tables as tables
from ._report import Report
from ._tables import Cell, Table
from ._texts import cell


def write(report: Report) -> str:
    """The whole text."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {cell(report.title)}"
    yield ""
    for line in tables.summary(report):
        yield f"{cell(line)}"
    yield ""
    for note in report.results.notes:
        yield f"- Note: {cell(note)}"
    sections = {
        "Systems": tables.overview(report),
        "Pairs": tables.comparisons(report),
        "All metrics": tables.everything(report),
        "Accuracy by axis and level": tables.curves(report),
        "Tools and agents": tables.shares(report, report.tools),
        "Models": tables.shares(report, report.models),
        "Latency of members": tables.latencies(report),
        "Failures worth reading": tables.failures(report),
        "Systems in detail": tables.systems(report),
        "What was run": tables.conditions(report),
    }
    for title, table in sections.items():
        if table.rows:
            yield from ("", f"## {title}", "")
            yield from _frontier(report) if title == "Systems" else ()
            yield from _table(table)


def _frontier(report: Report) -> Iterator[str]:
    for x, points in report.points.items():
        names = [cell(point.system) for point in points if point.frontier]
        if names:
            yield f"On the frontier of accuracy against {cell(report.metric(x).title)}: {', '.join(names)}."
            yield ""


def _table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(cell(head) for head in table.head)} |"
    yield f"|{'|'.join('---:' if i in table.numeric else '---' for i in range(len(table.head)))}|"
    for row in table.rows:
        yield f"| {' | '.join(_cell(each) for each in row)} |"


def _cell(each: Cell) -> str:
    text = cell(each.text)
    text = f"**{text}**" if each.best and text else text
    return f"{text} ({cell(each.more)})" if each.more else text
