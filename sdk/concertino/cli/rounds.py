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

from concertino.traces.board import Board, Chapter, Row

from .output import STATUS_COLOURS, counted, one_line, show_arguments, show_cost
from .row_texts import FIXED, MARKS, TIMELINE, TIMELINE_FROM, longest_name, named, reached, result_text, walk


def render_round(
    board: Board, chapter: Chapter, width: int, *, nested: bool, full: bool = False, limit: int | None = None
) -> RenderableType:
    """A round.

    Args:
        width: columns of the terminal.
        nested: whether calls inside agents are shown.
        full: whether results are shown.
        limit: how many calls are shown at most, running ones first.
    """
    now = board.now()
    title = Text(f"Round {chapter.number}", style="bold")
    calls = counted(len(chapter.rows), "call")
    title.append(f"  {calls}, from {chapter.started:.1f} s", style="dim")
    if chapter.over:
        title.append(f" to {chapter.ended:.1f} s", style="dim")
    parts: list[RenderableType] = [title]
    if chapter.thought:
        thought = one_line(chapter.thought, max(20, (width - 2) * (8 if full else 1)))
        parts.append(Padding(Text(thought, style="italic dim"), (0, 0, 0, 2)))
    rows = chapter.rows if limit is None else _most_telling(chapter.rows, limit)
    parts += _calls(chapter, rows, now, width, nested=nested, full=full)
    if len(rows) < len(chapter.rows):
        parts.append(Text(f"   and {len(chapter.rows) - len(rows)} more", style="dim"))
    return Padding(Group(*parts), (0, 0, 1, 0))


def _most_telling(rows: list[Row], limit: int) -> list[Row]:
    """At most `limit` rows, in their order: running ones, then the failed, then the others."""
    rank = {row.id: (row.state != "running", row.status in ("", "OK"), place) for place, row in enumerate(rows)}
    kept = {row.id for row in sorted(rows, key=lambda row: rank[row.id])[:limit]}
    return [row for row in rows if row.id in kept]


def _calls(
    chapter: Chapter, rows: list[Row], now: float, width: int, *, nested: bool, full: bool
) -> Iterator[RenderableType]:
    """A line per call, and below it, over the whole width, why it failed or what it gave."""
    listed = list(walk(rows, nested))
    timeline = width >= TIMELINE_FROM
    names = longest_name(listed, timeline)
    end = max(chapter.ended, now if not chapter.over else 0.0)
    room = max(16, width - names - FIXED - (TIMELINE + 1 if timeline else 0))
    for depth, row in listed:
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(width=2, justify="right")
        line.add_column(width=names, no_wrap=True, overflow="ellipsis")
        line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        line.add_column(width=9, no_wrap=True)
        line.add_column(width=8, no_wrap=True, justify="right")
        line.add_column(width=13, no_wrap=True, justify="right")
        if timeline:
            line.add_column(width=TIMELINE, no_wrap=True)
        bar = [_bar(row, chapter.started, end, now)] if timeline else []
        line.add_row(*_cells(depth, row, now, room), *bar)
        yield line
        below = _below(depth, row, 3 * width, full)
        if below is not None:
            yield Padding(below, (0, 0, 0, 5 + 2 * depth))


def _below(depth: int, row: Row, width: int, full: bool) -> Text | None:
    if row.reason and (depth == 0 or full):
        return Text(one_line(row.reason, width), style="yellow" if row.status == "TIMEOUT" else "red")
    if full and row.status == "OK":
        return Text(f"→ {one_line(result_text(row.kind, row.content), width)}", style="dim")
    return None


def _cells(depth: int, row: Row, now: float, room: int) -> list[RenderableType]:
    dim = "dim" if depth else ""
    return [
        _mark(row),
        Text(named(depth, row.name), style=dim or "bold"),
        Text(show_arguments(row.arguments, room) if row.arguments is not None else "", style="dim"),
        _status(row),
        Text(f"{row.seconds(now):.2f} s" if row.state != "waiting" else "", style=dim),
        Text(show_cost(row.usage) if row.state == "done" else "", style=dim),
    ]


def _mark(row: Row) -> RenderableType:
    if row.state == "running":
        return Spinner("dots", style="cyan")
    if row.state == "waiting":
        return Text("·", style="dim")
    return Text(MARKS.get(row.status, "?"), style=STATUS_COLOURS.get(row.status, ""))


def _status(row: Row) -> Text:
    if row.state != "done":
        retries = f"retry {row.retries}" if row.retries else one_line(row.progress, 32) or row.state
        return Text(retries, style="cyan" if row.state == "running" else "dim")
    return Text(row.status, style=STATUS_COLOURS.get(row.status, ""))


def _bar(row: Row, begin: float, end: float, now: float) -> Text:
    """When the call ran, between the begin and the end of its round."""
    if row.state == "waiting":
        return Text("")
    left, right = reached(row, begin, end, now)
    style = STATUS_COLOURS.get(row.status, "cyan")
    return Text(f"{' ' * left}{'━' * (right - left)}", style=style)
