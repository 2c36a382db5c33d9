"""Rounds of a finished run as lines of text: what `rounds.render_round` draws, for thousands of rounds.

A table of rich takes a millisecond a call, and a long run has tens of thousands of calls. These lines are laid out by
hand, with the same columns, cuts and colours. Invariant: without blanks at line ends, they are what rich would print.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from concertino.traces.board import Board, Chapter, Row

from .output import STATUS_COLOURS, clean, counted, one_line, show_arguments, show_cost
from .row_texts import FIXED, MARKS, TIMELINE, TIMELINE_FROM, longest_name, named, reached, result_text, walk
from .terminal import console, paint, takes_colours

# Letters of Latin script and the marks of these lines take one column each.
_NARROW = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff…→✓✗⧖·└━⠋]*")
NARROWEST = 60
"""Columns of a terminal on which the columns of a call have their widths."""
_UNFINISHED = {"running": (MARKS["running"], "cyan"), "waiting": (MARKS["waiting"], "dim")}


class RoundLines:
    """Writes rounds, with the calls inside agents and the results.

    Args:
        board: what is known of the run.
        width: columns of the terminal.
        brief: contents of the board are `shown_result` already.
    """

    def __init__(self, board: Board, width: int, *, brief: bool = False) -> None:
        self._brief = brief
        self.board = board
        self.width = width
        self._colours = takes_colours()

    def of_round(self, chapter: Chapter) -> list[str]:
        """The lines of a round."""
        if self.width < NARROWEST:
            return self._narrow(chapter)
        rows, over, ended = chapter.rows, chapter.over, chapter.ended
        until = f" to {ended:.1f} s" if over else ""
        lines = self._head(
            f"Round {chapter.number}", f"  {counted(len(rows), 'call')}, from {chapter.started:.1f} s{until}"
        )
        if chapter.thought:
            self._wrap(lines, one_line(chapter.thought, max(20, (self.width - 2) * 8)), "italic dim", 2)
        now = self.board.now()
        listed = list(walk(rows, True)) if any(row.rows for row in rows) else [(0, row) for row in rows]
        span = (chapter.started, ended if over else max(ended, now)) if self.width >= TIMELINE_FROM else None
        names = longest_name(listed, span is not None)
        for depth, row in listed:
            lines.append(self._line(depth, row, now, names, span))
            self._below(lines, depth, row)
        lines.append("")
        return lines

    def _line(self, depth: int, row: Row, now: float, names: int, span: tuple[float, float] | None) -> str:
        free = max(0, self.width - names - FIXED + 1 - (TIMELINE + 1 if span is not None else 0))
        name = named(depth, row.name)
        arguments = "" if row.arguments is None else show_arguments(row.arguments, max(16, free - 1))
        done = row.state == "done"
        seconds = f"{row.seconds(now):.2f} s" if row.state != "waiting" else ""
        cost = show_cost(row.usage) if done else ""
        mark, style = _UNFINISHED.get(row.state) or (MARKS.get(row.status, "?"), STATUS_COLOURS.get(row.status, ""))
        plain = done and span is None and not self._colours and (name + arguments).isascii()
        if plain and len(name) <= names and len(arguments) <= free and len(cost) <= 13:  # as almost all are
            return f" {mark} {name:<{names}} {arguments:<{free}} {row.status:<9} {seconds:>8} {cost:>13}"
        status, colour = self._status(row)
        dim = "dim" if depth else ""
        cells = [
            self._cell(mark, style, 2, right=True),
            self._cell(name, dim or "bold", names),
            self._cell(arguments, "dim", free),
            self._cell(status, colour, 9),
            self._cell(seconds, dim, 8, right=True),
            self._cell(cost, dim, 13, right=True),
        ]
        if span is not None:
            cells.append(self._bar(row, span, now))
        return " ".join(cells).rstrip()

    def _narrow(self, chapter: Chapter) -> list[str]:
        """The same by rich, which gives each column a share of what little room there is."""
        from .rounds import render_round

        drawn = console(width=self.width)
        with drawn.capture() as captured:
            drawn.print(render_round(self.board, chapter, self.width, nested=True, full=True))
        return captured.get().splitlines()

    def _status(self, row: Row) -> tuple[str, str]:
        if row.state == "done":
            return row.status, STATUS_COLOURS.get(row.status, "")
        told = f"retry {row.retries}" if row.retries else one_line(row.progress, 32) or row.state
        return told, "cyan" if row.state == "running" else "dim"

    def _bar(self, row: Row, span: tuple[float, float], now: float) -> str:
        if row.state == "waiting":
            return ""
        left, right = reached(row, *span, now)
        return " " * left + self._styled("━" * (right - left), STATUS_COLOURS.get(row.status, "cyan"))

    def _below(self, lines: list[str], depth: int, row: Row) -> None:
        """Why it failed, or what it gave."""
        if row.reason:
            style = "yellow" if row.status == "TIMEOUT" else "red"
            self._wrap(lines, one_line(row.reason, 3 * self.width), style, 5 + 2 * depth)
        elif row.status == "OK":
            shown = row.content if self._brief else shown_result(row.kind, row.content, self.width)
            self._wrap(lines, f"→ {shown}", "dim", 5 + 2 * depth)

    # -- laying out --------------------------------------------------------------------------------------------------

    def _cell(self, text: str, style: str, width: int, *, right: bool = False) -> str:
        """A text in a column: cut with an ellipsis, or filled up."""
        used = len(text) if text.isascii() else _columns(text)
        if used > width:
            text, used = (f"{_cut(text, width - 1)}…" if width else ""), width
        if not self._colours:
            return " " * (width - used) + text if right else text + " " * (width - used)
        blanks = " " * (width - used)
        return blanks + self._styled(text, style) if right else self._styled(text, style) + blanks

    def _head(self, title: str, times: str) -> list[str]:
        """The first line of a round; on a narrow terminal it takes more than one, and has no colours."""
        if len(title + times) <= self.width:
            return [self._styled(title, "bold") + self._styled(times, "dim")]
        lines: list[str] = []
        self._wrap(lines, title + times, "", 0)
        return lines

    def _wrap(self, lines: list[str], text: str, style: str, indent: int) -> None:
        """Add a text with single blanks, broken at blanks."""
        room, begin = max(1, self.width - indent), 0
        for end in _breaks(text, room):
            lines.append(" " * indent + self._styled(text[begin:end].rstrip(), style))
            begin = end

    def _styled(self, text: str, style: str) -> str:
        if not self._colours or not text:
            return text  # `say_painted` cleans it
        return paint(text, style) if style else clean(text)


def shown_result(kind: str, content: object, columns: int) -> str:
    """A result as it stands below its call."""
    return one_line(result_text(kind, content), 3 * columns)


def terminal_columns() -> int:
    """Columns of the terminal that a person looks at, also where stdout goes elsewhere; 80 without any."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given):
        return int(given)
    for stream in (0, 1, 2):
        try:
            if columns := os.get_terminal_size(stream).columns:
                return columns
        except (OSError, ValueError):
            continue
    return 80


def _columns(text: str) -> int:
    if _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, columns: int) -> str:
    if _NARROW.fullmatch(text):
        return text[:columns]
    from rich.cells import set_cell_size

    return set_cell_size(text, columns)


def _breaks(text: str, room: int) -> Iterator[int]:
    """Where the lines of a text end, one that has single blanks."""
    if not _NARROW.fullmatch(text):
        yield from _wide_breaks(text, room)
        return
    begin, length = 0, len(text)
    while length - begin > room:
        # Blanks at the end of a line take no room, and stay there.
        end = text.rfind(" ", begin, begin + room + 1) + 1
        if end <= begin:
            end = begin + room  # a word that is longer than a line
        while end < length and text[end] == " ":
            end += 1
        begin = end
        yield end
    yield length


def _wide_breaks(text: str, room: int) -> Iterator[int]:
    """The same of a text in which letters take two columns, or none."""
    from rich.text import Text

    end = 0
    for line in Text(text).wrap(console(width=room), room):
        end = text.index(line.plain.rstrip(), end) + len(line.plain.rstrip())
        while end < len(text) and text[end] == " ":
            end += 1
        yield end
