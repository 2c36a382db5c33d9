"""Rounds of a board as rich tables: one row per call, calls inside an agent below it, times side by side.

Columns: state, call, arguments, status, seconds, cost, and where there is room a *timeline*: when each call ran
between the begin and the end of its round, so that what ran in parallel is seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ._board import Board, Chapter, Row
from ._output import STATUS_COLOURS, clean, one_line, show_arguments, show_cost

TIMELINE_FROM = 110
"""Columns of the terminal from which on the timeline is shown."""
_TIMELINE = 24
_MARKS = {"OK": "✓", "PARSE_ERR": "✗", "EXEC_ERR": "✗", "TIMEOUT": "⧖"}


def render_round(board: Board, chapter: Chapter, width: int, *, nested: bool, full: bool = False) -> RenderableType:
    """A round.

    Args:
        width: columns of the terminal.
        nested: whether calls inside agents are shown.
        full: whether results are shown.
    """
    now = board.now()
    title = Text(f"Round {chapter.number}", style="bold")
    calls = f"{len(chapter.rows)} call{'s' if len(chapter.rows) != 1 else ''}"
    title.append(f"  {calls}, from {chapter.started:.1f} s", style="dim")
    if chapter.over:
        title.append(f" to {chapter.ended:.1f} s", style="dim")
    parts: list[RenderableType] = [title]
    if chapter.thought:
        thought = one_line(chapter.thought, max(20, (width - 2) * (8 if full else 1)))
        parts.append(Padding(Text(thought, style="italic dim"), (0, 0, 0, 2)))
    parts.append(_table(chapter, now, width, nested=nested, full=full))
    return Padding(Group(*parts), (0, 0, 1, 0))


def _table(chapter: Chapter, now: float, width: int, *, nested: bool, full: bool) -> Table:
    timeline = width >= TIMELINE_FROM
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=2, justify="right")
    table.add_column(no_wrap=True, max_width=28 if timeline else 22)
    table.add_column(ratio=1, no_wrap=not full, overflow="fold" if full else "ellipsis")
    table.add_column(no_wrap=True, width=9)
    table.add_column(no_wrap=True, justify="right", width=7)
    table.add_column(no_wrap=True, justify="right", width=14)
    if timeline:
        table.add_column(no_wrap=True, width=_TIMELINE)
    end = max(chapter.ended, now if not chapter.over else 0.0)
    for depth, row in _walk(chapter.rows, nested):
        table.add_row(*_cells(depth, row, now, width), *([_bar(row, chapter.started, end, now)] if timeline else []))
        if row.reason and (depth == 0 or full):
            table.add_row("", "", Text(one_line(row.reason), style="red" if row.status != "TIMEOUT" else "yellow"))
        elif full and row.status == "OK":
            table.add_row("", "", Text(f"→ {one_line(_result(row), 4 * width)}", style="dim"))
    return table


def _walk(rows: list[Row], nested: bool, depth: int = 0) -> Iterator[tuple[int, Row]]:
    for row in rows:
        yield depth, row
        if nested:
            yield from _walk(row.rows, nested, depth + 1)


def _cells(depth: int, row: Row, now: float, width: int) -> list[RenderableType]:
    name = f"{'  ' * (depth - 1)}└ {row.name}" if depth else row.name
    dim = "dim" if depth else ""
    return [
        _mark(row),
        Text(clean(name), style=dim or "bold"),
        Text(show_arguments(row.arguments, width) if row.arguments is not None else "", style="dim"),
        _status(row),
        Text(f"{row.seconds(now):.2f} s" if row.state != "waiting" else "", style=dim),
        Text(show_cost(row.usage) if row.state == "done" else "", style=dim),
    ]


def _mark(row: Row) -> RenderableType:
    if row.state == "running":
        return Spinner("dots", style="cyan")
    if row.state == "waiting":
        return Text("·", style="dim")
    return Text(_MARKS.get(row.status, "?"), style=STATUS_COLOURS.get(row.status, ""))


def _status(row: Row) -> Text:
    if row.state != "done":
        retries = f"retry {row.retries}" if row.retries else row.state
        return Text(retries, style="cyan" if row.state == "running" else "dim")
    return Text(row.status + ("*" if row.replayed else ""), style=STATUS_COLOURS.get(row.status, ""))


def _bar(row: Row, begin: float, end: float, now: float) -> Text:
    """When the call ran, between the begin and the end of its round."""
    span = max(end - begin, 1e-9)
    if row.state == "waiting":
        return Text("")
    stop = row.ended if row.state == "done" else now
    left = min(_TIMELINE - 1, max(0, int((row.started - begin) / span * _TIMELINE)))
    right = min(_TIMELINE, max(left + 1, round((stop - begin) / span * _TIMELINE)))
    style = STATUS_COLOURS.get(row.status, "cyan")
    return Text(f"{' ' * left}{'━' * (right - left)}", style=style)


def _result(row: Row) -> str:
    """A result as one text; of a model's reply, its text."""
    content = row.content
    if row.kind == "model" and isinstance(content, dict):
        content = content.get("text", content)
    return show_arguments(content, 4000) if isinstance(content, dict) else str(content)
