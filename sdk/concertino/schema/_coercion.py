"""Coercion, a named repair: text that can only have been meant as a number or a boolean.

Models write `"5"` where the schema wants 5. That is repaired, and named, only where the schema leaves one
reading: the place has exactly one scalar type (integer, number or boolean), and no alternatives. Text is
never the target, nothing else is ever changed, and the given value is left as it is: the repaired parts are
new objects.
"""

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

from ._faults import Path, pointer_of
from ._guard import MAX_DIGITS
from ._normal import NormalSchema

_DEEPER = frozenset({float, dict, list})
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def coerced(normal: NormalSchema, instance: Any) -> tuple[Any, tuple[str, ...]]:
    """The repaired value and the repairs (`coerced /count`); the same object and () if none applies."""
    repairs: list[str] = []
    value = _repaired(normal, [normal.root], instance, (), repairs)
    return value, tuple(repairs)


def _repaired(normal: NormalSchema, schemas: list[Any], value: Any, path: Path, repairs: list[str]) -> Any:
    kind = type(value)
    if kind not in (str, float, dict, list) or not schemas:
        return value
    together = list(_in_force(normal, schemas))
    if kind is str:
        return _scalar(together, value, path, repairs)
    if kind is float:
        return int(value) if value.is_integer() and _only_type(together) == "integer" else value
    changed: dict[Any, Any] = {}
    for key, member in value.items() if kind is dict else enumerate(value):
        inner = [found for schema in together for found in _members(normal, schema, key)]
        repaired = _repaired(normal, inner, member, (*path, key), repairs)
        if repaired is not member:
            changed[key] = repaired
    if not changed:
        return value
    if kind is dict:
        return {**value, **changed}
    return [changed.get(index, member) for index, member in enumerate(value)]


def _in_force(normal: NormalSchema, schemas: list[Any]) -> Iterator[dict[str, Any]]:
    """The schemas that surely apply to the same value: themselves, their `$ref` and their `allOf`."""
    pending = list(schemas)
    while pending:
        schema = pending.pop()
        if type(schema) is dict:
            yield schema
            pending += schema.get("allOf", ())
            if "$ref" in schema:
                pending.append(normal.target(schema["$ref"]))


def _members(normal: NormalSchema, schema: dict[str, Any], key: str | int) -> Iterator[Any]:
    if type(key) is int:
        prefix = schema.get("prefixItems", ())
        yield prefix[key] if key < len(prefix) else schema.get("items", True)
        return
    claimed = False
    if key in schema.get("properties", ()):
        claimed = True
        yield schema["properties"][key]
    for pattern, member in schema.get("patternProperties", {}).items():
        if normal.matchers[pattern].matches(str(key)):
            claimed = True
            yield member
    if not claimed:
        yield schema.get("additionalProperties", True)


def _scalar(together: list[dict[str, Any]], text: str, path: Path, repairs: list[str]) -> Any:
    value = _read(text, _only_type(together))
    if value is not text:
        repairs.append(f"coerced {pointer_of(path)}")
    return value


def _only_type(together: list[dict[str, Any]]) -> Any:
    """The one type that a value may have; None if that is not certain."""
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
    if len(text) > MAX_DIGITS:
        return text
    if target in ("integer", "number") and _INTEGER.fullmatch(text):
        return int(text)
    if target == "number" and _NUMBER.fullmatch(text) and isfinite(float(text)):
        return float(text)
    if target == "boolean" and text in ("true", "false"):
        return text == "true"
    return text
