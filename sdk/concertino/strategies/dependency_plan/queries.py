"""Several queries, or several answers, in one text.

A JSON list of texts is the canonical form: `["one", "two"]`. A text that does not begin with `["` is cut at `|`, with
two exceptions: `\\|` is the sign itself, and a `|` inside round, square or curly brackets separates nothing, so
`P(A|B)` is one query. If the brackets of the text do not pair, they protect nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from concertino.text.json import ReadingError, read_json

# `[` alone is no list: a query may begin with `[1]` or with an interval.
_JSON_LIST = re.compile(r'\[\s*(?:"|\])')
_SIGNS = re.compile(r"\\\||[|()\[\]{}]")
_CLOSES = {")": "(", "]": "[", "}": "{"}
MAX_PARTS = 256


class Parts(NamedTuple):
    """What a text was cut into.

    Attributes:
        texts: its parts, in order; none is empty.
        empty: how many parts were empty.
        error: why it is not a list of texts.
    """

    texts: tuple[str, ...]
    empty: int = 0
    error: str = ""


def cut_parts(text: str) -> Parts:
    """Cut a text into its parts."""
    if _JSON_LIST.match(text):
        return _listed(text)
    places = _separators(text)
    bounds = [-1, *places, len(text)]
    if len(bounds) > MAX_PARTS + 1:
        return Parts((), 0, f"{len(bounds) - 1} parts; at most {MAX_PARTS}")
    parts = [text[first + 1 : last].strip() for first, last in pairwise(bounds)]
    whole = tuple(part.replace("\\|", "|") for part in parts if part)
    return Parts(whole, len(parts) - len(whole))


def _listed(text: str) -> Parts:
    try:
        values = read_json(text, expect="any").value
    except ReadingError as error:
        return Parts((), 0, f'not a JSON list of texts, ["one", "two"]: {error}')
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        return Parts((), 0, 'a list must hold texts only, ["one", "two"]')
    if len(values) > MAX_PARTS:
        return Parts((), 0, f"{len(values)} parts; at most {MAX_PARTS}")
    whole = tuple(value.strip() for value in values if value.strip())
    return Parts(whole, len(values) - len(whole))


def _separators(text: str) -> list[int]:
    """Places of the signs that separate."""
    outside, everywhere = [], []
    opened: list[str] = []
    paired = True
    for match in _SIGNS.finditer(text):
        sign = match.group()
        if sign == "|":
            everywhere.append(match.start())
            if not opened:
                outside.append(match.start())
        elif sign in _CLOSES:
            # Intervals such as `[0, 1)` do not pair; then brackets tell nothing, and every `|` separates.
            paired = paired and bool(opened) and opened.pop() == _CLOSES[sign]
        elif sign != "\\|":
            opened.append(sign)
    return outside if paired and not opened else everywhere


def join_parts(parts: Sequence[str]) -> str:
    """Parts as one text: alone as it is, several as `one | two`; `cut_parts` finds several again."""
    if len(parts) == 1:
        return parts[0]
    return " | ".join(part.replace("|", "\\|") for part in parts)


def write_parts(parts: Sequence[str]) -> str:
    """Parts in the canonical form, safe inside any tag."""
    return json.dumps(list(parts), ensure_ascii=False).replace("<", "\\u003c")
