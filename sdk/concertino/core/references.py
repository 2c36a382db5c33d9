"""References: `${...}` in a text stands for a value that is put in its place.

    ${s1}                   what is called s1
    ${s1.hotels[0].name}    a field of it, an item of a list; ["any key"] for keys with other characters
    $${                     the characters ${

Plans, agent graphs and quoted results share this syntax; what a name means is up to each of them.

Invariant: a text is split once. What a reference brings in is never read again, so a result or a question cannot refer
to anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_MARK = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
_STEP = re.compile(r"\.([A-Za-z0-9_-]+)|\[(-?[0-9]{1,9})\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_BLANK_LINES = re.compile(r"\n\s*\n")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")

Path = tuple[str | int, ...]
"""Fields and items on the way into a value."""


class Placeholder(NamedTuple):
    """A `${...}` in a text.

    Attributes:
        inner: what stands between the braces.
        start: of the `$`.
        end: behind the last character.
        closed: whether the brace is closed.
    """

    inner: str
    start: int
    end: int
    closed: bool


class LookupFailed(ValueError):
    """A path leads to nothing in a value; the text says where it ends and what is there."""


def split(text: str) -> Iterator[str | Placeholder]:
    """A text as literal parts, with `$${` read as `${`, and placeholders, in order."""
    position = 0
    for mark in _MARK.finditer(text):
        if mark.start() > position:
            yield text[position : mark.start()]
        position = mark.end()
        yield "${" if mark[1] is None else Placeholder(mark[1], mark.start(), mark.end(), bool(mark[2]))
    if position < len(text):
        yield text[position:]


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text; blank lines separate them."""
    found = (part.strip("\n") for part in _BLANK_LINES.split(text))
    return [part for part in found if part.strip()]


def name_and_path(inner: str, known: Collection[str] = ()) -> tuple[str, Path]:
    """The name of a reference and the path behind it.

    Names may hold dots, so the longest known name is meant; without one, the name ends at the first `.` or `[`.

    Raises:
        ValueError: what follows the name is not a path.
    """
    if inner in known:
        return inner, ()
    ends = [place for place, char in enumerate(inner) if char in ".["]
    end = next((place for place in reversed(ends) if inner[:place] in known), ends[0] if ends else len(inner))
    return inner[:end], read_path(inner[end:])


def read_path(text: str) -> Path:
    """The steps of a path such as `.hotels[0].name`.

    Raises:
        ValueError: it is not a path.
    """
    steps: list[str | int] = []
    position = 0
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            raise ValueError(f'{text[position : position + 20]!r} is not a path; write .field, [0] or ["key"]')
        field, item, key = step.groups()
        steps.append(int(item) if item is not None else json.loads(f'"{key}"') if key is not None else field)
        position = step.end()
    return tuple(steps)


def write_path(path: Path) -> str:
    """A path as text; `read_path` reads it back."""
    return "".join(_written(step) for step in path)


def _written(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def follow(value: Any, path: Path) -> Any:
    """What a path leads to.

    Raises:
        LookupFailed: a field or an item is missing; says what is there.
    """
    for number, step in enumerate(path):
        where = write_path(path[:number]) or "the result"
        # JSON keys are texts, so `[0]` on an object means its field "0".
        if isinstance(value, Mapping):
            if str(step) not in value:
                there = ", ".join(map(str, list(value)[:8])) or "none"
                raise LookupFailed(f"{where} has no field {str(step)!r}; its fields are {there}")
            value = value[str(step)]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            place = step if isinstance(step, int) else int(step) if step.isdigit() else None
            if place is None or not -len(value) <= place < len(value):
                raise LookupFailed(f"{where} is a list of {len(value)}; {step!r} is not one of its places")
            value = value[place]
        else:
            raise LookupFailed(f"{where} is {_kind(value)}, which has no {write_path((step,))}")
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {str: "a text", bool: "true or false"}.get(type(value), "a number")


def as_text(value: Any) -> str:
    """A value inside a text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
