"""JSON that a stranger sent, read within bounds, and without holding up the event loop.

A parser in C lets nobody else work until it is done, and a small text may hold millions of values. So values are
counted before anything is read, by signs that every value needs. Invariants: what is read holds at most
`JSON_VALUES` values; reading many is done by a slower parser that lets other threads work in between.
"""

from __future__ import annotations

import json
import json.scanner
import re
from typing import Any

JSON_VALUES = 500_000
"""Values of one text at most, containers included. Half a million take about 0.1 GB."""
QUICK_VALUES = 100_000
"""Up to so many values are read at once, in milliseconds."""

# One that does not end goes on to the end, or each quote in it would be tried as a beginning.
_TEXT = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_TEXT_BYTES = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


class TooManyValues(ValueError):
    """A text of JSON holds more values than are read; says how many at most."""


class _PatientDecoder(json.JSONDecoder):
    """The decoder of the standard library, without its scanner in C."""

    def __init__(self) -> None:
        super().__init__()
        self.parse_object = vars(json.decoder)["JSONObject"]
        self.parse_array = vars(json.decoder)["JSONArray"]
        self.scan_once = vars(json.scanner)["py_make_scanner"](self)


def counted_values(data: str | bytes) -> int:
    """How many values a text of JSON holds at most; signs inside of its texts count too."""
    if isinstance(data, str):
        return data.count(",") + data.count("[") + data.count("{")
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _outside_of_texts(data: str | bytes, most: int) -> int:
    """`counted_values` without the signs inside of texts; counted no further than `most`."""
    values = place = 0
    texts = _TEXT.finditer(data) if isinstance(data, str) else _TEXT_BYTES.finditer(data)
    for text in texts:
        values += counted_values(data[place : text.start()])
        place = text.end()
        if values > most:
            return values
    return values + counted_values(data[place:])


def check_values(data: str | bytes, most: int = JSON_VALUES) -> int:
    """How many values a text of JSON holds at most, signs inside of its texts among them.

    Args:
        data: the text, in UTF-8 where it is bytes.
        most: values that are read at most.

    Raises:
        TooManyValues: it holds more.
    """
    values = counted_values(data)
    if values > most and _outside_of_texts(data, most) > most:
        raise TooManyValues(f"more than {most:,} JSON values")
    return values


def read_stranger_json(data: str | bytes, most: int = JSON_VALUES) -> Any:
    """What a text of JSON holds. May take seconds where it holds many values: then call it in a thread.

    Args:
        data: the text, in UTF-8 where it is bytes.
        most: values that are read at most.

    Raises:
        TooManyValues: it holds more values.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    if check_values(data, most) <= QUICK_VALUES:
        return json.loads(data)
    return _PatientDecoder().decode(data if isinstance(data, str) else data.decode("utf-8"))
