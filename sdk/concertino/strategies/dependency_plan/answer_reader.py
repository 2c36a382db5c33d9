"""The answers of a turn while they are written: an `<answer>` holds a JSON list of texts, or texts with `|` between.

What is told are the answers as the run gives them: one as it is, several with ` | ` between them (`join_parts`). The
first is told as it comes. From a `|` on, which may separate or be escaped, and from the end of the first answer of a
list, the rest is known only when the tag is closed.
"""

from __future__ import annotations

from typing import Literal

from concertino.strategies.base.answer_reader import AnswerReader, TagAnswer, decode_ahead

from .queries import cut_parts, join_parts


class PartsAnswer(AnswerReader):
    """Reads the answers of a turn.

    Args:
        calls: names of the elements that call something: if one comes first, the text does not hold an answer.
    """

    def __init__(self, *calls: str) -> None:
        self._tag = TagAnswer(*calls)
        self._pieces: list[str] = []
        self._unread = ""
        self._form: Literal["", "text", "list", "known at its end", "told"] = ""
        self._told: list[str] = []
        self._waits = ""

    def feed(self, piece: str) -> str:
        if inner := self._tag.feed(piece):
            self._pieces.append(inner)
        return self._all() if self._tag.closed else self._ahead(inner)

    def finish(self) -> str:
        if not self._tag.closed:
            self._pieces.append(self._tag.finish())
        return self._all()

    def _ahead(self, inner: str) -> str:
        """More of the first answer, as far as it is sure."""
        if self._form in ("known at its end", "told"):
            return ""
        self._unread += inner
        if not self._form and self._unread:
            self._begin()
        if self._form == "text":
            new, self._unread = self._unread, ""
        elif self._form == "list":
            new, length, closed = decode_ahead(self._unread)
            self._unread = self._unread[max(length, 0) :]
            self._form = "known at its end" if closed or length < 0 else "list"
        else:
            return ""
        return self._sure(new)

    def _begin(self) -> None:
        """Tell a list from a text, once there is enough to tell."""
        inside = self._unread[1:].lstrip()
        if not self._unread.startswith("["):
            self._form = "text"
        elif inside.startswith('"'):
            self._form, self._unread = "list", inside[1:]
        elif inside:
            # `[1]` begins a text; an empty list is none.
            self._form = "known at its end" if inside.startswith("]") else "text"

    def _sure(self, new: str) -> str:
        """The part before a `|` or what may escape one; white space at the end waits too, for it may be dropped."""
        text = self._waits + new
        if not self._told:
            text = text.lstrip()
        before, bar, _ = text.partition("|")
        if bar:
            self._form = "known at its end"
        sure = before.rstrip("\\").rstrip()
        self._waits = text[len(sure) :]
        if sure:
            self._told.append(sure)
        return sure

    def _all(self) -> str:
        """The rest of the answers, of which all is known."""
        if self._form == "told":
            return ""
        self._form = "told"
        whole, told = join_parts(cut_parts("".join(self._pieces).strip()).texts), "".join(self._told)
        return whole[len(told) :] if whole.startswith(told) else ""
