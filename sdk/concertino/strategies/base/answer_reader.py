"""The answer in a text that is still being written: how a strategy tells where its answer begins.

A reader is fed the text piece by piece and gives what is new of the answer. A machine makes one for each request
(`Machine.answer_reader`), so `TextDelta` events of kind `answer` come as soon as the strategy's own reader would be
inside the answer, and never before.

Invariant: what a reader has given is never taken back, and it depends on the text alone, not on how it was cut.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod


class AnswerReader(ABC):
    """Finds the answer in one text."""

    @abstractmethod
    def feed(self, piece: str) -> str:
        """Take more of the text; gives what is new of the answer."""

    def finish(self) -> str:
        """Take the end of the text; gives what was held back and is part of the answer after all."""
        return ""


class WholeText(AnswerReader):
    """The whole text is the answer."""

    def feed(self, piece: str) -> str:
        return piece


class AfterThought(AnswerReader):
    """The whole text but a `<think>…</think>` at its beginning; white space around it is dropped."""

    _OPEN, _CLOSE = "<think>", "</think>"

    def __init__(self) -> None:
        self._held = ""
        self._place = "before"

    def feed(self, piece: str) -> str:
        self._held += piece
        if self._place == "before":
            begin = self._held.lstrip()
            if begin.startswith(self._OPEN):
                self._place, self._held = "thinking", begin[len(self._OPEN) :]
            elif not self._OPEN.startswith(begin):
                self._place, self._held = "inside", begin
        if self._place == "thinking":
            _, ended, rest = self._held.partition(self._CLOSE)
            if not ended:
                # Long enough for a closing tag that is cut in two.
                self._held = self._held[-len(self._CLOSE) :]
                return ""
            self._place, self._held = "after", rest
        if self._place == "after" and (begin := self._held.lstrip()):
            self._place, self._held = "inside", begin
        if self._place != "inside":
            return ""
        sure = self._held.rstrip()
        # White space at the end waits for what follows.
        self._held = self._held[len(sure) :]
        return sure

    def finish(self) -> str:
        # The text ended at `<thi`: not a thought. A thought that never ended holds no answer.
        return self._held.strip() if self._place == "before" else ""


def after_thought(text: str) -> str:
    """A whole text without the `<think>…</think>` at its beginning; empty if the thought never ends."""
    reader = AfterThought()
    return reader.feed(text) + reader.finish()


class TagAnswer(AnswerReader):
    """The answer stands between `<answer>` and `</answer>`, outside of thoughts; white space around it is dropped.

    Args:
        calls: names of the elements that call something: if one comes first, the text does not hold an answer.
        whole: a text without the tag is the answer as a whole; known only at its end.
        quotes: `<![CDATA[` and `]]>` quote a part of the answer, and are no part of it.

    Attributes:
        closed: the closing tag was read.
    """

    _CLOSE, _QUOTE, _END_OF_QUOTE = "</answer>", "<![CDATA[", "]]>"

    def __init__(self, *calls: str, whole: bool = False, quotes: bool = False) -> None:
        self._tags = re.compile(
            rf"<(/?)({'|'.join(('think', 'reasoning', 'answer', *map(re.escape, calls)))})\b[^<>]{{0,80}}>"
        )
        self._calls = calls
        self._whole = whole
        self._marks = (self._CLOSE, self._QUOTE) if quotes else (self._CLOSE,)
        self._held = ""
        self._outside: list[str] = []
        self._thought = ""
        self._place = "before"
        self._begun = False
        self.closed = False

    def feed(self, piece: str) -> str:
        self._held += piece
        if self._place == "before":
            self._look()
        found = []
        while self._place in ("inside", "quoted"):
            place = self._place
            found.append(self._inside() if place == "inside" else self._quoted())
            if self._place == place:
                break
        return "".join(found)

    def finish(self) -> str:
        if self._place in ("inside", "quoted"):
            # The text ended inside the answer: a half closing tag belongs to it.
            return self._held.rstrip() if self._place == "inside" else self._held
        if self._place == "before" and self._whole and not self._thought:
            return "".join([*self._outside, self._held]).strip()
        return ""

    def _look(self) -> None:
        """Pass over everything before the answer."""
        position = 0
        while found := self._tags.search(self._held, position):
            closing, name = found.groups()
            if not self._thought and self._whole:
                self._outside.append(self._held[position : found.start()])
            position = found.end()
            if self._thought:
                if closing and name == self._thought:
                    self._thought = ""
            elif name in self._calls:
                self._held, self._place = "", "after"
                return
            elif name == "answer" and not closing:
                self._held, self._place = self._held[position:], "inside"
                return
            elif name != "answer" and not closing:
                self._thought = name
        # A tag may be cut in two; everything before the last `<` is settled.
        rest = self._held.rfind("<", position)
        settled = rest if rest >= 0 and len(self._held) - rest < 100 else len(self._held)
        if self._whole and not self._thought:
            self._outside.append(self._held[position:settled])
        self._held = self._held[settled:]

    def _inside(self) -> str:
        """What is sure of the answer, up to a mark that ends it or quotes."""
        text = self._held if self._begun else self._held.lstrip()
        places = [(place, mark) for mark in self._marks if (place := text.find(mark)) >= 0]
        if places:
            place, mark = min(places)
            self.closed = mark == self._CLOSE
            self._place = "after" if self.closed else "quoted"
            self._held, self._begun = text[place + len(mark) :] if not self.closed else "", True
            return text[:place].rstrip() if self.closed else text[:place]
        # White space at the end, and what may begin a mark, wait for what follows.
        begin = text.rfind("<", max(0, len(text) - len(self._CLOSE)))
        cut = begin >= 0 and any(mark.startswith(text[begin:]) for mark in self._marks)
        sure = (text[:begin] if cut else text).rstrip()
        self._held = text[len(sure) :]
        self._begun = self._begun or bool(sure)
        return sure

    def _quoted(self) -> str:
        """What is quoted, as it stands there."""
        inner, ended, rest = self._held.partition(self._END_OF_QUOTE)
        if ended:
            self._held, self._place = rest, "inside"
            return inner
        # What may begin the end of the quote waits.
        self._held = inner[-2:] if inner.endswith("]]") else inner[-1:] if inner.endswith("]") else ""
        return inner[: len(inner) - len(self._held)]


class ArgumentAnswer(AnswerReader):
    """The answer is one text in the arguments of a call: `{"name": "answer", "arguments": {"text": "…"}}`.

    Args:
        tool: name of the call.
        argument: name of the argument.
    """

    def __init__(self, tool: str, argument: str = "text") -> None:
        name, key = re.escape(json.dumps(tool)), re.escape(json.dumps(argument))
        self._begin = re.compile(rf'"name"\s*:\s*{name}\s*,\s*"arguments"\s*:\s*\{{\s*{key}\s*:\s*"')
        self._held = ""
        self._place = "before"
        self._begun = False
        self._spaces = ""

    def feed(self, piece: str) -> str:
        self._held += piece
        if self._place == "before":
            found = self._begin.search(self._held)
            if found is None:
                # Long enough for the longest beginning; searching all of it at each piece would take quadratic time.
                self._held = self._held[-400:]
                return ""
            self._held, self._place = self._held[found.end() :], "inside"
        return self._inside() if self._place == "inside" else ""

    def _inside(self) -> str:
        text, end, closed = decode_ahead(self._held)
        # No valid text: the strategy's reader decides at the end.
        self._held, self._place = self._held[end:], "after" if closed or end < 0 else "inside"
        # The answer has no space around it: what may be its end waits for more.
        text = self._spaces + text if self._begun else text.lstrip()
        sure = text.rstrip()
        self._begun, self._spaces = self._begun or bool(sure), text[len(sure) :]
        return sure


def decode_ahead(raw: str) -> tuple[str, int, bool]:
    """Decode a JSON string that is still being written, from behind its opening quote, as far as no escape is cut.

    Returns:
        The text, how many characters of `raw` it took (-1 if they are no JSON string), and whether it was closed.
    """
    closed, position = False, 0
    while position < len(raw):
        sign = raw[position]
        if sign == '"':
            closed = True
            break
        if sign != "\\":
            position += 1
            continue
        width = 6 if raw[position + 1 : position + 2] == "u" else 2
        if width == 6 and raw[position + 2 : position + 4].lower() in ("d8", "d9", "da", "db"):
            width = 12  # a pair of surrogates is one letter
        if position + width > len(raw):
            break
        position += width
    try:
        return str(json.loads(f'"{raw[:position]}"', strict=False)), position, closed
    except ValueError:
        return "", -1, closed


class FirstOf(AnswerReader):
    """The first of several forms that gives something."""

    def __init__(self, *readers: AnswerReader) -> None:
        self._readers = readers
        self._chosen: AnswerReader | None = None

    def feed(self, piece: str) -> str:
        if self._chosen is not None:
            return self._chosen.feed(piece)
        for reader in self._readers:
            if text := reader.feed(piece):
                self._chosen = reader
                return text
        return ""

    def finish(self) -> str:
        if self._chosen is not None:
            return self._chosen.finish()
        return next((text for reader in self._readers if (text := reader.finish())), "")
