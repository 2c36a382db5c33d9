"""Schemas that no value can ever meet: found where two plain keywords contradict each other.

The invariant: what is found is certain. What would need thought, such as patterns, `not` or references, is passed over,
so a schema without a finding may still be one that nothing meets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "object": (dict,),
    "array": (list,),
    "boolean": (bool,),
    "null": (type(None),),
}
_RANGES = (
    ("string", "minLength", "maxLength"),
    ("array", "minItems", "maxItems"),
    ("object", "minProperties", "maxProperties"),
    ("number", "minimum", "maximum"),
    ("integer", "minimum", "maximum"),
)


def contradiction(schema: Any, where: str = "") -> str:
    """Why nothing can meet a schema, with the place as a JSON pointer; empty where that is not certain.

    Args:
        schema: of an admitted size, so that recursion is bounded.
        where: the pointer of the schema itself.
    """
    if schema is False:
        return f"{where or '/'}: false admits nothing"
    if not isinstance(schema, dict) or "$ref" in schema:
        return ""
    return next((found for found in _found(schema, where) if found), "")


def _found(schema: Mapping[str, Any], where: str) -> Iterator[str]:
    kinds = _kinds(schema)
    yield _values(schema, kinds, where)
    # One type alone: of several, another one may have no such bound.
    if len(kinds) == 1:
        yield _bounds(schema, kinds[0], where)
        yield from _parts(schema, kinds[0], where)
    for at, each in enumerate(_list(schema, "allOf")):
        yield contradiction(each, f"{where}/allOf/{at}")
    for word in ("anyOf", "oneOf"):
        found = [contradiction(each, f"{where}/{word}/{at}") for at, each in enumerate(_list(schema, word))]
        yield found[0] if found and all(found) else ""


def _values(schema: Mapping[str, Any], kinds: list[str], where: str) -> str:
    values = schema.get("enum") if "enum" in schema else [schema["const"]] if "const" in schema else None
    if not kinds or not isinstance(values, list) or any(_is(value, kind) for value in values for kind in kinds):
        return ""
    word = "enum" if "enum" in schema else "const"
    shown = ", ".join(map(repr, values[:3])) + (", …" if len(values) > 3 else "")
    return f"{where or '/'}: the type is {' or '.join(kinds)}, and {word} has no value of it ({shown[:80]})"


def _bounds(schema: Mapping[str, Any], kind: str, where: str) -> str:
    for of, least, most in _RANGES:
        low, high = (value if _is(value := schema.get(word), "number") else None for word in (least, most))
        if of == kind and low is not None and high is not None and low > high:
            return f"{where or '/'}: {least} {low} is more than {most} {high}"
    return ""


def _parts(schema: Mapping[str, Any], kind: str, where: str) -> Iterator[str]:
    """What is wrong with a part that every value has to have."""
    if kind == "object":
        given = schema.get("properties")
        properties: dict[str, Any] = given if isinstance(given, dict) else {}
        open_ = schema.get("additionalProperties") is not False or "patternProperties" in schema
        for name in _list(schema, "required"):
            if isinstance(name, str) and name in properties:
                yield contradiction(properties[name], f"{where}/properties/{name}")
            elif not open_:
                yield f"{where or '/'}: {name!r} is required, and additionalProperties admits no such name"
    if kind == "array" and _is(schema.get("minItems"), "number") and schema["minItems"] >= 1:
        items = schema.get("items")
        # With `prefixItems` the first ones need not be such items.
        yield contradiction(items, f"{where}/items") if "prefixItems" not in schema else ""


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type")
    found = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    return [kind for kind in found if isinstance(kind, str)]


def _list(schema: Mapping[str, Any], word: str) -> list[Any]:
    value = schema.get(word)
    return value if isinstance(value, list) else []


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return not isinstance(value, bool) and (whole or (kind == "number" and isinstance(value, float)))
    return isinstance(value, _KINDS.get(kind, ()))
