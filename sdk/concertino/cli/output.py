"""What commands print: aligned columns, fields, JSON.

It goes through `terminal`, which makes the texts of models, tools and files safe. Columns are never cut when the output
is not a terminal, so that it can be searched and read by other programs; on a terminal no line is wider than it.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from concertino.core.display_text import clean, counted, one_line, show_arguments, show_cost, show_money

from .terminal import Painted, json_stream, say, say_json

__all__ = [
    "STATUS_COLOURS",
    "clean",
    "counted",
    "one_line",
    "show_arguments",
    "show_cost",
    "show_money",
    "terminal_width",
    "write_fields",
    "write_json",
    "write_records",
    "write_table",
]

STATUS_COLOURS = {
    "OK": "green",
    "PARSE_ERR": "magenta",
    "EXEC_ERR": "red",
    "TIMEOUT": "yellow",
}
"""Colour of each status."""

_LAST = 12
"""Characters that the last column of a table has at least."""


def write_json(value: Any) -> None:
    """Print one JSON value on several lines."""
    say_json(value, indent=2)


def write_records(head: Mapping[str, Any], records: Iterable[Any], stream: BinaryIO | None = None) -> None:
    """Print one JSON object like `write_json`, whose last field `records` is written while it is read."""
    out = stream or json_stream()
    out.write(json.dumps(head, indent=2, ensure_ascii=False).encode("utf-8", "replace").removesuffix(b"\n}"))
    comma = b',\n  "records": ['
    for record in records:
        text = json.dumps(record, indent=2, ensure_ascii=False).replace("\n", "\n    ")
        out.write(comma + b"\n    " + text.encode("utf-8", "replace"))
        comma = b","
    out.write(b"\n  ]\n}\n")
    out.flush()


def terminal_width() -> int:
    """Columns of the terminal that stdout is; 0 where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def write_table(
    titles: Sequence[str],
    rows: Sequence[Sequence[object]],
    colours: Mapping[str, str] | None = None,
    key: int = 0,
) -> None:
    """Print aligned columns. On a terminal the last one is cut to the width; where it is narrow, rows become blocks.

    Args:
        colours: colour by the text of a cell.
        key: the column with the name to type, which heads a block.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(titles), *cells]) for i in range(len(titles))]
    room, used = terminal_width(), sum(widths[:-1]) + 2 * len(widths[:-1])
    if room and used + _LAST > room and len(titles) > 1:
        first = [key, *(i for i in range(len(titles)) if i != key)]
        ordered = [[row[i] for i in first] for row in cells]
        _write_blocks([titles[i] for i in first], ordered, room, colours)
        return
    for number, row in enumerate([list(titles), *cells]):
        parts: list[str | Painted] = []
        for cell, width in zip(row[:-1], widths[:-1], strict=True):
            parts += [_cell(cell, width, colours if number else None), "  "]
        parts.append(one_line(row[-1], max(_LAST, room - used)) if room else row[-1])
        plain = "".join(map(str, parts)).rstrip()
        if number == 0:
            say(Painted(plain, "bold"))
        else:
            say(*(parts if any(isinstance(part, Painted) for part in parts) else [plain]))


def _write_blocks(
    titles: Sequence[str], cells: Sequence[Sequence[str]], room: int, colours: Mapping[str, str] | None
) -> None:
    """Each row as lines `title  value`, the first one whole: it is the name to type."""
    width = min(max(map(len, titles[1:])), max(4, room // 3))
    for row in cells:
        say(Painted(row[0], "bold"))
        for title, cell in zip(titles[1:], row[1:], strict=True):
            if cell not in ("", "-"):
                shown = one_line(cell, max(_LAST, room - width - 4))
                say(f"  {title.lower()[:width]:<{width}}  ", _cell(shown, 0, colours))


Line = Sequence["str | Painted"]
"""A line in parts, some of them coloured."""


def write_fields(fields: Mapping[str, object]) -> None:
    """Print `name  value` lines, names aligned; further lines of a value are indented.

    Args:
        fields: values by name; one that is a tuple is a line in parts, some of them `Painted`.
    """
    width = max(map(len, fields))
    room = max(_LAST, terminal_width() - width - 2) if terminal_width() else 0
    for name, value in fields.items():
        lines: list[Line]
        if isinstance(value, tuple):
            lines = _wrapped_parts(value, room)
        else:
            # Cleaned before it is wrapped: what is made visible takes room.
            lines = [[row] for line in clean(value).split("\n") for row in _wrapped(line, room)]
        for number, line in enumerate(lines):
            say(f"{'' if number else name:<{width}}  ", *line)


def _wrapped(line: str, room: int) -> list[str]:
    if not room or len(line) <= room:
        return [line]
    return textwrap.wrap(line, room, break_on_hyphens=False) or [line]


def _wrapped_parts(parts: Line, room: int) -> list[Line]:
    """Broken between parts alone: a colour must not be cut in two."""
    lines: list[list[str | Painted]] = [[]]
    used = 0
    for part in parts:
        length = len(str(part))
        if room and used and used + len(str(part).rstrip()) > room:
            lines.append([])
            used = 0
        lines[-1].append(part)
        used += length
    return list(lines)


def _cell(text: str, width: int, colours: Mapping[str, str] | None) -> str | Painted:
    padded = f"{text:<{width}}"
    return Painted(padded, colours[text]) if colours and text in colours else padded
