"""How a failure reads: short, in our own words, derived only from the keyword, the schema and the value.

Nothing here depends on a validation library, on time or on hash order. `expected` says what would have been right, as a
phrase that follows the word "expected"; `got` shows the value, bounded whatever its size. Property names stand in
'single quotes', values in JSON.
"""

import json
from collections.abc import Iterable
from typing import Any

from .document import Document
from .equality import first_equal
from .failures import KeywordFailure
from .formats import SAMPLES
from .names import near_names

MAX_PHRASE = 80


def cut(text: str, limit: int = MAX_PHRASE) -> str:
    """At most `limit` characters, the last one an ellipsis where something was left out."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shown(value: Any, limit: int = MAX_PHRASE) -> str:
    """A value as one short line: scalars as JSON, containers by their size and first names."""
    if type(value) is str:
        # Sliced first, so that megabytes are not encoded for one line; one more, so that `cut` sees the excess.
        return cut(json.dumps(value[: limit + 1], ensure_ascii=False), limit)
    if type(value) is list:
        return f"an array of {_many(len(value), 'item')}"
    if type(value) is dict:
        return cut(f"an object with {_names(value)}" if value else "an empty object", limit)
    return cut(json.dumps(value), limit)


def quoted(name: str) -> str:
    """A property name in single quotes."""
    return "'" + cut(json.dumps(name[:41], ensure_ascii=False)[1:-1], 40) + "'"


def _names(names: Iterable[str], limit: int = 8) -> str:
    listed = list(names)
    return ", ".join(map(quoted, listed[:limit])) + ("…" if len(listed) > limit else "")


def _many(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{int(count)} {noun[:-1] + 'ies' if noun.endswith('y') else noun + 's'}"


def _or(phrases: Iterable[str]) -> str:
    listed = list(dict.fromkeys(phrases))
    return listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " or " + listed[-1]


def _one_of(values: list[Any], instance: Any) -> str:
    texts = {value: shown(value, 40) for value in values if type(value) is str}
    near = near_names(instance, texts, 2) if type(instance) is str else []
    ordered = [*near, *(value for value in values if value not in near)]
    if not ordered:
        return "nothing: no value is allowed here"
    return shown(ordered[0]) if len(ordered) == 1 else "one of " + ", ".join(shown(value, 40) for value in ordered)


def described(schema: Any, document: Document, depth: int = 0) -> str:
    """What a schema asks for, in a few words."""
    if type(schema) is not dict or depth > 4:
        return "any value" if schema else "nothing"
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            joined = (described(member, document, depth + 1) for member in schema[word][:6])
            return " and ".join(dict.fromkeys(joined)) if word == "allOf" else _or(joined)
    for target in document.targets(schema):
        return described(target, document, depth + 1)
    if "const" in schema:
        return shown(schema["const"])
    if "enum" in schema:
        return cut(_one_of(schema["enum"], None), 60)
    names = schema.get("type", "object" if "properties" in schema or "required" in schema else "any value")
    return _or(_typed(name, schema, document, depth) for name in ([names] if type(names) is str else names))


def _typed(name: str, schema: dict[str, Any], document: Document, depth: int) -> str:
    if name == "object" and schema.get("required"):
        return "object with " + _names(schema["required"], 4)
    if name == "array" and type(schema.get("items")) is dict and schema["items"]:
        return f"array of {described(schema['items'], document, depth + 1)}"
    if name == "string" and "format" in schema:
        return f"string ({schema['format']})"
    return name


_LIMITS = {
    "maximum": "a number <= {}",
    "exclusiveMaximum": "a number < {}",
    "minimum": "a number >= {}",
    "exclusiveMinimum": "a number > {}",
    "multipleOf": "a multiple of {}",
}
_COUNTS = {
    "maxLength": ("at most", "character"),
    "minLength": ("at least", "character"),
    "maxItems": ("at most", "item"),
    "minItems": ("at least", "item"),
    "maxProperties": ("at most", "property"),
    "minProperties": ("at least", "property"),
}


def expected(failure: KeywordFailure, document: Document) -> str:
    """What would have been right, as a phrase of at most 80 characters."""
    return cut(_expected(failure, document))


def _expected(failure: KeywordFailure, document: Document) -> str:
    word, schema = failure.keyword, failure.schema
    if word in _LIMITS:
        draft4 = schema[word] is True  # in draft 4, `exclusiveMaximum: true` changes what `maximum` means
        return _LIMITS[word].format(shown(schema[word[9:].lower()] if draft4 else schema[word]))
    if word in _COUNTS:
        return f"{_COUNTS[word][0]} {_many(schema[word], _COUNTS[word][1])}"
    if word == "type":
        return described(
            {key: schema[key] for key in ("type", "items", "required", "format") if key in schema}, document
        )
    if word == "enum":
        return _one_of(schema["enum"], failure.instance)
    if word == "const":
        return shown(schema["const"])
    if word == "pattern":
        return f"text that matches {document.given(schema['pattern'])}"
    if word == "format":
        return f"{schema['format']} such as {SAMPLES[schema['format']]}"
    if word in ("anyOf", "oneOf"):
        chosen = described({word: schema[word]}, document)
        return f"exactly one of: {chosen}" if failure.detail else chosen
    if word == "not":
        return f"anything but {described(schema['not'], document)}"
    return _expected_members(failure, document)


def _expected_members(failure: KeywordFailure, document: Document) -> str:
    word, schema, detail = failure.keyword, failure.schema, failure.detail
    if word == "required":
        kind = described(schema.get("properties", {}).get(detail, True), document)
        return f"required property {quoted(detail)}" + ("" if kind == "any value" else f" ({cut(kind, 30)})")
    if word == "dependentRequired":
        return f"property {quoted(detail[0])}, needed with {quoted(detail[1])}"
    if word in ("additionalProperties", "unevaluatedProperties"):
        known = list(schema.get("properties", ()))
        # A property that is given already cannot be the one that was misspelt.
        near = near_names(detail, [name for name in known if name not in failure.instance], 1)
        if near:
            return f"only known properties (did you mean {quoted(near[0])}?)"
        return f"only the properties {_names(known)}" if known else "no further property"
    if word == "propertyNames":
        wanted = _expected(detail[1], document) if detail[1] else "not there"
        return f"property names that are {wanted}"
    if word == "uniqueItems":
        return "items that are all different"
    if word in ("contains", "minContains", "maxContains"):
        side = "at most" if word == "maxContains" else "at least"
        return f"{side} {_many(schema.get(word, 1) if word != 'contains' else 1, 'item')} being " + described(
            schema["contains"], document
        )
    if word == "items":
        return f"at most {_many(detail, 'item')}"
    if word == "unevaluatedItems":
        return "no further items"
    return described(schema, document) if word == "schema" else "no value here; leave it out"


def got(failure: KeywordFailure) -> str:
    """What was there instead, as a phrase of at most 80 characters."""
    word, instance, detail = failure.keyword, failure.instance, failure.detail
    if word in ("required", "dependentRequired"):
        missing = detail if word == "required" else detail[0]
        unknown = [name for name in instance if name not in failure.schema.get("properties", ())]
        near = near_names(missing, unknown, 1)
        return cut(f"{quoted(near[0])}: rename it?" if near else shown(instance))
    if word in ("additionalProperties", "unevaluatedProperties"):
        return quoted(detail)
    if word == "propertyNames":
        return quoted(detail[0])
    if word == "uniqueItems":
        equal = first_equal(instance)
        return f"equal items at {equal[0]} and {equal[1]}" if equal else shown(instance)
    if word == "oneOf" and detail:
        return cut(f"{shown(instance, 40)}, which fits more than one of them")
    if word in ("minLength", "maxLength"):
        return f"{shown(instance, 50)} ({_many(len(instance), 'character')})"
    if word in ("minProperties", "maxProperties"):
        return _many(len(instance), "property")
    if type(instance) in (list, dict) and word == "type":
        return shown(instance, 60)
    return shown(instance)
