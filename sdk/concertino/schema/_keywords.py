"""JSON Schema's keywords: which dialect knows them, what shape they need, where sub-schemas sit.

A *dialect* is written as the year or number of its draft: 4, 6, 7, 2019, 2020. The table does the work of the
metaschemas without loading them, which makes refusals fast, offline, and worded by us. `sub_schemas` is the
only place that knows where schemas nest: a `$ref` inside an `enum` or a property called "pattern" is data,
not schema. Keywords that are not in the table are annotations and are ignored, as the standard asks.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ._faults import Path

DIALECTS = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
}
LATEST = 2020
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


class Keyword(NamedTuple):
    """The shape a keyword's value needs, and the first and last dialect that know the keyword."""

    shape: str
    since: int = 4
    until: int = LATEST


KEYWORDS: dict[str, Keyword] = {
    "$ref": Keyword("text"),
    "$recursiveRef": Keyword("text", 2019, 2019),
    "$dynamicRef": Keyword("text", 2020),
    "$anchor": Keyword("text", 2019),
    "$dynamicAnchor": Keyword("text", 2020),
    "$id": Keyword("text", 6),
    "id": Keyword("text", 4, 4),
    "$comment": Keyword("text", 7),
    "title": Keyword("text"),
    "description": Keyword("text"),
    "format": Keyword("text"),
    "examples": Keyword("array", 6),
    "type": Keyword("types"),
    "default": Keyword("any"),
    "enum": Keyword("array"),
    "const": Keyword("any", 6),
    "multipleOf": Keyword("positive"),
    "maximum": Keyword("number"),
    "minimum": Keyword("number"),
    "exclusiveMaximum": Keyword("number"),
    "exclusiveMinimum": Keyword("number"),
    "maxLength": Keyword("count"),
    "minLength": Keyword("count"),
    "pattern": Keyword("text"),
    "maxItems": Keyword("count"),
    "minItems": Keyword("count"),
    "uniqueItems": Keyword("flag"),
    "minContains": Keyword("count", 2019),
    "maxContains": Keyword("count", 2019),
    "maxProperties": Keyword("count"),
    "minProperties": Keyword("count"),
    "required": Keyword("names"),
    "dependentRequired": Keyword("names_by_name", 2019),
    "properties": Keyword("schema_by_name"),
    "patternProperties": Keyword("schema_by_name"),
    "additionalProperties": Keyword("schema"),
    "propertyNames": Keyword("schema", 6),
    "unevaluatedProperties": Keyword("schema", 2019),
    "items": Keyword("schema_or_schemas"),
    "additionalItems": Keyword("schema", 4, 2019),
    "prefixItems": Keyword("schemas", 2020),
    "contains": Keyword("schema", 6),
    "unevaluatedItems": Keyword("schema", 2019),
    "allOf": Keyword("schemas"),
    "anyOf": Keyword("schemas"),
    "oneOf": Keyword("schemas"),
    "not": Keyword("schema"),
    "if": Keyword("schema", 7),
    "then": Keyword("schema", 7),
    "else": Keyword("schema", 7),
    "dependentSchemas": Keyword("schema_by_name", 2019),
    "dependencies": Keyword("schema_or_names_by_name"),
    "$defs": Keyword("schema_by_name", 2019),
    "definitions": Keyword("schema_by_name"),
}


def knows(keyword: str, dialect: int) -> bool:
    """Does the dialect give this keyword a meaning?"""
    entry = KEYWORDS.get(keyword)
    return entry is not None and entry.since <= dialect <= entry.until


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_schema(value: Any) -> bool:
    return type(value) in (dict, bool)


def _are_schemas(value: Any) -> bool:
    return type(value) is list and bool(value) and all(map(_is_schema, value))


def _are_names(value: Any) -> bool:
    return type(value) is list and all(type(name) is str for name in value) and len(set(value)) == len(value)


def _are_types(value: Any) -> bool:
    return value in TYPES if type(value) is str else bool(value) and _are_names(value) and set(value) <= set(TYPES)


def _by_name(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is dict and all(map(check, value.values()))


SHAPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "any": (lambda value: True, "any value"),
    "text": (lambda value: type(value) is str, "text"),
    "flag": (lambda value: type(value) is bool, "true or false"),
    "array": (lambda value: type(value) is list, "an array"),
    "number": (_is_number, "a number"),
    "positive": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "count": (_is_count, "a whole number, 0 or more"),
    "types": (_are_types, f"one of {', '.join(TYPES)}, or a list of different ones"),
    "names": (_are_names, "a list of different property names"),
    "names_by_name": (_by_name(_are_names), "an object of lists of property names"),
    "schema": (_is_schema, "a schema (an object, true or false)"),
    "schemas": (_are_schemas, "a list of one or more schemas"),
    "schema_by_name": (_by_name(_is_schema), "an object whose values are schemas"),
    "schema_or_schemas": (
        lambda value: _is_schema(value) or _are_schemas(value),
        "a schema or a list of schemas",
    ),
    "schema_or_names_by_name": (
        _by_name(lambda value: _is_schema(value) or _are_names(value)),
        "an object of schemas or lists of property names",
    ),
}


def shape_of(keyword: str, dialect: int) -> str:
    """The shape a keyword needs in a dialect."""
    if dialect == 4 and keyword in ("exclusiveMaximum", "exclusiveMinimum"):
        return "flag"
    if keyword == "items":
        return "schema" if dialect == LATEST else "schema_or_schemas"
    return KEYWORDS[keyword].shape


_HOLDERS = {keyword: entry for keyword, entry in KEYWORDS.items() if "schema" in entry.shape}
"""The keywords that hold schemas."""


def sub_schemas(schema: dict[str, Any], dialect: int) -> Iterator[tuple[Path, Any]]:
    """Every direct sub-schema of a well-shaped schema, with its path inside it."""
    if "$ref" in schema and dialect <= 7:  # nothing beside it counts, but definitions can be referred to
        schema = {"definitions": schema.get("definitions", {})}
    for keyword in [word for word in schema if word in _HOLDERS]:
        entry, value = _HOLDERS[keyword], schema[keyword]
        if not entry.since <= dialect <= entry.until:
            continue
        if _is_schema(value) and "by_name" not in entry.shape:
            yield (keyword,), value
            continue
        members = enumerate(value) if type(value) is list else value.items()
        for key, member in members:
            if _is_schema(member):
                yield (keyword, key), member
