"""Whether a JSON text that comes in pieces is complete, each piece looked at once.

Invariant: `complete` says what parsing all pieces together would say, but never parses the same sign of an object, a
list or a text twice. A number or a word is parsed anew with each piece, and only while it is short.
"""

from __future__ import annotations

import json
import re

_SHORT = 64
"""Characters of the longest number or word that is taken for complete."""
_BLANK = " \t\n\r"
_IN_TEXT = re.compile(r'[^"\\]+')
_OUTSIDE = re.compile(r'[^"\[\]{}]+')


class JsonEnd:
    """Follows one text."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._kind = ""  # the first sign, which is not blank
        self._depth = 0
        self._in_text = self._escaped = False
        self._closed = False  # the value has ended; what follows may only be blank
        self._valid = False

    @property
    def complete(self) -> bool:
        """Whether the text so far is a whole JSON value."""
        return self._valid

    def feed(self, piece: str) -> None:
        """Take the next piece."""
        if self._closed:
            self._valid = self._valid and not piece.strip(_BLANK)
            return
        if not self._kind:
            piece = piece.lstrip(_BLANK)
            self._kind = piece[:1]
        if not piece:
            return
        self._parts.append(piece)
        if self._kind in '{["':
            end = self._end_in(piece)
            if end:
                self._close(piece, end)
        elif self._valid or len(self._parts) <= _SHORT:
            text = "".join(self._parts)
            self._valid = len(text) <= _SHORT and _is_json(text)

    def _close(self, piece: str, end: int) -> None:
        """The value ends inside of a piece: parse it, this once."""
        self._closed = True
        self._parts[-1] = piece[:end]
        self._valid = not piece[end:].strip(_BLANK) and _is_json("".join(self._parts))
        self._parts.clear()

    def _end_in(self, piece: str) -> int:
        """Where the value ends in a piece; 0 where it goes on."""
        place = 0
        while place < len(piece):
            if self._escaped:
                self._escaped, place = False, place + 1
                continue
            plain = (_IN_TEXT if self._in_text else _OUTSIDE).match(piece, place)
            place = plain.end() if plain else place
            if place == len(piece):
                break
            sign, place = piece[place], place + 1
            if sign == "\\":
                self._escaped = True
            elif sign == '"':
                self._in_text = not self._in_text
            else:
                self._depth += 1 if sign in "[{" else -1
            if not self._depth and not self._in_text and sign != "\\":
                return place
        return 0


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
