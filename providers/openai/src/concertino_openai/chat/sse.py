"""Server-sent events: bytes in, the data of whole events out.

A line ends with `\\n`, `\\r\\n` or `\\r`; an empty line ends an event; several `data:` lines of an event are joined by
line breaks. Comments and the fields `event`, `id` and `retry` are ignored; a field `error`, as llama.cpp's server
has sent it, counts as data. There is no limit per line, but one per event, because a server may send half a megabyte of
token ids in one and must not be able to fill the memory.

Invariant: the events depend on the bytes alone, never on how they were cut into pieces.
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"
# A comment begins with a colon, so its field name is empty.
_PASSED_OVER = (b"", b"event", b"id", b"retry")


class EventTooLarge(Exception):
    """An event has more bytes than are allowed; the text says how many."""


class MalformedEvent(str):
    """The data of an event that also has lines without a field.

    Servers that print an error into an event do not always escape its line breaks. `raw` is everything, as printed.
    """

    raw: str


class EventParser:
    """Reads one stream.

    Args:
        limit: bytes that one event may have.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._room = limit  # bytes that the event under way may still have; negative once it was too large
        self._held: list[bytes] = []  # pieces of a line that has not ended yet
        self._held_size = 0
        self._data: list[str] = []  # data lines of an event that has not ended yet
        self._strays: list[str] = []  # its lines that are no field
        self._after_return = False
        self._begun = False

    @property
    def held(self) -> int:
        """Bytes of the event under way so far."""
        return self._limit - self._room + self._held_size

    def feed(self, piece: bytes) -> list[str]:
        """Take the next bytes; returns the data of the events that they end.

        Raises:
            EventTooLarge: the event under way is longer than the limit; earlier ones have been given.
        """
        if self._room < 0:
            return self._too_large([])
        events: list[str] = []
        for line in self._lines(piece):
            if not line:
                if self._data:
                    events.append(self._event())
            elif not self._line(line):
                break
        # An unfinished line counts too, or one endless line would fill the memory.
        return events if self._room >= self._held_size else self._too_large(events)

    def finish(self) -> list[str]:
        """Take the end of the stream. What follows the last empty line counts as an event too; it may be torn off.

        Raises:
            EventTooLarge: the last event is longer than the limit.
        """
        if self._held:
            line = self._released(b"")
            if not self._line(line if self._begun else line.removeprefix(_BOM)):
                self._room = -1
        if self._room < 0:
            return self._too_large([])
        return [self._event()] if self._data else []

    def _lines(self, piece: bytes) -> list[bytes]:
        """The lines that a piece ends; the rest is held."""
        if self._after_return or b"\r" in piece:
            piece = self._plain_breaks(piece)
        lines = piece.split(b"\n")
        rest = lines.pop()
        if lines:
            if self._held:
                lines[0] = self._released(lines[0])
            if not self._begun:
                self._begun = True
                lines[0] = lines[0].removeprefix(_BOM)
        if rest:
            # Joined once, at the line's end: adding each piece to a text would copy a long line again and again.
            self._held.append(rest)
            self._held_size += len(rest)
        return lines

    def _too_large(self, events: list[str]) -> list[str]:
        """Return the events before it; the next call raises."""
        self._room = -1
        self._held.clear()
        self._held_size = 0
        self._data.clear()
        if events:
            return events  # they were complete before the large one began
        raise EventTooLarge(f"an event of more than {self._limit:,} bytes")

    def _plain_breaks(self, piece: bytes) -> bytes:
        """Every kind of line break as `\\n`; a `\\r` at the end of a piece may be half of a `\\r\\n`."""
        if self._after_return and piece:
            self._after_return = False
            piece = piece.removeprefix(b"\n")
        if piece.endswith(b"\r"):
            self._after_return = True
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _released(self, end: bytes) -> bytes:
        """The line that was held, with its end."""
        self._held.append(end)
        line = b"".join(self._held)
        self._held.clear()
        self._held_size = 0
        return line

    def _line(self, line: bytes) -> bool:
        """Take a whole line; returns whether there was room for it."""
        if line.startswith(b"data:"):
            # Only whole lines are decoded, because a piece may end inside a character.
            self._data.append((line[6:] if line[5:6] == b" " else line[5:]).decode("utf-8", "replace"))
        else:
            name = line.partition(b":")[0]
            if name == b"data":
                self._data.append("")
            elif name == b"error":
                self._data.append(f'{{"error": {line[6:].decode("utf-8", "replace")}}}')
            # Stray lines matter only after data, where they are the rest of an error with raw line breaks.
            elif name in _PASSED_OVER or not self._data:
                return True
            else:
                self._strays.append(line.decode("utf-8", "replace"))
        self._room -= len(line)
        return self._room >= 0

    def _event(self) -> str:
        data = self._data[0] if len(self._data) == 1 else "\n".join(self._data)
        self._data.clear()
        self._room = self._limit
        if not self._strays:
            return data
        torn = MalformedEvent(data)
        torn.raw = "\n".join([data, *self._strays])
        self._strays.clear()
        return torn
