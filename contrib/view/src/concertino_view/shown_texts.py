"""Texts of a run as the page shows them: without secrets, without characters that nobody sees, and of bounded length.

Invariant: every text of a trace that leaves this distribution has passed here. The page itself makes no HTML of it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from concertino.core.display_text import clean, one_line, show_arguments
from concertino.core.redaction import DisplayRedactor

LONGEST = 20_000
"""Characters of one text; what is cut off is counted."""
_LINE = 140
"""Characters of a text in a list."""


def fault_of(error: Exception, trace: Path) -> str:
    """What is wrong with a trace, without the folder that it is in: who looks at a run may not know this machine."""
    return str(error).replace(f"{trace.parent}{os.sep}", "")


class ShownTexts:
    """Makes texts safe to show. One is enough for a whole run."""

    def __init__(self) -> None:
        self._whole = DisplayRedactor(LONGEST)
        self._brief = DisplayRedactor(8 * _LINE)

    def text(self, value: Any) -> str:
        """A text, or plain JSON data as text of several lines."""
        if not isinstance(value, str):
            value = json.dumps(self._whole.value(value), indent=1, ensure_ascii=False, default=str)
        # Cut to one character more, so that the redactor says with its dots that something is missing.
        shown = clean(self._whole.text(value[: LONGEST + 1]))
        more = len(value) - LONGEST
        return shown if more <= 0 else f"{shown.rstrip('…')}\n… and {more:,} more characters"

    def shows_all_of(self, value: Any) -> bool:
        """Whether nothing of plain JSON data is hidden or cut."""
        return bool(self._whole.value(value) == value)

    def line(self, value: Any) -> str:
        """The begin of a text, on one line."""
        return one_line(self._brief.text(value if isinstance(value, str) else str(value)), _LINE)

    def arguments(self, value: Any) -> str:
        """The begin of arguments, on one line."""
        if isinstance(value, dict):
            return show_arguments(self._brief.value(value), _LINE)
        return "" if value is None else self.line(value)
