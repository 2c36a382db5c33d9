"""Progress on stderr: one line that is rewritten on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time

import click

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
        # Logs get their first line only after a while: a short command then writes none.
        self._last = 0.0 if self.terminal else time.monotonic()

    def show(self, text: str, *, now: bool = False) -> None:
        """Write the line if the last one is old enough, or `now`."""
        age = time.monotonic() - self._last
        if (self._quiet and not self.terminal) or (not now and age < (0.1 if self.terminal else _EVERY)):
            return
        self._last, self._begun = time.monotonic(), True
        # On stderr, so that results on stdout can be piped.
        click.echo(f"\r\x1b[K{text}" if self.terminal else text, err=True, nl=not self.terminal)

    def end(self) -> None:
        """Begin a new line after the last one."""
        if self.terminal and self._begun:
            click.echo(err=True)
