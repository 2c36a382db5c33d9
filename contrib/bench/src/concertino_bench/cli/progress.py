"""Progress on stderr: a line, maybe a table below, rewritten on a terminal; elsewhere a line now and then."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence

from concertino.cli.output import one_line
from concertino.cli.terminal import redraw, rewrite, say

_EVERY = 15.0
"""Seconds between two lines where no terminal shows one."""


class ProgressLine:
    """Where a command shows how far it is.

    Args:
        quiet: write nothing unless it is a terminal, as beside JSON.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.terminal = sys.stderr.isatty()
        self._quiet = quiet
        self._begun = False
        self._height, self._width = 1, 0
        # Logs get their first line only after a while: a short command then writes none.
        self._last = 0.0 if self.terminal else time.monotonic()

    def show(self, text: str, *, below: Sequence[str] = (), now: bool = False) -> None:
        """Write the line if the last one is old enough, or `now`.

        Args:
            below: lines of a table, on a terminal.
        """
        age = time.monotonic() - self._last
        if (self._quiet and not self.terminal) or (not now and age < (0.1 if self.terminal else _EVERY)):
            return
        self._last, self._begun = time.monotonic(), True
        # On stderr, so that results on stdout can be piped.
        if self.terminal:
            columns, rows = shutil.get_terminal_size()
            # A line that wraps cannot be written over, nor one that has left the screen.
            lines = [one_line(text, columns - 1), *(line[: columns - 1] for line in below[: max(0, rows - 2)])]
            if len(lines) == self._height == 1:
                rewrite(lines[0], self._width)
            else:
                redraw(lines, self._height)
            self._height, self._width = len(lines), len(lines[-1])
        else:
            say(text, error=True)

    def end(self) -> None:
        """Begin a new line after the last one."""
        if self.terminal and self._begun:
            say(error=True)
