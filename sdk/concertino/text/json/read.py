"""`read_json`: strict first, repaired only when unambiguous.

Strict JSON is the hot path and leaves nothing to repair. Any other text goes through the repairing reader,
whose refusals also carry exact positions. A string that holds an object (a call encoded twice) is opened
once, where an object is expected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from .errors import ReadingError, refusal
from .latex import refuse_hidden_commands
from .limits import MAX_REPAIR_CHARS
from .locate import behind_wrapping, looks_like_array, note_surroundings, read_only_object
from .repair import AlmostJsonReader
from .strict import read_strict
from .tokens import CLOSING_QUOTE, REPAIRS, Repair

# Refusals of the strict reader that know their place and that no repair can lift.
_FINAL = frozenset({"latex-escape", "lone-surrogate", "nul", "too-deep", "too-large"})
_ESCAPED_OBJECT = re.compile(r'\{\s*\\"')
_QUOTED_OBJECT = re.compile(r"""["'“]\s*\{""")
_SCALAR = re.compile(r"(?:[-+.\w]*[0-9][-+.\w]*|true|false|null|True|False|None)(?![^\s<`~\[])")
_KIND = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}


@dataclass(slots=True)
class JsonReading:
    """A value read from model text, and the names of the repairs it needed, in the order of `REPAIRS`."""

    value: Any
    repairs: tuple[Repair, ...] = ()


def read_json(
    text: str,
    *,
    strict: bool = False,
    expect: Literal["object", "any"] = "object",
    maths_fields: Collection[str] = (),
) -> JsonReading:
    """Read the JSON that a model wrote.

    `strict` allows no repair (for format rewards). `expect="object"` demands a JSON object and opens a string
    that holds one; `"any"` takes every JSON value. Strings under a key in `maths_fields` are refused where
    `\\t`, `\\n` or `\\r` begins the name of a LaTeX command.

    Raises `ReadingError` where the text has no value or more than one meaning, or passes a limit: 4 Mi
    characters (256 Ki where a repair is needed), depth 64, integers of 40 digits.
    """
    repairs: tuple[Repair, ...] = ()
    fault = None
    try:
        value = read_strict(text)
    except ReadingError as error:
        if strict or error.code in _FINAL:
            raise
        # Repaired outside of the `except`, so that a second refusal does not carry this one as its context.
        fault = error
    if fault is not None:
        value, repairs = _read_repaired(text, expect, fault)
    if expect == "object" and type(value) is not dict:
        if strict or type(value) is not str or not value.lstrip().startswith("{"):
            _refuse_other(text, value)
        value, repairs = _read_encoded(value)
    if maths_fields:
        refuse_hidden_commands(value, maths_fields, text)
    return JsonReading(value, repairs)


def _read_repaired(text: str, expect: str, fault: ReadingError) -> tuple[Any, tuple[Repair, ...]]:
    if len(text) > MAX_REPAIR_CHARS:
        # Duplicate keys and bad numbers stay refused after any repair, so their own message says more.
        if fault.code not in ("not-json", "truncated"):
            raise fault
        problem = f"not strict JSON, and only {MAX_REPAIR_CHARS} characters are repaired; write strict JSON."
        raise refusal("too-large", problem, text, fault.position)
    reader = AlmostJsonReader(text)
    start = behind_wrapping(text, 0)
    opening = text[start : start + 1]
    if _ESCAPED_OBJECT.match(text, start):
        # Still a text here: the caller opens it as it opens any string that holds an object, and names the repair.
        return _unescaped(text, start), ()
    if opening and opening in CLOSING_QUOTE and (expect == "any" or _QUOTED_OBJECT.match(text, start)):
        value = _read_filling(reader, start)
    elif looks_like_array(text, start):
        value = _read_filling(reader, start) if expect == "any" else _refuse_other(text, [])
    elif expect == "any" and _SCALAR.match(text, start):
        value = _read_filling(reader, start)
    else:
        value = read_only_object(reader, expect)
    return value, _ordered(reader.repairs)


def _read_filling(reader: AlmostJsonReader, start: int) -> Any:
    """Read a value that nothing but wrapping surrounds."""
    value, end = reader.value(start)
    if (stop := behind_wrapping(reader.text, end)) != len(reader.text):
        reader.refuse("text follows the JSON value; write the value and nothing else.", stop)
    note_surroundings(reader, reader.text[:start], reader.text[end:])
    return value


def _read_encoded(encoded: str) -> tuple[dict[str, Any], tuple[Repair, ...]]:
    """Read the object that a JSON string holds; its errors count positions inside the decoded string."""
    repairs: set[Repair] = {"double-encoded"}
    fault = None
    try:
        value = read_strict(encoded)
    except ReadingError as error:
        fault = error
    if fault is not None:
        if fault.code in _FINAL or len(encoded) > MAX_REPAIR_CHARS:
            raise fault
        reader = AlmostJsonReader(encoded)
        value = _read_filling(reader, reader.skip(0))
        repairs |= reader.repairs
    return value, _ordered(repairs)


def _unescaped(text: str, start: int) -> str:
    """The text of an object whose every quote was escaped: `{\\"a\\": 1}`."""
    try:
        decoded = json.loads(f'"{text[start:].rstrip()}"', strict=False)
    except ValueError:
        problem = 'some quotes are escaped and some are not; write {"name": "value"} with plain quotes.'
        raise refusal("not-json", problem, text, start) from None
    return str(decoded)


def _ordered(repairs: set[Repair]) -> tuple[Repair, ...]:
    return tuple(name for name in REPAIRS if name in repairs)


def _refuse_other(text: str, value: Any) -> NoReturn:
    kind = _KIND.get(type(value), "a number")
    problem = f'found {kind} where one JSON object belongs; write {{"name": "value"}}.'
    raise refusal("not-an-object", problem, text, 0)
