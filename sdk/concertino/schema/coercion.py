"""Coercion, a named repair: text that can only have been meant as a number or a boolean.

Models write `"5"` where the schema wants 5. That is repaired, and named, only where the schema leaves one
reading: the place has exactly one scalar type (integer, number or boolean), and no alternatives. Text is
never the target, nothing else is ever changed, and the given value is left as it is: the repaired parts are
new objects.
"""

import json
import re
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

from .document import Document
from .errors import Path, pointer_of
from .guard import MAX_DIGITS

Matches = Callable[[str, str], bool]
_DEEPER = frozenset({float, dict, list})
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def coerced(document: Document, matches: Matches, instance: Any) -> tuple[Any, tuple[str, ...]]:
    """The repaired value and the repairs (`coerced /count`); the same object and () if none applies."""
    repairs: list[str] = []
    value = _Coercion(document, matches, repairs).repaired([document.root], instance, ())
    return value, tuple(repairs)


class _Coercion:
    __slots__ = ("_document", "_matches", "_repairs")

    def __init__(self, document: Document, matches: Matches, repairs: list[str]) -> None:
        self._document = document
        self._matches = matches
        self._repairs = repairs

    def repaired(self, schemas: list[Any], value: Any, path: Path) -> Any:
        kind = type(value)
        if kind not in (str, float, dict, list) or not schemas:
            return value
        together = list(self._in_force(schemas))
        if kind is str:
            new = _read(value, _only_type(together))
            if new is not value:
                self._repairs.append(f"coerced {pointer_of(path)}")
            return new
        if kind is float:
            # JSON Schema takes 3.0 for an integer; a Python function with an `int` parameter may not.
            return int(value) if value.is_integer() and _only_type(together) == "integer" else value
        changed: dict[Any, Any] = {}
        for key, member in value.items() if kind is dict else enumerate(value):
            inner = [found for schema in together for found in self._members(schema, key)]
            repaired = self.repaired(inner, member, (*path, key))
            if repaired is not member:
                changed[key] = repaired
        if not changed:
            return value
        if kind is dict:
            return {**value, **changed}
        return [changed.get(index, member) for index, member in enumerate(value)]

    def _in_force(self, schemas: list[Any]) -> Iterator[dict[str, Any]]:
        """The schemas that surely apply to the same value: themselves, what they refer to, and their `allOf`."""
        pending = list(schemas)
        while pending:
            schema = pending.pop()
            if type(schema) is dict:
                pending += self._document.targets(schema)
                schema = self._document.view(schema)
                pending += schema.get("allOf", ())
                yield schema

    def _members(self, schema: dict[str, Any], key: str | int) -> Iterator[Any]:
        if type(key) is int:
            prefix = schema.get("prefixItems", ())
            yield prefix[key] if key < len(prefix) else schema.get("items", True)
            return
        claimed = False
        if key in schema.get("properties", ()):
            claimed = True
            yield schema["properties"][key]
        for pattern, member in schema.get("patternProperties", {}).items():
            if self._matches(pattern, str(key)):
                claimed = True
                yield member
        if not claimed:
            yield schema.get("additionalProperties", True)


def _only_type(together: list[dict[str, Any]]) -> Any:
    """The one type that a value may have; None if that is not certain."""
    # As JSON, because `type` may be a list, which a set cannot hold.
    types = {json.dumps(schema["type"]) for schema in together if "type" in schema}
    if len(types) != 1 or any("anyOf" in schema or "oneOf" in schema for schema in together):
        return None
    only = json.loads(types.pop())
    return only[0] if type(only) is list and len(only) == 1 else only


def holds_whole_float(value: Any) -> bool:
    """Whether a whole number is written with a fraction, such as 3.0, anywhere in JSON data."""
    kind = type(value)
    if kind is float:
        return bool(value.is_integer())
    if kind is dict:
        return any(holds_whole_float(member) for member in value.values() if type(member) in _DEEPER)
    if kind is list:
        return any(holds_whole_float(member) for member in value if type(member) in _DEEPER)
    return False


def _read(text: str, target: Any) -> Any:
    # No real number is longer, and `int` takes quadratic time.
    if len(text) > MAX_DIGITS:
        return text
    if target in ("integer", "number") and _INTEGER.fullmatch(text):
        return int(text)
    if target == "number" and _NUMBER.fullmatch(text) and isfinite(float(text)):
        return float(text)
    if target == "boolean" and text in ("true", "false"):
        return text == "true"
    return text
