"""`read_json`: strict first, repaired only when unambiguous.

Strict JSON is the hot path and leaves nothing to repair. Any other text goes through the repairing reader,
whose refusals also carry exact positions. A string that holds an object (a call encoded twice) is opened
once, where an object is expected.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .errors import ReadingError
from .strict import FINAL, read_strict

if TYPE_CHECKING:
    from .tokens import Repair


@dataclass(slots=True)
class JsonReading:
    """A value read from model text, and the names of the repairs it needed, in the order of `tokens.REPAIRS`."""

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
        if strict or error.code in FINAL:
            raise
        # Repaired outside of the `except`, so that a second refusal does not carry this one as its context.
        fault = error
    if fault is not None:
        from .lenient import read_repaired  # five modules, which a model that writes strict JSON never needs

        value, repairs = read_repaired(text, expect, fault)
    if expect == "object" and type(value) is not dict:
        from .lenient import read_encoded, refuse_other

        if strict or type(value) is not str or not value.lstrip().startswith("{"):
            refuse_other(text, value)
        value, repairs = read_encoded(value)
    if maths_fields:
        from .latex import refuse_hidden_commands

        refuse_hidden_commands(value, maths_fields, text)
    return JsonReading(value, repairs)
