"""Small pieces of HTML for notebooks: escaped texts, tables, a style sheet that follows the page.

Invariants: every text that goes through `escaped` is inert, whatever it holds; there is no script, no link and no file
from elsewhere; no colour is set for text, so that it has the page's own, dark or light, and what a colour says stands
there as a word too.
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .display_text import clean, one_line

MOST_CHARACTERS = 150_000
"""Size of the rows of one display; what does not fit is counted and left out."""

COLOURS = {
    "OK": "#1f9254",
    "PARSE_ERR": "#b35ac9",
    "EXEC_ERR": "#e0494f",
    "TIMEOUT": "#b97800",
    "running": "#3b82c4",
    "waiting": "#7d8590",
}
"""Of each status, and of calls that have none yet. Seen on white and on black: 3 to 1 at least."""

NO_CLASSES: Mapping[int, str] = {}

_STYLE = """<style>
.concertino{font:13px/1.45 system-ui,sans-serif;overflow-x:auto}
.concertino p{margin:2px 0;overflow-wrap:anywhere}
.concertino .text{white-space:pre-wrap;border-left:3px solid #7d8590;padding-left:8px;margin:6px 0}
.concertino .dim{opacity:.75}
.concertino table{border-collapse:collapse;margin:4px 0;font-size:12px}
.concertino table td,.concertino table th{text-align:left!important;vertical-align:top;padding:2px 10px 2px 0;
border-bottom:1px solid #7d859055;overflow-wrap:break-word;white-space:normal}
.concertino table .long{overflow-wrap:anywhere}
.concertino table .num{text-align:right!important;white-space:nowrap;font-variant-numeric:tabular-nums}
.concertino pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:4px 0;font:12px/1.4 ui-monospace,monospace;
background:none;color:inherit}
.concertino summary{cursor:pointer}
.concertino svg{display:block;color:inherit}
"""


def escaped(text: object, width: int = 0) -> str:
    """A text as HTML; on one line and cut with `…` if a width is given."""
    return html.escape(one_line(text, width) if width else clean(text))


def lines(text: object, most: int) -> str:
    """A text of several lines as HTML; what is cut off is counted."""
    whole = text if isinstance(text, str) else str(text)
    cut = f" … and {len(whole) - most:,} more characters" if len(whole) > most else ""
    return escaped(whole[:most]) + cut


def pretty(value: Any, most: int) -> str:
    """Plain JSON data as HTML of several lines; a text as it is."""
    if isinstance(value, str):
        return lines(value, most)
    return lines(json.dumps(value, indent=1, ensure_ascii=False, default=str), most)


def page(parts: Iterable[str]) -> str:
    """What a notebook shows."""
    pills = "".join(
        f".concertino .s-{name}{{border:1px solid {colour};border-left-width:5px;border-radius:3px;padding:0 5px;"
        "white-space:nowrap}\n"
        for name, colour in COLOURS.items()
    )
    return f'<div class="concertino">{_STYLE}{pills}</style>{"".join(parts)}</div>'


def pill(state: str) -> str:
    """A status, in its colour and as a word."""
    known = state if state in COLOURS else "waiting"
    return f'<span class="s-{known}">{escaped(state, 40)}</span>'


def table(titles: Sequence[str], rows: Iterable[str], columns: Mapping[int, str] = NO_CLASSES) -> str:
    """A table of rows that are HTML already. Args: as `row`."""
    head = "".join(f"<th{_class(columns.get(place))}>{escaped(title)}</th>" for place, title in enumerate(titles))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def row(cells: Sequence[str], columns: Mapping[int, str] = NO_CLASSES) -> str:
    """A row of cells that are HTML already.

    Args:
        columns: what a column holds, by its place: `num` a number, `long` a text that may be broken anywhere.
    """
    inside = "".join(f"<td{_class(columns.get(place))}>{cell}</td>" for place, cell in enumerate(cells))
    return f"<tr>{inside}</tr>"


def details(summary: str, inside: str, opened: bool = False) -> str:
    """A part that can be folded; both are HTML already."""
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>{inside}</details>"


def fitting(rows: Iterable[str], most: int) -> list[str]:
    """The first rows, at most so many and no more than fit a display."""
    kept: list[str] = []
    size = 0
    for each in rows:
        size += len(each)
        if len(kept) == most or (kept and size > MOST_CHARACTERS):
            break
        kept.append(each)
    return kept


def show(markup: str, text: str) -> None:
    """Show HTML below the cell of a notebook, or print a text where there is none."""
    ipython = sys.modules.get("IPython")
    find_shell = getattr(ipython, "get_ipython", None)
    # A shell without a kernel is a terminal, which shows no HTML.
    if find_shell is not None and getattr(find_shell(), "kernel", None) is not None:
        from importlib import import_module

        import_module("IPython.display").display({"text/html": markup, "text/plain": text}, raw=True)
        return
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(clean(text).encode(encoding, "replace").decode(encoding) + "\n")


def _class(name: str | None) -> str:
    return f' class="{name}"' if name else ""
