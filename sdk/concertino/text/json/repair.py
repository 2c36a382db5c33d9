"""The structure of almost-JSON: objects and arrays, their separators and their limits.

A recursive reader over the tokens of `tokens.py`. It keeps going only where one continuation is possible:
a comma may be missing between two complete members, or stand too many before a closing bracket; everything
else that is out of place is refused there. The recursion is bounded by `MAX_DEPTH`, every character is read
a bounded number of times, and nothing is ever closed on the model's behalf.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from .errors import quoted
from .limits import MAX_DEPTH
from .problems import duplicate_key, too_deep
from .tokens import CLOSING_QUOTE, TokenReader

_NOT_A_KEY = frozenset({"true", "false", "null", "True", "False", "None", "NaN", "Infinity", "undefined"})
# Behind a number, `7//2` and `7 // 2` may be a division, and ` 000` the rest of a grouped number.
_DIVISION = re.compile(r"//|[ \t]++//[ \t]*[-+(]?[0-9]")
_DIGIT_GROUP = re.compile(r"[0-9]{3}(?![0-9])")


class AlmostJsonReader(TokenReader):
    """Reads one value at a position of the text."""

    __slots__ = ()

    def value(self, start: int, depth: int = 1) -> tuple[Any, int]:
        """Read the value whose first character stands at `start`; answer it and the position behind."""
        char = self.text[start : start + 1]
        if char == "{":
            return self._object(start, depth)
        if char == "[":
            return self._array(start, depth)
        if char in CLOSING_QUOTE:
            return self.string(start)
        if char and char in "-+.0123456789":
            return self.number(start)
        return self.literal(start)

    def _object(self, start: int, depth: int) -> tuple[dict[str, Any], int]:
        if depth > MAX_DEPTH:
            raise too_deep(self.text, start)
        members: dict[str, Any] = {}
        position = self.skip(start + 1)
        while self.text[position : position + 1] != "}":
            key_at = position
            key, position = self._key(position, start)
            if key in members:
                self.refuse(duplicate_key(key), key_at, "duplicate-key")
            position = self.skip(position)
            if self.text[position : position + 1] != ":":
                self._unexpected(position, start, f"a colon after the key {quoted(key)}")
            position = self._not_at_end(self.skip(position + 1), start)
            members[key], position = self.value(position, depth + 1)
            position = self._separator(position, start, "}")
        return members, position + 1

    def _array(self, start: int, depth: int) -> tuple[list[Any], int]:
        if depth > MAX_DEPTH:
            raise too_deep(self.text, start)
        items: list[Any] = []
        position = self.skip(start + 1)
        while self.text[position : position + 1] != "]":
            item, position = self.value(self._not_at_end(position, start), depth + 1)
            items.append(item)
            position = self._separator(position, start, "]")
        return items, position + 1

    def _key(self, position: int, opened_at: int) -> tuple[str, int]:
        char = self.text[self._not_at_end(position, opened_at)]
        if char in CLOSING_QUOTE:
            return self.string(position)
        word = self.word(position)
        if not word or word in _NOT_A_KEY:
            self._unexpected(position, opened_at, "a quoted key or }")
        self.repairs.add("bare-key")
        return word, position + len(word)

    def _separator(self, position: int, opened_at: int, closing: str) -> int:
        """Go from the end of a member to the start of the next one or to the closing bracket."""
        # `skip` would take `//2` for a comment, and the call would run with half of a calculation.
        if self.text[position - 1].isdigit() and _DIVISION.match(self.text, position):
            self.refuse("this looks like a calculation; write its result as a number.", position)
        start = self.skip(position)
        char = self.text[start : start + 1]
        if char == ",":
            following = self.skip(start + 1)
            if self.text[following : following + 1] == closing:
                self.repairs.add("trailing-comma")
            return following
        if char == closing:
            return start
        if not self._only_comma_missing(position, start, closing):
            self._unexpected(start, opened_at, f"a comma or {closing}")
        self.repairs.add("missing-comma")
        return start

    def _only_comma_missing(self, end: int, start: int, closing: str) -> bool:
        """Whether the member that ends at `end` and what starts at `start` can only be two members."""
        last, char = self.text[end - 1], self.text[start : start + 1]
        if not char or (start == end and last != "}"):
            return False
        if closing == "}":
            return char in "\"'"
        if char in CLOSING_QUOTE:
            # Python joins 'a' 'b' into one string; between double quotes in an array nobody means that.
            return last not in "'”" and char == '"'
        if char.isdigit():
            return not (last.isdigit() and _DIGIT_GROUP.match(self.text, start))
        return char in "{[" or self.word(start) in _NOT_A_KEY

    def _not_at_end(self, position: int, opened_at: int) -> int:
        if position >= len(self.text):
            self.refuse_end("object" if self.text[opened_at] == "{" else "array", opened_at)
        return position

    def _unexpected(self, position: int, opened_at: int, expected: str) -> NoReturn:
        found = self.text[self._not_at_end(position, opened_at)]
        self.refuse(f"found {quoted(found)} where {expected} belongs; write strict JSON.", position)
