"""Coercion, a named repair: text that can only have been meant as a number or a boolean.

Models write `"5"` where the schema wants 5. That is repaired, and named, only where the schema leaves one
reading: the place has exactly one scalar type (integer, number or boolean), and no alternatives. Text is
never the target, nothing else is ever changed, and the given value is left as it is: the repaired parts are
new objects.

A valid value may need it too: JSON Schema takes 3.0 for an integer, and a Python function with an `int` parameter may
not. `integers` finds out once where a schema asks for integers, so that a value is searched there alone.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from math import isfinite
from typing import Any

from .document import Document
from .errors import Path, pointer_of
from .guard import MAX_DIGITS

Matches = Callable[[str, str], bool]
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
            return _integer(value) if _only_type(together) == "integer" else value
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


# -- integers in valid values ------------------------------------------------------------------------------------------

Change = Callable[[Any], Any]
"""Gives the value with whole floats made integers; the same object if there are none."""


def integers(document: Document, matches: Matches) -> Change | None:
    """What makes integers of whole floats in valid values of a schema; None if it asks for no integer anywhere."""
    if not any("integer" in json.dumps(schema.get("type", "")) for schema in document.sub_schemas):
        return None
    places = _Places(document, matches)
    if any(document.view(schema) is not schema for schema in document.sub_schemas):
        return places.searched([document.root])  # older dialects are rare
    return places.change([document.root])


class _Places:
    """Where a schema asks for integers."""

    __slots__ = ("_known", "_search")

    def __init__(self, document: Document, matches: Matches) -> None:
        self._search = _Coercion(document, matches, [])
        # By the schemas in force: two places often refer to one definition, and so would its places below.
        self._known: dict[tuple[int, ...], Change | None] = {}

    def searched(self, schemas: list[Any]) -> Change:
        """Looks at every part of a value."""
        return lambda value: self._search.repaired(schemas, value, ())

    def change(self, schemas: list[Any]) -> Change | None:
        """What has to be done with a value to which these schemas apply."""
        together = list(self._search._in_force(schemas))
        same = tuple(id(schema) for schema in together)
        if same not in self._known:
            # Until it is known: a schema that contains itself is searched value by value from there on.
            self._known[same] = self.searched(schemas)
            if not any(_is_open(schema) for schema in together):  # else names are not known in advance
                self._known[same] = self._made(together)
        return self._known[same]

    def _made(self, together: list[dict[str, Any]]) -> Change | None:
        if _only_type(together) == "integer":
            return _integer
        names = dict.fromkeys(name for schema in together for name in schema.get("properties", ()))
        fields = [(name, change) for name in names if (change := self._inside(together, name)) is not None]
        item = self._inside(together, 0)
        if item is None:
            return partial(_in_object, fields) if fields else None
        return partial(_in_either, fields, item) if fields else partial(_in_array, item)

    def _inside(self, together: list[dict[str, Any]], key: str | int) -> Change | None:
        inner = [found for schema in together for found in self._search._members(schema, key)]
        return self.change(inner)


def _is_open(schema: dict[str, Any]) -> bool:
    named = "patternProperties" in schema or "prefixItems" in schema
    return named or type(schema.get("additionalProperties")) is dict


def _integer(value: Any) -> Any:
    return int(value) if type(value) is float and value.is_integer() else value


def _in_object(fields: list[tuple[str, Change]], value: Any) -> Any:
    if type(value) is not dict:
        return value
    changed = {}
    for name, change in fields:
        if name in value:
            old = value[name]
            new = change(old)
            if new is not old:
                changed[name] = new
    return {**value, **changed} if changed else value


def _in_array(item: Change, value: Any) -> Any:
    if type(value) is not list:
        return value
    changed = [item(member) for member in value]
    return changed if any(new is not old for new, old in zip(changed, value, strict=True)) else value


def _in_either(fields: list[tuple[str, Change]], item: Change, value: Any) -> Any:
    return _in_object(fields, value) if type(value) is dict else _in_array(item, value)
