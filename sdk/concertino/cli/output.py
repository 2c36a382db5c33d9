"""Writing to a terminal: safe text, short text, aligned columns, JSON.

Texts of models, tools and files are made safe by `concertino.core.display_text`. Columns are never cut when the output
is not a terminal, so that it can be searched and read by other programs.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from concertino.core.display_text import clean, one_line, show_arguments, show_cost, show_money

__all__ = [
    "STATUS_COLOURS",
    "clean",
    "coloured",
    "one_line",
    "paint",
    "show_arguments",
    "show_cost",
    "show_money",
    "write_fields",
    "write_json",
    "write_table",
]

STATUS_COLOURS = {
    "OK": "green",
    "PARSE_ERR": "magenta",
    "EXEC_ERR": "red",
    "TIMEOUT": "yellow",
}
"""Colour of each status."""


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
