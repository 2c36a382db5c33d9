"""`traces show`: a run told round by round while its trace is read.

The first rounds stand on the terminal long before the last ones are read, and a round that was told is forgotten but
for its numbers. Invariant: a round is told when nothing about it can follow, which is when all its calls have ended and
a later round was planned; the others are told at the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from concertino.traces import Trace
from concertino.traces.board import Board, Chapter, Row
from concertino.traces.records import TraceReading

from .guard_checks import write_checks
from .output import clean, show_arguments
from .round_lines import RoundLines, terminal_columns
from .summary import write_summary

_KEPT = 8_192
"""Characters of a result that are kept until its round is told."""


def write_report(path: Path) -> tuple[Path, str]:
    """Print a run. Gives its trace, and what is wrong with the file.

    Raises:
        TraceError: as `Trace.load`; what was read before is printed then.
    """
    board = Board(_brief)
    # A question to the model is not shown, and takes more room than all other records together.
    reading = TraceReading(path, without={"ask": ("messages",)}, hold=False)
    report = _Report(board)
    for record in Trace.checked(reading):
        board.apply(record)
        if not reading.place:
            click.echo(f"run {clean(board.run_id)}\n{clean(board.question)}\n")
        elif record["t"] == "plan":
            report.tell(before=record["round"])
        elif report.told:
            report.note(record)
    report.tell()
    report.tell_changed()
    if board.checks:
        write_checks(board)
    write_summary(board, path, listed=True)
    return path, str(reading.damage.reason) if reading.damage else ""


class _Report:
    """Tells rounds, each once, in their order.

    Attributes:
        told: how many were told.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._lines = RoundLines(board, terminal_columns())
        self.told = 0
        self._last = 0
        self._changed: dict[str, int] = {}

    def tell(self, before: int | None = None) -> None:
        """Tell the rounds that come next: all of them, or those that are over before another one."""
        chapters = self._board.chapters
        while self.told < len(chapters):
            chapter = chapters[self.told]
            if before is not None and not (chapter.number < before and _is_over(chapter.rows)):
                return
            click.echo("\n".join(self._lines.of_round(chapter)))
            self.told, self._last = self.told + 1, chapter.number
            for row in chapter.rows:
                _forget(row)

    def note(self, record: dict[str, Any]) -> None:
        """Notice what happens to a call whose round was told."""
        if record["t"] in ("intent", "result"):
            number = record["id"].partition(".")[0]
            if number.isdigit() and int(number) <= self._last:
                self._changed[record["id"]] = int(number)

    def tell_changed(self) -> None:
        """Tell calls once more to which something happened after their round was told."""
        for number in sorted(set(self._changed.values())):
            rows = [self._board.row(call_id) for call_id, of in self._changed.items() if of == number]
            found = [row for row in rows if row is not None]
            begun = min((row.started for row in found), default=0.0)
            click.echo("\n".join(self._lines.of_round(Chapter(number, "what happened later", begun, found))))


def _brief(kind: str, content: Any) -> Any:
    """As much of a result as is shown."""
    if kind == "model" and isinstance(content, dict) and "text" in content:
        content = content["text"]
    if isinstance(content, dict):
        return show_arguments(content, 4000)
    if isinstance(content, str) and len(content) > _KEPT and len(content[:_KEPT].split()) > 1:
        return content[:_KEPT] if len("".join(content[:_KEPT].split())) > _KEPT // 4 else content
    return content


def _is_over(rows: list[Row]) -> bool:
    return all(row.state == "done" and _is_over(row.rows) for row in rows)


def _forget(row: Row) -> None:
    """Keep of a call what its numbers are made of."""
    row.arguments = row.content = None
    for inner in row.rows:
        _forget(inner)
