"""Schemas for replies: what the API can hold of a JSON schema.

The API enforces a part of JSON Schema. What it has no word for but that only narrows values (bounds, patterns) goes
into the description; the executor checks every reply against the whole schema anyway. A schema whose *shape* the API
cannot say (open objects, recursion, any value) is asked for in words instead.

Invariant: whatever satisfies the original and the closed shape satisfies what is sent, so no right answer is ruled out,
save properties that an open object does not name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MOST_OPTIONAL = 24
"""Properties that are not required, in a whole schema."""
MOST_UNIONS = 16
"""Places with alternatives, in a whole schema."""
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})
_OPEN = ("patternProperties", "propertyNames", "prefixItems", "dependentSchemas", "unevaluatedProperties")
"""What no description can replace."""
_DEFINITIONS = ("$defs", "definitions")
_IGNORED = frozenset({"$schema", "$id", "$comment", "examples", "default", "title", "additionalProperties"})


class _Unsayable(Exception):
    """The API has no form for this schema."""


def sayable(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema in the form that the API enforces; None if it has none."""
    try:
        said = _Writer(schema).write(schema)
    except _Unsayable:
        return None
    return said if said.get("type") == "object" or "$ref" in said else None


class _Writer:
    """Writes one schema, and counts what the API limits."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._inside: tuple[str, ...] = ()
        self._optional = 0
        self._unions = 0

    def write(self, schema: Any) -> dict[str, Any]:
        """One schema of the tree."""
        if not isinstance(schema, Mapping) or any(name in schema for name in _OPEN):
            raise _Unsayable
        if "$ref" in schema:
            # Definitions are written where they are meant; so a description beside `$ref` is kept, and recursion seen.
            return self._meant(schema)
        rest = {name: value for name, value in schema.items() if name not in _IGNORED and name not in _DEFINITIONS}
        description = rest.pop("description", "")
        said = self._shape(rest, schema)
        if rest:
            narrowed = json.dumps(rest, ensure_ascii=False)
            description = f"{description}\n{narrowed}" if description else narrowed
        return {**said, "description": description} if description else said

    def _meant(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        ref = schema["$ref"]
        kind, _, name = str(ref).removeprefix("#/").partition("/")
        found = self._root.get(kind, {}).get(name) if kind in _DEFINITIONS else None
        if not isinstance(found, Mapping) or ref in self._inside:
            raise _Unsayable
        before, self._inside = self._inside, (*self._inside, ref)
        beside = {name: value for name, value in schema.items() if name == "description"}
        said = self.write({**found, **beside})
        self._inside = before
        return said

    def _shape(self, rest: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        """What the schema demands of the form of a value; takes it out of `rest`."""
        for word in ("enum", "const"):
            if word in rest:
                rest.pop("type", None)
                return {word: _plain(rest.pop(word))}
        for word in ("anyOf", "oneOf"):
            if word in rest:
                return self._union(rest.pop(word))
        kind = rest.pop("type", None)
        if isinstance(kind, list):
            alternatives = [{**rest, "type": each} for each in kind]
            rest.clear()
            return self._union(alternatives)
        if kind == "object":
            return self._object(rest, schema)
        if kind == "array":
            least = rest.pop("minItems", 0)
            if least > 1:
                rest["minItems"] = least
            return {"type": "array", "items": self.write(rest.pop("items", None)), "minItems": min(least, 1)}
        if kind not in ("string", "integer", "number", "boolean", "null"):
            raise _Unsayable
        known = {"format": rest.pop("format")} if rest.get("format") in _FORMATS else {}
        return {"type": kind, **known}

    def _union(self, alternatives: Any) -> dict[str, Any]:
        self._unions += 1
        if self._unions > MOST_UNIONS:
            raise _Unsayable
        return {"anyOf": [self.write(each) for each in alternatives]}

    def _object(self, rest: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        properties, required = rest.pop("properties", {}), list(rest.pop("required", ()))
        # An object that is open on purpose cannot be said: the API closes every object.
        if schema.get("additionalProperties") or not (properties or schema.get("additionalProperties") is False):
            raise _Unsayable
        self._optional += len(set(properties) - set(required))
        if self._optional > MOST_OPTIONAL or not set(required) <= set(properties):
            raise _Unsayable
        written = {name: self.write(each) for name, each in properties.items()}
        return {"type": "object", "properties": written, "required": required, "additionalProperties": False}


def _plain(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    if not all(each is None or isinstance(each, (str, int, float, bool)) for each in values):
        raise _Unsayable
    return value
