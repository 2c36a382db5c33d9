"""The texts of one call on one line. `rounds` lays them out for a live view, `round_lines` for a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from concertino.traces.board import Row

from .output import one_line, show_arguments

TIMELINE_FROM = 110
"""Columns of the terminal from which on the timeline is shown."""
TIMELINE = 24
FIXED = 38
"""Columns of fixed width, and the blanks between all of them."""
MARKS = {"running": "⠋", "waiting": "·", "OK": "✓", "PARSE_ERR": "✗", "EXEC_ERR": "✗", "TIMEOUT": "⧖"}


def walk(rows: Sequence[Row], nested: bool, depth: int = 0) -> Iterator[tuple[int, Row]]:
    """The calls in their order, those inside an agent below it, with how deep they are."""
    for row in rows:
        yield depth, row
        if nested and row.rows:
            yield from walk(row.rows, nested, depth + 1)


@lru_cache(4096)
def named(depth: int, name: str) -> str:
    """The name of a call, set in by its depth."""
    name = one_line(name)
    return f"{'  ' * (depth - 1)}└ {name}" if depth else name


def longest_name(listed: Sequence[tuple[int, Row]], timeline: bool) -> int:
    """Columns of the names of these calls."""
    return min(28 if timeline else 20, max((len(named(depth, row.name)) for depth, row in listed), default=0))


def reached(row: Row, begin: float, end: float, now: float) -> tuple[int, int]:
    """From where to where in the timeline a call ran, between the begin and the end of its round."""
    # A round may be over at the moment in which it began.
    span = max(end - begin, 1e-9)
    stop = row.ended if row.state == "done" else now
    left = min(TIMELINE - 1, max(0, int((row.started - begin) / span * TIMELINE)))
    return left, min(TIMELINE, max(left + 1, round((stop - begin) / span * TIMELINE)))


def result_text(kind: str, content: object) -> str:
    """What a call of this kind gave as one text; of a model's reply, its text."""
    if kind == "model" and isinstance(content, dict):
        content = content.get("text", content)
    return show_arguments(content, 4000) if isinstance(content, dict) else str(content)
