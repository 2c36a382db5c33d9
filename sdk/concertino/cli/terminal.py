"""The one door to the terminal: everything that a command writes or asks goes through here.

say, Painted           text, and our own colours in it         rewrite, progress_bar   a line that is written again
say_json, json_stream  values for programs                     ask, confirm            questions to a person
console                what rich draws                         guard                   what other libraries write

Invariant: of a foreign text nothing leaves here that a terminal obeys or a person does not see. Text is made visible
(`concertino.core.display_text.clean`). JSON keeps its value: on a terminal such characters are escapes of JSON, and in
a file or a pipe they stay as they are. A test refuses every other way out.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click

from concertino.core.display_text import clean, clean_json, is_plain, one_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

__all__ = [
    "Painted",
    "ask",
    "confirm",
    "console",
    "guard",
    "json_stream",
    "paint",
    "progress_bar",
    "rewrite",
    "say",
    "say_json",
    "say_json_text",
    "say_painted",
    "takes_colours",
]


class Painted(NamedTuple):
    """A text in our colours, where the stream takes them.

    Attributes:
        style: words such as `bold` and `red`.
    """

    text: str
    style: str

    def __str__(self) -> str:
        return self.text


_CODES = {"bold": "1", "dim": "2", "italic": "3", "red": "31", "green": "32", "yellow": "33", "magenta": "35"}
_CODES["cyan"] = "36"
_DRAWN = "✓✗→…⧖·└━"
"""Signs that we draw with."""
_COLOUR = re.compile(r"(\x1b\[(?:[0-3]|3[1-6]|;)+m)")


def takes_colours(*, error: bool = False) -> bool:
    """Whether stdout, or stderr, shows colours."""
    stream = sys.stderr if error else sys.stdout
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def say(*parts: object, error: bool = False, nl: bool = True) -> None:
    """Write a text to stdout.

    Args:
        parts: what it is made of; `Painted` parts are coloured.
        error: to stderr instead.
        nl: end the line.
    """
    _write(_joined(parts, takes_colours(error=error)) if len(parts) > 1 else _of(parts, error), error, nl)


def _of(parts: tuple[object, ...], error: bool) -> str:
    if parts and isinstance(parts[0], Painted):
        return _joined(parts, takes_colours(error=error))
    return clean(parts[0]) if parts else ""


def _joined(parts: Iterable[object], colours: bool) -> str:
    return "".join(
        paint(part.text, part.style)
        if colours and isinstance(part, Painted) and part.style and part.text
        else clean(part)
        for part in parts
    )


def paint(text: str, style: str) -> str:
    """A text in our colours, for `say_painted`; `Painted` is simpler, and asks whether the stream takes them."""
    return f"\x1b[{';'.join(_CODES[word] for word in style.split())}m{clean(text)}\x1b[0m"


def say_painted(text: str) -> None:
    """Write lines to stdout that were laid out by hand, their foreign parts clean or made by `paint`."""
    if "\x1b" in text:
        pieces = _COLOUR.split(text)
        pieces[::2] = map(clean, pieces[::2])
        _write("".join(pieces), False, True)
        return
    # Long reports come here: where nothing but our own signs is beside ASCII, no pattern has to look at them.
    if is_plain(text, _DRAWN):
        _write(text, False, True)
    else:
        say(text)


def _write(text: str, error: bool, nl: bool) -> None:
    encoding = getattr(sys.stderr if error else sys.stdout, "encoding", None) or "utf-8"
    # A terminal's encoding must not end a run.
    if not text.isascii() and encoding.lower() not in ("utf-8", "utf8"):
        text = text.encode(encoding, "replace").decode(encoding)
    # There are no colours to strip where none are wanted.
    click.echo(text, err=error, nl=nl, color=True)


def say_json(value: Any, *, indent: int | None = None, error: bool = False) -> None:
    """Write a value as JSON: on one line, or on several with `indent`."""
    say_json_text(json.dumps(value, indent=indent, ensure_ascii=False), error=error)


def say_json_text(text: str, *, error: bool = False, nl: bool = True) -> None:
    """Write a text that is JSON already."""
    stream = sys.stderr if error else sys.stdout
    if stream.isatty():
        _write(clean_json(text), error, nl)
    else:
        # As bytes: JSON is UTF-8, whatever the locale; a text may hold half a character, which no encoding takes.
        click.echo(text.encode("utf-8", "replace"), err=error, nl=nl)


def json_stream() -> BinaryIO:
    """Stdout for JSON in pieces: each `write` takes whole values or whole texts, as UTF-8."""
    return _JsonOnTerminal() if sys.stdout.isatty() else sys.stdout.buffer


class _JsonOnTerminal(io.RawIOBase, BinaryIO):
    """Takes JSON as bytes, and writes it escaped to the terminal."""

    def write(self, data: Any, /) -> int:
        """Write a piece."""
        sys.stdout.write(clean_json(bytes(data).decode("utf-8", "replace")))
        return len(data)

    def flush(self) -> None:
        """Have it seen."""
        sys.stdout.flush()


def rewrite(text: str, width: int = 0) -> None:
    """Write a line to stderr over the one before, which had `width` characters; on a terminal alone.

    Without a text the line is left clear.
    """
    click.echo(f"\r{one_line(text):<{width}}{'' if text else chr(13)}", err=True, nl=False)


def redraw(lines: Sequence[str], before: int) -> None:
    """Write lines to stderr over the `before` lines that were written last; on a terminal alone.

    The cursor stays at the end of the last one. Lines must fit, for one that wraps cannot be written over.
    """
    up = f"\x1b[{before - 1}A" if before > 1 else ""
    click.echo(f"\r{up}\x1b[J" + "\n".join(map(clean, lines)), err=True, nl=False, color=True)


def progress_bar(items: Iterable[Any], length: int, label: str) -> AbstractContextManager[Iterable[Any]]:
    """A bar on stderr that moves while the items are taken."""
    return click.progressbar(items, length=length, label=clean(label), file=sys.stderr)


def ask(question: str, default: str | None = None, *, show_default: bool = True) -> str:
    """Ask for a line of text, on stderr."""
    shown = f" [{one_line(default)}]" if default is not None and show_default else ""
    return str(click.prompt(f"{clean(question)}{shown}", default=default, show_default=False, err=True))


def confirm(question: str) -> bool:
    """Ask for yes or no, on stderr; no is the default."""
    return click.confirm(clean(question), default=False, err=True)


def console(**options: Any) -> Console:
    """A console of rich on which text is text: no markup, no names of emoji, nothing that a terminal obeys."""
    from rich.console import Console, RenderableType
    from rich.segment import Segment

    class PlainTextConsole(Console):
        """Cleans every piece of text that is drawn; what moves the cursor is a piece of its own."""

        def render(self, renderable: RenderableType, *given: Any, **more: Any) -> Iterator[Segment]:
            """The pieces of what is drawn."""
            for each in super().render(renderable, *given, **more):
                yield each if each.control else Segment(clean(each.text), each.style)

    return PlainTextConsole(highlight=False, markup=False, emoji=False, **options)


# What rich and click write beside text: colours, moves of the cursor, a hidden cursor, an empty line.
_MOVES = re.compile(r"((?:\x1b\[[0-9;:]*m|\x1b\[[0-9;]*[ABCDEFGHJKf]|\x1b\[\?25[hl]|[\r\x08])+)")


def guard(text: str) -> str:
    """A text that some library writes to a terminal: titles, links, the clipboard and questions to the terminal go.

    What colours a text or moves the cursor stays: here nobody knows any more whose it is.
    """
    if "\x1b" not in text and "\r" not in text and "\x08" not in text:
        return clean(text)
    pieces = _MOVES.split(text)
    pieces[::2] = map(clean, pieces[::2])
    return "".join(pieces)
