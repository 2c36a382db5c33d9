"""From sampled tokens to text, piece by piece: bytes of one character stay together, and stop texts end it.

Invariant: the pieces that a `Detokenizer` or a `StopScanner` gives, with its last ones, add up to the whole text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

UNREADABLE = "\ufffd"


class Detokenizer:
    """Decodes tokens as they come. A token that ends inside a character waits for the next ones."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._begin = 0  # decoding starts here: some tokens look different at the beginning of a text
        self._given = 0

    def add(self, token: int) -> str:
        """The text that is certain with one token more; may be empty."""
        self._ids.append(token)
        fresh = self._fresh()
        # The bytes of a letter are not whole yet.
        if not fresh or fresh.endswith(UNREADABLE):
            return ""
        self._begin, self._given = self._given, len(self._ids)
        return fresh

    def flush(self) -> str:
        """What has waited, unreadable bytes included."""
        fresh = self._fresh()
        self._begin, self._given = self._given, len(self._ids)
        return fresh

    def _fresh(self) -> str:
        before = self._decode(self._ids[self._begin : self._given])
        return self._decode(self._ids[self._begin :])[len(before) :]


class StopScanner:
    """Finds the first of several stop texts in a text that comes in pieces.

    Attributes:
        hit: whether one was found; nothing is given after it.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.hit = False

    def feed(self, text: str) -> str:
        """The text that is surely before any stop text."""
        if self.hit:
            return ""
        text = self._held + text
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if found:
            self.hit, self._held = True, ""
            return text[: min(found)]
        keep = max((overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def flush(self) -> str:
        """What was held back, at the end of the reply."""
        held, self._held = self._held, ""
        return held


def overlap(text: str, mark: str) -> int:
    """Characters at the end of a text that may be the beginning of a mark, the whole mark excluded."""
    for length in range(min(len(text), len(mark) - 1), 0, -1):
        if mark.startswith(text[-length:]):
            return length
    return 0
