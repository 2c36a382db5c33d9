"""Seeded generators of schemas and values for the agreement tests.

`random_schema` draws from the whole admitted subset (recursion, patterns, formats and combinators included);
`random_value` draws JSON that is near to what such schemas talk about, so that both verdicts are frequent.
"""

import random
from typing import Any

NAMES = ("a", "b", "c", "x-1", "Zoë")
TEXTS = (
    "",
    "a",
    "ab",
    "aXb",
    "12",
    "foo bar",
    "é",
    "\U0001f600",
    "2024-02-29",
    "a@b.de",
    "::1",
    "12:00:00Z",
    "\n",
    "\r",
)
NUMBERS = (0, 1, -1, 2, 3.0, 0.5, -2.5, 10, 1e20, 10**20, 2**53 + 1, float(2**53), 0.1, 0.3, 1e-7)
PATTERNS = (
    "^a",
    "b$",
    r"^\d+$",
    r"\w",
    r"^[^a-c]*$",
    "(a|b){1,2}",
    r"\bfoo\b",
    ".",
    r"^\S+$",
    r"^\p{L}+$",
    "a.b",
    "^$",
    r"\B",
)
FORMATS = ("date", "email", "ipv6", "time", "hostname", "uuid", "regex", "date-time", "uri", "ipv4")
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")


def random_value(rng: random.Random, depth: int = 0) -> Any:
    """A small JSON value."""
    kind = rng.randrange(8 if depth < 3 else 5)
    if kind == 0:
        return rng.choice((None, True, False))
    if kind in (1, 2):
        return rng.choice(NUMBERS)
    if kind in (3, 4):
        return rng.choice(TEXTS)
    if kind in (5, 6):
        return {name: random_value(rng, depth + 1) for name in rng.sample(NAMES, rng.randrange(4))}
    return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]


def random_schema(rng: random.Random) -> dict[str, Any]:
    """A schema in 2020-12 or draft 7 with two referenced definitions."""
    draft7 = rng.random() < 0.3
    schema = _object_schema(rng, 0, draft7)
    if draft7:
        schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    schema["$defs" if not draft7 else "definitions"] = {
        "p": _object_schema(rng, 1, draft7),
        "q": _part(rng, 1, draft7),
    }
    return schema


def _part(rng: random.Random, depth: int, draft7: bool) -> Any:
    if rng.random() < 0.08:
        return rng.random() < 0.6
    if rng.random() < 0.08:
        return {
            "$ref": rng.choice(
                ("#", "#/definitions/p", "#/definitions/q") if draft7 else ("#", "#/$defs/p", "#/$defs/q")
            )
        }
    return _object_schema(rng, depth, draft7)


def _object_schema(rng: random.Random, depth: int, draft7: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(rng.randrange(1, 4)):
        makers = _LEAVES if depth > 2 or rng.random() < 0.45 else _BRANCHES
        schema.update(rng.choice(makers)(rng, depth + 1, draft7))
    return schema


def _types(rng: random.Random, depth: int, draft7: bool) -> dict[str, Any]:
    return {"type": rng.choice(TYPES) if rng.random() < 0.6 else rng.sample(TYPES, rng.randrange(1, 4))}


def _limits(rng: random.Random, depth: int, draft7: bool) -> dict[str, Any]:
    counted = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
    word = rng.choice((*counted, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
    if word == "multipleOf":
        return {word: rng.choice((1, 2, 0.5, 0.1, 3, 1e-7))}
    return {word: rng.randrange(4) if word in counted else rng.choice(NUMBERS)}


def _values(rng: random.Random, depth: int, draft7: bool) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"const": random_value(rng, 2)}
    return {"enum": [random_value(rng, 2) for _ in range(rng.randrange(1, 4))]}


def _words(rng: random.Random, depth: int, draft7: bool) -> dict[str, Any]:
    return {"pattern": rng.choice(PATTERNS)} if rng.random() < 0.5 else {"format": rng.choice(FORMATS)}


def _names(rng: random.Random, depth: int, draft7: bool) -> dict[str, Any]:
    if rng.random() < 0.6:
        return {"required": rng.sample(NAMES, rng.randrange(3))}
    return {"dependencies" if draft7 else "dependentRequired": {rng.choice(NAMES): rng.sample(NAMES, 2)}}


def _objects(rng: random.Random, depth: int, draft7: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "properties": {name: _part(rng, depth, draft7) for name in rng.sample(NAMES, rng.randrange(1, 4))}
    }
    if rng.random() < 0.3:
        schema["patternProperties"] = {rng.choice(PATTERNS): _part(rng, depth, draft7) for _ in range(2)}
    if rng.random() < 0.4:
        schema["additionalProperties"] = rng.choice((False, _part(rng, depth, draft7)))
    if rng.random() < 0.15:
        schema["propertyNames"] = _part(rng, depth, draft7)
    if rng.random() < 0.3 and not draft7:
        schema["unevaluatedProperties"] = rng.choice((False, _part(rng, depth, draft7)))
    return schema


def _arrays(rng: random.Random, depth: int, draft7: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    listed = [_part(rng, depth, draft7) for _ in range(rng.randrange(1, 3))]
    if rng.random() < 0.4:
        schema["items" if draft7 else "prefixItems"] = listed
        if rng.random() < 0.5:
            schema["additionalItems" if draft7 else "items"] = rng.choice((False, _part(rng, depth, draft7)))
    else:
        schema["items"] = listed[0]
    if rng.random() < 0.3:
        schema["uniqueItems"] = True
    if rng.random() < 0.3:
        schema["contains"] = _part(rng, depth, draft7)
        if not draft7 and rng.random() < 0.5:
            schema[rng.choice(("minContains", "maxContains"))] = rng.randrange(3)
    if rng.random() < 0.3 and not draft7:
        schema["unevaluatedItems"] = rng.choice((False, _part(rng, depth, draft7)))
    return schema


def _combined(rng: random.Random, depth: int, draft7: bool) -> dict[str, Any]:
    word = rng.choice(("allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas"))
    if word == "not":
        return {word: _part(rng, depth, draft7)}
    if word == "if":
        return {branch: _part(rng, depth, draft7) for branch in ("if", "then", "else")}
    if word == "dependentSchemas":
        return {"dependencies" if draft7 else word: {rng.choice(NAMES): _part(rng, depth, draft7)}}
    return {word: [_part(rng, depth, draft7) for _ in range(rng.randrange(1, 4))]}


_LEAVES = (_types, _limits, _values, _words, _names)
_BRANCHES = (_objects, _objects, _arrays, _combined, _combined)
