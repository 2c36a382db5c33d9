"""`traces show`: a run told round by round while its trace is read.

The first rounds stand on the terminal long before the last ones are read, and a round that was told is forgotten but
for its numbers. Invariant: a round is told when nothing about it can follow, which is when all its calls have ended and
a later round was planned; the others are told at the end.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from concertino.traces import Trace
from concertino.traces.board import Board, Chapter, Row
from concertino.traces.records import TraceReading

from .guard_checks import write_checks
from .output import one_line
from .round_lines import RoundLines, shown_result, terminal_columns
from .summary import write_summary
from .terminal import say, say_painted

_PAUSE = 0.05
"""Seconds between two writings."""


def write_report(path: Path) -> tuple[Path, str]:
    """Print a run. Gives its trace, and what is wrong with the file.

    Raises:
        TraceError: as `Trace.load`; what was read before is printed then.
    """
    columns = terminal_columns()
    # As a result will be shown: whole ones would have to be held until their round is told.
    board = Board(lambda kind, content: shown_result(kind, content, columns))
    # A question to the model is not shown, and takes more room than all other records together.
    reading = TraceReading(path, without={"ask": ("messages",)}, hold=False, keep=max(1024, 13 * columns))
    report = _Report(board, columns)
    with _collector_at_rest():
        for record in Trace.checked(reading):
            board.apply(record)
            if not reading.place:
                say(f"run {one_line(board.run_id)}\n{board.question}\n")
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


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Without the garbage collector, which would go through all calls again and again and find nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Report:
    """Tells rounds, each once, in their order.

    Attributes:
        told: how many were told.
    """

    def __init__(self, board: Board, columns: int) -> None:
        self._board = board
        self._lines = RoundLines(board, columns, brief=True)
        self.told = 0
        self._last = 0
        self._coming = "1."
        self._waiting: list[str] = []
        self._written = 0.0
        self._changed: dict[str, int] = {}

    def tell(self, before: int | None = None) -> None:
        """Tell the rounds that come next: all of them, or those that are over before another one."""
        chapters = self._board.chapters
        while self.told < len(chapters):
            chapter = chapters[self.told]
            if before is not None and not (chapter.number < before and _is_over(chapter.rows)):
                return
            self._write(self._lines.of_round(chapter))
            self.told, self._last = self.told + 1, chapter.number
            self._coming = f"{chapter.number + 1}."
            for row in chapter.rows:
                _forget(row)

    def note(self, record: dict[str, Any]) -> None:
        """Notice what happens to a call whose round was told."""
        if record["t"] in ("intent", "result") and not record["id"].startswith(self._coming):
            number = record["id"].partition(".")[0]
            if number.isdigit() and int(number) <= self._last:
                self._changed[record["id"]] = int(number)

    def tell_changed(self) -> None:
        """Tell calls once more to which something happened after their round was told."""
        for number in sorted(set(self._changed.values())):
            rows = [self._board.row(call_id) for call_id, of in self._changed.items() if of == number]
            found = [row for row in rows if row is not None]
            begun = min((row.started for row in found), default=0.0)
            self._write(self._lines.of_round(Chapter(number, "what happened later", begun, found)))
        self._flush()

    def _write(self, lines: list[str]) -> None:
        """Print lines, those of many rounds at once if rounds come fast."""
        self._waiting += lines
        if (now := time.monotonic()) - self._written > _PAUSE:
            self._flush()
            self._written = now

    def _flush(self) -> None:
        if self._waiting:
            say_painted("\n".join(self._waiting))
            self._waiting = []


def _is_over(rows: list[Row]) -> bool:
    return all(row.state == "done" and _is_over(row.rows) for row in rows)


def _forget(row: Row) -> None:
    """Keep of a call what its numbers are made of."""
    row.arguments = row.content = None
    for inner in row.rows:
        _forget(inner)
