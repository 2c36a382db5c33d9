"""A report as one HTML page that needs nothing else: no network, no other file, no script but its own few lines.

The invariants: every text of others is escaped, and the page's policy forbids what slips through to run or to load;
without its script the page can still be read.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from importlib.resources import files

from . import _tables as tables
from ._figures import Legend, Plot, draw
from ._report import Report
from ._tables import Table
from ._texts import escaped

_LONG = frozenset({"why", "more", "value", "trace"})
_NAMES = frozenset({"system", "a", "b", "metric", "member", "task"})


def write(report: Report) -> str:
    """The whole page.

    Raises:
        UsageError: matplotlib is not installed.
    """
    plots = draw(report)
    script = files(__package__).joinpath("page.js").read_text("utf-8")
    style = files(__package__).joinpath("page.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    parts = {title: body for title, body in _sections(report, plots).items() if body}
    links = "".join(f'<a href="#{_anchor(title)}">{escaped(title)}</a>' for title in parts)
    body = "".join(
        f'<section id="{_anchor(title)}" aria-labelledby="{_anchor(title)}-h"><h2 id="{_anchor(title)}-h">'
        f"{escaped(title)}</h2>{text}</section>\n"
        for title, text in parts.items()
    )
    lead = "".join(f"<p>{escaped(line)}</p>" for line in tables.summary(report))
    notes = "".join(f'<p class="note">{escaped(note)}</p>' for note in report.results.notes)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{escaped(report.title)}</title>
<style>
{style}</style>
</head>
<body>
<div class="wrap">
<header class="top"><div><h1>{escaped(report.title)}</h1></div>
<button class="scheme" type="button">light or dark</button></header>
<div class="lead">{lead}</div>{notes}
<nav aria-label="Sections">{links}</nav>
<main>
{body}</main>
<footer>Made by concertino-bench from {escaped(", ".join(report.results.files) or "results")}. Headings of tables sort.
</footer>
</div>
<script>{script}</script>
</body>
</html>
"""


def _sections(report: Report, plots: dict[str, Plot]) -> dict[str, str]:
    def plot(name: str) -> str:
        return _figure(plots[name]) if name in plots else ""

    return {
        "Systems": _table(tables.overview(report), "Systems, what one looks at first")
        + _folded("All metrics with intervals", tables.everything(report)),
        "Worth the price": plot("pareto-usd") + plot("pareto-seconds"),
        "Pairs": _pairs(report),
        "Axes": plot("curves") + _folded("All levels as a table", tables.curves(report)),
        "Members": plot("tools")
        + _folded("All tools and agents", tables.shares(report, report.tools))
        + plot("models")
        + _folded("All models", tables.shares(report, report.models)),
        "Statuses": plot("statuses"),
        "Time": plot("times") + plot("latency") + _folded("All members", tables.latencies(report)),
        "Failures": _failures(report),
        "What was run": _table(tables.systems(report), "Systems in detail")
        + _table(tables.conditions(report), "Conditions"),
    }


def _pairs(report: Report) -> str:
    if not report.comparisons:
        return ""
    words = (
        "Two systems on the tasks that both have. An interval that leaves out 0, or a small p, says that chance alone "
        "is a poor explanation. p tests one sample of each task; Holm's p allows for the number of pairs."
    )
    return f'<p class="caption">{words}</p>' + _table(tables.comparisons(report), "Pairs of systems")


def _failures(report: Report) -> str:
    if not report.failures:
        return ""
    words = (
        "Answers that were not right, up to five of each system: those of systems that broke first, then tasks that "
        "most others solved, then what took longest. The trace shows what happened."
    )
    return f'<p class="caption">{words}</p>' + _table(tables.failures(report), "Failures worth reading")


def _figure(plot: Plot) -> str:
    entries = "".join(_entry(entry, plot) for entry in plot.legend)
    legend = f'<ul class="legend" aria-label="Legend">{entries}</ul>' if entries else ""
    return (
        f'<figure id="plot-{plot.name}"><h3>{escaped(plot.title)}</h3>{legend}<div class="scroll">{plot.svg}</div>'
        f'<figcaption class="caption">{escaped(plot.caption)}</figcaption></figure>'
    )


def _entry(entry: Legend, plot: Plot) -> str:
    number = entry.colour % 8 + 1 if entry.colour >= 0 else 0
    if plot.name in ("curves", "times"):
        chip = f'<span class="chip{" dashed" if entry.dashed else ""}" style="border-color: var(--s{number})"></span>'
    else:
        chip = f'<span class="chip block" style="background: var(--s{number})"></span>'
    return f"<li>{chip}{escaped(entry.label)}</li>"


def _folded(title: str, table: Table) -> str:
    return f"<details><summary>{escaped(title)}</summary>{_table(table, title)}</details>" if table.rows else ""


def _table(table: Table, label: str) -> str:
    if not table.rows:
        return ""
    heads = "".join(_head(table, i) for i in range(len(table.head)))
    rows = "".join(f"<tr>{''.join(_cells(table, row))}</tr>\n" for row in table.rows)
    name = escaped(label)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table aria-label="{name}">'
        f"<thead><tr>{heads}</tr></thead><tbody>\n{rows}</tbody></table></div>"
    )


def _head(table: Table, i: int) -> str:
    note = table.notes[i] if i < len(table.notes) else ""
    title = f' title="{escaped(note)}"' if note else ""
    kind = ' class="num"' if i in table.numeric else ""
    return f'<th scope="col"{kind}{title}><button type="button">{escaped(table.head[i])}</button></th>'


def _cells(table: Table, row: Sequence[tables.Cell]) -> list[str]:
    found = []
    for i, each in enumerate(row):
        names = ["num"] if i in table.numeric else []
        names += ["best"] if each.best else []
        names += ["name"] if table.head[i] in _NAMES else []
        names += ["long"] if table.head[i] in _LONG else []
        kind = f' class="{" ".join(names)}"' if names else ""
        known = each.sort is not None and math.isfinite(each.sort)
        value = f' data-v="{each.sort!r}"' if known else ' data-v="Infinity"' if each.sort == math.inf else ""
        more = f'<span class="more">{escaped(each.more)}</span>' if each.more else ""
        found.append(f"<td{kind}{value}>{escaped(each.text)}{more}</td>")
    return found


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")
