"""One line on stderr that is rewritten during long work.

Invariant: stdout stays clean, and if stderr is not a terminal, nothing is overwritten.
"""

from __future__ import annotations

import shutil
import sys
import time

from concertino.core.display_text import one_line

from .terminal import rewrite

_INTERVAL = 0.1


class StatusLine:
    """A line that shows how far something is; on a terminal alone. `end` leaves it clear."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self._drawn = 0.0
        self._width = 0

    def show(self, text: str) -> None:
        """Write the line, if there is a terminal and the last one is a tenth of a second old."""
        if not self.terminal or time.monotonic() - self._drawn < _INTERVAL:
            return
        # A line that wraps cannot be overwritten by `\r`.
        text = one_line(text, shutil.get_terminal_size().columns - 1)
        # Padded to the last width, so that nothing of a longer line stays.
        rewrite(text, self._width)
        self._width, self._drawn = len(text), time.monotonic()

    def end(self) -> None:
        """Leave the line clear."""
        if self._width:
            rewrite("", self._width)
            self._width = 0
