"""The live view of a run: finished rounds scroll up, the present round and the totals stay at the bottom.

It draws ten times a second while `tick` is called, from one thread, so a view never shows half of a change. Nothing
that goes wrong here may end a run: the driver guards it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from concertino.traces.board import Board

from .guard_checks import CHECK_COLOURS, tell_check
from .output import STATUS_COLOURS, clean, one_line, show_money
from .rounds import render_round
from .terminal import console as make_console
from .written import Written

if TYPE_CHECKING:
    from rich.console import Console

_INTERVAL = 0.08
_LINES = 6
"""Lines of an answer that is being written."""


class LiveView:
    """Shows a board while it changes. Use it as a context manager."""

    def __init__(self, board: Board, console: Console | None = None) -> None:
        self._board = board
        self._console = console or make_console()
        # Without automatic refresh: its thread would draw a board that the run is just changing.
        self._live = Live(console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._printed = 0
        self._written = Written()
        self._thinking = Spinner("dots", style="cyan")
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.update(Text(""))
        for chapter in self._board.chapters[self._printed :]:
            self._print(render_round(self._board, chapter, self._console.width, nested=False))
        self._live.stop()

    def show(self, record: Mapping[str, Any]) -> None:
        """Take note of a record that the board has just taken."""
        board = self._board
        if record["t"] == "text":
            self._written.apply(record)
            self.tick()
            return
        if record["t"] == "run":
            self._print(Text(f"run {clean(board.run_id)}", style="dim"))
            self._print(Padding(Text(one_line(board.question, 2 * self._console.width - 4)), (0, 0, 1, 0)))
        if record["t"] == "result" and (check := board.checks.get(record["id"])) is not None:
            # Quiet: those that let pass are counted in the summary.
            if check.verdict != "passed":
                self._print(Text(f"guard {tell_check(check)}", style=CHECK_COLOURS.get(check.verdict, "")))
            return
        # In order: a later round must not scroll up before an earlier one is over.
        while len(board.chapters) > self._printed and board.chapters[self._printed].over:
            self._print(render_round(board, board.chapters[self._printed], self._console.width, nested=False))
            self._printed += 1
        self.tick()

    def tick(self) -> None:
        """Draw again, unless that was done a moment ago."""
        if time.monotonic() - self._drawn >= _INTERVAL:
            self._live.update(self._render(), refresh=True)
            self._drawn = time.monotonic()

    def _print(self, renderable: RenderableType) -> None:
        self._live.console.print(renderable)

    def _render(self) -> RenderableType:
        board, width = self._board, self._console.width
        # The totals stay in sight: a round of many calls is shown in part, without the calls inside agents.
        lines = max(4, (self._console.height - len(list(board.limits())) - 6) // 2)
        parts: list[RenderableType] = []
        for chapter in board.chapters[self._printed :]:
            inside = sum(len(row.rows) for row in chapter.rows)
            nested = len(chapter.rows) + inside <= lines
            parts.append(render_round(board, chapter, width, nested=nested, limit=lines))
        asking = board.asking
        if asking is not None and asking.under_way:
            text = f"{clean(asking.role)} {clean(asking.model)} is thinking, {board.now() - asking.started:.1f} s"
            self._thinking.update(text=Text(text, style="cyan"))
            parts.append(self._thinking)
            if tail := self._written.tail(max(8, width - 2), _LINES):
                parts.append(Padding(Text(tail, style="" if self._written.answer else "dim"), (0, 0, 0, 2)))
        parts += [self._limits(), self._totals()]
        return Group(*parts)

    def _limits(self) -> RenderableType:
        """What is used of each limit of the budget."""
        limits = list(self._board.limits())
        table = Table.grid(padding=(0, 1))
        for name, used, limit in limits:
            left = max(0.0, limit - used)
            colour = "red" if left <= 0.1 * limit else "green"
            bar = ProgressBar(total=limit or 1, completed=left, width=20, complete_style=colour, finished_style=colour)
            figures = f"{show_money(left)} of {show_money(limit)}" if name == "usd" else f"{left:,.0f} of {limit:,g}"
            table.add_row(Text(name, style="dim"), bar, Text(f"{figures} left", style="dim"))
        return table if limits else Text("", end="")

    def _totals(self) -> Text:
        board, usage = self._board, self._board.usage
        text = Text(f"{board.now():5.1f} s", style="bold")
        for status, count in board.statuses().items():
            text.append(f"  {count} {status}", style=STATUS_COLOURS[status])
        running = sum(row.state == "running" for row in board.rows())
        text.append(f"  {running} running" if running else "", style="cyan")
        text.append(f"  {show_money(usage.usd)}  {usage.units:g} u  {usage.tokens:,} tokens", style="dim")
        text.truncate(self._console.width, overflow="ellipsis")
        return text
