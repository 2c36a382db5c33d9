"""Values of rows, as messages and tasks write them."""

from __future__ import annotations

from typing import Any

_SHOWN = 60
_KINDS = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}


def brief(value: Any) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def kind_of(value: Any) -> str:
    """What JSON calls a value: "a number"."""
    return _KINDS.get(type(value), "null" if value is None else f"a {type(value).__name__}")


def is_number(value: Any) -> bool:
    """Whether a value is a number of JSON; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_text(value: float) -> str:
    """A number as text, without `.0`."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
