"""The schema dialect of the function-calling leaderboard, as real JSON schemas.

Its types are Python's (`dict`, `float`, `tuple`, `any`), Java's and JavaScript's (`String`, `ArrayList`, `long`,
`HashMap`). Each becomes a type of JSON Schema; `any` and an unknown type become no type at all, which any
value fits. Everything else of a schema stays.

The invariant: `json_schema` gives a schema of type object that refers to nothing of the one it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_NAMES = {
    "array": "array arraylist list tuple set hashset queue stack vector linkedlist",
    "object": "object dict hashmap map hashtable",
    "string": "string str char character",
    "integer": "integer int long short byte bigint",
    "number": "number float double decimal",
    "boolean": "boolean bool",
    "null": "null none nonetype void",
    "": "any",
}
_TYPES = {name: known for known, names in _NAMES.items() for name in names.split()}

Tell = Callable[[str], None]


def json_schema(parameters: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """The JSON schema of a function's parameters.

    Args:
        parameters: in the dialect; its outermost type is `dict`.
        tell: is given one sentence for each type that is unknown.
    """
    schema = _mapped(parameters, "parameters", tell)
    # A tool's schema has to be of type object, also where a function takes nothing.
    return {**schema, "type": "object", "properties": schema.get("properties", {})}


def _mapped(schema: Any, place: str, tell: Tell) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type":
            out |= _type(value, place, tell)
        elif key == "properties" and isinstance(value, Mapping):
            out[key] = {name: _mapped(inner, f"{place}.{name}", tell) for name, inner in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = _mapped(value, f"{place}.{key}", tell)
        else:
            out[key] = value
    return out


def _type(value: Any, place: str, tell: Tell) -> dict[str, Any]:
    names = value if isinstance(value, list) else [value]
    known = [_TYPES.get(name.strip().lower()) if isinstance(name, str) else None for name in names]
    for name, found in zip(names, known, strict=True):
        if found is None:
            tell(f"{place} has the type {name!r}, which is unknown; any value is taken")
    # One unknown type makes the whole list say nothing: a value of that type would be refused.
    if not all(known):
        return {}
    return {"type": [*dict.fromkeys(known)] if isinstance(value, list) else known[0]}
