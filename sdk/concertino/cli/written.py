"""What models are writing, before it is a reply: the answer as it comes, for a terminal.

The pieces are `text` records (`TextDelta`), which no trace holds. A piece of a later attempt, or of another request,
begins the text anew. Only the orchestrator's own requests count: what an agent's models write is not for the person.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import Any

from concertino.core.display_text import clean

from .terminal import say

_MARKUP = re.compile(r"</?[a-z_]+(>|$)")
_KEPT = 2000
"""Characters of a text that the tail is made of."""
_LETTER = 32
"""Characters of which one letter or emoji is made at most."""


class Written:
    """The text that is being written.

    Attributes:
        answer: as far as it is there.
        source: the request that it comes from, and its attempt.
    """

    def __init__(self) -> None:
        self.answer = ""
        self._other = ""
        self.source: tuple[str, int] = ("", 0)

    def apply(self, record: Mapping[str, Any]) -> bool:
        """Take a `text` record.

        Returns:
            Whether it belongs to a new text, which replaces the one before.
        """
        if "/" in record["id"]:  # a request inside a call
            return False
        source = (record["id"], record["attempt"])
        new = source != self.source
        if new:
            self.answer, self._other, self.source = "", "", source
        if record["kind"] == "answer":
            self.answer += record["text"]
        else:
            self._other = (self._other + record["text"])[-_KEPT:]
        return new

    def tail(self, width: int, lines: int) -> str:
        """The last lines of the answer, or the last line of whatever else is written."""
        if self.answer:
            wrapped = [
                row for line in clean(self.answer[-_KEPT:]).split("\n") for row in textwrap.wrap(line, width) or [""]
            ]
            return "\n".join(wrapped[-lines:])
        return " ".join(_MARKUP.sub(" ", clean(self._other)).split())[-width:]


class AnswerPrinter:
    """Writes the answer to stdout as it comes.

    Attributes:
        shown: what stands on the terminal as the answer.
    """

    def __init__(self) -> None:
        self.shown = ""
        self._written = Written()
        self._held = ""
        self._in_line = False

    def show(self, record: Mapping[str, Any]) -> None:
        """Take a `text` record."""
        new = self._written.apply(record)
        if new and self.shown:
            self.end()
            say("(written again)", error=True)
            self.shown = self._held = ""
        if record["kind"] != "answer" or "/" in record["id"]:
            return
        text = self._held + record["text"]
        end = _last_letter(text)
        self._held = text[end:]
        self._write(text[:end])
        self.shown = self._written.answer

    def _write(self, piece: str) -> None:
        if piece:
            say(piece, nl=False)
            self._in_line = not piece.endswith("\n")

    def shows(self, request: str) -> bool:
        """Whether the answer that stands there is of this request."""
        return bool(self.shown) and self._written.source[0] == request

    def end(self) -> None:
        """End the line that was begun, before anything else is written."""
        self._write(self._held.removesuffix("\r"))
        self._held = ""
        if self._in_line:
            say()
            self._in_line = False


def _last_letter(text: str) -> int:
    """Where the last letter or sign begins whose rest may come with the next piece; the end of the text if none may."""
    if text.endswith("\r"):
        return len(text) - 1  # one half of a line end
    if text.isascii() or text[-1].isascii():
        return len(text)
    from unicodedata import category

    for place in range(len(text) - 1, max(-1, len(text) - _LETTER), -1):
        # Marks, selectors, tags and joiners belong to what stands before them.
        if category(text[place])[0] not in "MC" and text[place - 1 : place] != "\u200d":
            return place
    return 0 if len(text) < _LETTER else len(text)
