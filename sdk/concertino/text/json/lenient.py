"""Texts that the strict reader refused: repaired where they have one meaning, refused with exact positions elsewhere.

Invariant: nothing here is imported, and nothing runs, for a text that is strict JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from .errors import ReadingError, refusal
from .limits import MAX_REPAIR_CHARS
from .locate import behind_wrapping, looks_like_array, note_surroundings, read_only_object
from .repair import AlmostJsonReader
from .strict import FINAL, read_strict
from .tokens import CLOSING_QUOTE, REPAIRS, Repair

_ESCAPED_OBJECT = re.compile(r'\{\s*\\"')
_QUOTED_OBJECT = re.compile(r"""["'“]\s*\{""")
_SCALAR = re.compile(r"(?:[-+.\w]*[0-9][-+.\w]*|true|false|null|True|False|None)(?![^\s<`~\[])")
_KIND = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}


def read_repaired(text: str, expect: str, fault: ReadingError) -> tuple[Any, tuple[Repair, ...]]:
    """Read a text that the strict reader refused.

    Args:
        expect: as that of `read_json`.
        fault: why it was refused.

    Raises:
        ReadingError: no repair gives it one meaning.
    """
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
        value = _read_filling(reader, start) if expect == "any" else refuse_other(text, [])
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


def read_encoded(encoded: str) -> tuple[dict[str, Any], tuple[Repair, ...]]:
    """Read the object that a JSON string holds; its errors count positions inside the decoded string."""
    repairs: set[Repair] = {"double-encoded"}
    fault = None
    try:
        value = read_strict(encoded)
    except ReadingError as error:
        fault = error
    if fault is not None:
        if fault.code in FINAL or len(encoded) > MAX_REPAIR_CHARS:
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


def refuse_other(text: str, value: Any) -> NoReturn:
    """Refuse what was read where one object belongs."""
    kind = _KIND.get(type(value), "a number")
    problem = f'found {kind} where one JSON object belongs; write {{"name": "value"}}.'
    raise refusal("not-an-object", problem, text, 0)
