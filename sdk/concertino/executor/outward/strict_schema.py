"""A schema of arguments in the strict form that OpenAI's services take.

A strict schema names every property as required and is closed. So an optional argument takes null as well. Deeper
inside, where nobody could tell a null that is meant from one that is not, an optional property has no strict form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "description"),
    *("$ref", "$defs", "pattern", "format", "minItems", "maxItems", "multipleOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
"""Keywords that OpenAI takes in strict schemas."""


def strict_form(schema: Mapping[str, Any]) -> tuple[dict[str, Any] | None, frozenset[str]]:
    """The schema in strict form, and the arguments that are null where they are left out; None where it has none."""
    changed: dict[str, Any] = _closed(schema)
    properties = changed.setdefault("properties", {})
    changed.update(type="object", required=list(properties))
    changed.setdefault("additionalProperties", False)
    optional: set[str] = set()
    for name in properties.keys() - set(schema.get("required", ())):
        each = properties[name]
        if isinstance(each, dict):
            each.pop("default", None)  # of an argument that is left out, and that is null
        if not _takes_null(each):
            optional.add(name)
            properties[name] = {"anyOf": [each, {"type": "null"}]}
    return (changed, frozenset(optional)) if _is_strict(changed) else (None, frozenset())


def _closed(schema: Any) -> Any:
    """A copy in which objects with properties take no others, unless it says that they do."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    copied = {key: value if key in ("const", "enum") else _closed(value) for key, value in schema.items()}
    if copied.get("type") == "object" and isinstance(copied.get("properties"), dict):
        copied.setdefault("additionalProperties", False)
    return copied


def _takes_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return schema is True
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return "null" in kinds or any(_takes_null(each) for each in schema.get("anyOf", ())) or not schema


def _is_strict(schema: Any) -> bool:
    """Whether a service takes a schema as strict: closed objects, every property required, known keywords."""
    if not isinstance(schema, Mapping) or not schema or schema.keys() - _KEYWORDS:
        return False
    properties = schema.get("properties", {})
    is_object = schema.get("type") == "object" or properties
    if is_object and schema.get("additionalProperties") is not False:
        return False
    if is_object and set(schema.get("required", ())) != set(properties):
        return False
    inner = [*properties.values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    if schema.get("type") == "array":
        inner.append(schema.get("items"))
    return all(_is_strict(each) for each in inner)
