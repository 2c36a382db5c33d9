"""The channels of a text: thoughts, what the reader is to see, and calls that the server did not read.

Some servers pass on everything that the model writes. Then thoughts are at the beginning, between `<think>` and
`</think>`, and calls are in `<tool_call>` blocks. Blank space between the channels belongs to none of them.

Invariant: the result depends on the text alone, never on how it was cut into pieces; and what was shown once is
never taken back. So a piece that may be the beginning of a tag is held until that is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from concertino_openai.dialects import ThinkStyle

_THINK, _UNTHINK, _CALL = "<think>", "</think>", "<tool_call>"


class Channels:
    """Splits a text into its channels as it arrives.

    Args:
        think: how thoughts are marked.
        calls: the text may hold calls, because tools were offered.
        stops: texts that end the reply and that the server leaves in it.
    """

    def __init__(self, think: ThinkStyle, calls: bool, stops: Sequence[str] = ()) -> None:
        self._calls = calls
        self._stops = stops
        self._held = ""  # may yet be part of a tag, or blank space before one
        self._blanks: list[str] = []  # more of it; joined once, or a long row would be copied with each piece
        self._lead = False  # thoughts came before: blank space at the beginning is dropped
        self._step = {"tags": self._start, "open": self._think, "off": self._text}[think]
        self.thoughts: list[str] = []
        self.shown: list[str] = []
        self.block: list[str] = []  # everything from the first `<tool_call>` on, and the blank space before it

    def feed(self, piece: str) -> str:
        """Take a piece; returns the part that can be shown."""
        if self._held:
            if self._waits(piece):
                self._blanks.append(piece)
                return ""
            piece = self._released(piece)
        text = self._step(piece)
        if text:
            self.shown.append(text)
        return text

    def _waits(self, piece: str) -> bool:
        """Whether only blank space is held, which may yet come before a tag, and the piece is no more."""
        if not piece.isspace() or not (self._step == self._start or (self._calls and self._step == self._text)):
            return False
        return bool(self._blanks) or self._held.isspace()

    def _released(self, end: str) -> str:
        """What was held, with its end."""
        text = "".join([self._held, *self._blanks, end])
        self._blanks.clear()
        return text

    def thought(self, piece: str) -> None:
        """Take a piece of thought that the server has separated itself."""
        self.thoughts.append(piece)
        self._lead = True

    def finish(self, called: bool) -> str:
        """Take the end of the text; returns what was held and is text after all.

        Args:
            called: the reply has calls, so blank space at the end is dropped.
        """
        held, self._held = self._released(""), ""
        if self._step == self._think:
            # The reply ended inside its thoughts, so the beginning of a closing tag is one too.
            self.thoughts.append(held)
            return ""
        held = next((held.removesuffix(stop) for stop in self._stops if held.endswith(stop)), held)
        if self._lead and not self.shown:
            held = held.lstrip()
        if called and not held.strip():
            return ""
        if held:
            self.shown.append(held)
        return held

    def _start(self, text: str) -> str:
        """Nothing but blank space so far; perhaps a tag begins."""
        begin = text.lstrip()
        if begin.startswith(_THINK):
            self._held, self._step = "", self._think
            return self._think(begin[len(_THINK) :])
        if _THINK.startswith(begin):
            self._held = text
            return ""
        self._held, self._step = "", self._text
        return self._text(text)

    def _think(self, text: str) -> str:
        """Inside the thoughts."""
        thought, end, rest = text.partition(_UNTHINK)
        if not end:
            kept = _beginning(text, _UNTHINK)
            self._held = text[len(text) - kept :]
            self.thoughts.append(text[: len(text) - kept])
            return ""
        self.thoughts.append(thought)
        self._held, self._lead, self._step = "", True, self._text
        return self._text(rest)

    def _text(self, text: str) -> str:
        """What the reader sees."""
        if self._lead and not self.shown:
            text = text.lstrip()
        visible = text
        if self._calls:
            before, tag, _ = text.partition(_CALL)
            if tag:
                self._held, self._step = "", self._block
                visible = before.rstrip()
                self.block.append(text[len(visible) :])
                return visible
            # Blank space before a call belongs to no channel, so it is held until something else follows it.
            visible = text[: len(text) - _beginning(text, _CALL)].rstrip()
        if self._stops:
            visible = visible[: len(text) - max(_beginning(text, stop) for stop in self._stops)]
        self._held = text[len(visible) :]
        return visible

    def _block(self, text: str) -> str:
        """Inside or after a call."""
        self.block.append(text)
        return ""


def _beginning(text: str, mark: str) -> int:
    """How many characters at the end of a text may be the beginning of a mark, or all of it."""
    start = text.find(mark[0], max(0, len(text) - len(mark)))
    while start >= 0:
        if mark.startswith(text[start:]):
            return len(text) - start
        start = text.find(mark[0], start + 1)
    return 0
