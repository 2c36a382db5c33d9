"""Writing to a terminal: safe text, short text, aligned columns, JSON.

Texts of models, tools and files are shown to a person, so nothing in them may move the cursor, change colours or turn
the direction of writing: `clean` makes such characters visible. Columns are never cut when the output is not a
terminal, so that it can be searched and read by other programs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

# Control characters, and marks that turn the direction of writing; line breaks and tabs stay.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_SHORT = 16
"""Characters of a value that are shown in any case."""

STATUS_COLOURS = {
    "OK": "green",
    "PARSE_ERR": "magenta",
    "EXEC_ERR": "red",
    "TIMEOUT": "yellow",
}
"""Colour of each status."""


def clean(text: object) -> str:
    """A text without anything that a terminal obeys; line breaks and tabs stay."""
    # With a line feed, CR is a line end of Windows; alone it moves the cursor and is made visible below.
    safe = str(text).replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return _UNSAFE.sub(lambda match: f"\\x{ord(match.group()):02x}", safe)


def one_line(text: object, width: int = 0) -> str:
    """A clean text on one line, cut with `…` to at most `width` characters if that is given."""
    flat = " ".join(clean(text).split())
    return flat if not width or len(flat) <= width else f"{flat[: width - 1]}…"


def show_arguments(arguments: Any, width: int = 200) -> str:
    """Arguments of a call on one line: `query="x", limit=3`; a raw text stays as the model wrote it.

    Long values lose their ends first, so that every argument is seen.
    """
    if not isinstance(arguments, Mapping):
        return one_line(arguments, width)
    # A request to a model: its last message says what was asked of it.
    if set(arguments) == {"messages"} and arguments["messages"]:
        return one_line(arguments["messages"][-1].get("text", ""), width)
    texts = {one_line(key): one_line(json.dumps(value, ensure_ascii=False)) for key, value in arguments.items()}
    long = [key for key, text in texts.items() if len(text) > _SHORT]
    taken = sum(len(key) + 3 + (0 if key in long else len(text)) for key, text in texts.items())
    room = max(_SHORT // 2, (width - taken) // max(1, len(long)))
    return one_line(", ".join(f"{key}={one_line(text, room)}" for key, text in texts.items()), width)


def show_money(usd: float) -> str:
    """`$0.0158`; six digits for less than a hundredth of a cent."""
    return f"${usd:.4f}" if usd == 0 or usd >= 0.0001 else f"${usd:.6f}"


def show_cost(usage: Mapping[str, Any]) -> str:
    """Money and units of a usage; `-` if there is none."""
    parts = [show_money(usage["usd"])] if usage.get("usd") else []
    parts += [f"{usage['units']:g} u"] if usage.get("units") else []
    return " ".join(parts) or "-"


def coloured() -> bool:
    """Whether stdout takes colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """A text in a colour, where stdout takes colours."""
    return click.style(text, fg=colour) if coloured() else text


def write_json(value: Any) -> None:
    """Print one JSON value on several lines."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8"))


def write_table(
    titles: Sequence[str], rows: Sequence[Sequence[object]], colours: Mapping[str, str] | None = None
) -> None:
    """Print aligned columns; on a terminal the last one is cut to the width.

    Args:
        colours: colour by the text of a cell.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(titles), *cells]) for i in range(len(titles))]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for number, row in enumerate([list(titles), *cells]):
        head = "  ".join(_cell(cell, width, colours) for cell, width in zip(row[:-1], widths[:-1], strict=True))
        used = sum(widths[:-1]) + 2 * len(widths[:-1])
        last = one_line(row[-1], max(8, room - used)) if room else row[-1]
        line = f"{head}  {last}".rstrip() if head else last
        click.echo(click.style(line, bold=True) if number == 0 and coloured() else line)


def write_fields(fields: Mapping[str, object]) -> None:
    """Print `name  value` lines, names aligned; further lines of a value are indented. Values are clean texts."""
    width = max(map(len, fields))
    for name, value in fields.items():
        text = str(value).replace("\n", f"\n{' ' * (width + 2)}")
        click.echo(f"{name:<{width}}  {text}")


def _cell(text: str, width: int, colours: Mapping[str, str] | None) -> str:
    # Padded before it is coloured: escape sequences count as characters.
    padded = f"{text:<{width}}"
    return paint(padded, colours[text]) if colours and text in colours else padded
