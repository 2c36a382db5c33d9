"""Schemas and values that hang, crash or phone home in careless validators.

Each entry is a name, a schema, a value, and the reason admission or the guard must give (None: it must be
validated). `jsonschema` remembers nothing and matches patterns by backtracking: where it has to give up on a value
that `jsonschema_rs` decides, or may have to on a slow machine, `python` says so.
"""

from typing import Any, NamedTuple


class Nasty(NamedTuple):
    """One attack and what must become of it."""

    name: str
    schema: Any
    value: Any
    reason: str | None
    python: str | None = ""


def nested(depth: int, word: str, inner: Any) -> Any:
    """`inner` wrapped `depth` times in one single-schema keyword."""
    for _ in range(depth):
        inner = {word: inner}
    return inner


def doubling(word: str, levels: int, into: str | None = None) -> dict[str, Any]:
    """Definitions that each refer twice to the next: 2^levels sub-schemas, one level deeper each if `into` is given."""
    defs: dict[str, Any] = {f"d{levels}": {"type": "integer"}}
    for level in range(levels):
        twice = {word: [{"$ref": f"#/$defs/d{level + 1}"}] * 2}
        defs[f"d{level}"] = {"properties": {into: twice}} if into else twice
    return {"$ref": "#/$defs/d0", "$defs": defs}


def deep(depth: int, key: str | None = None) -> Any:
    """A value nested `depth` levels: arrays, or objects under `key`."""
    value: Any = 1
    for _ in range(depth):
        value = {key: value} if key else [value]
    return value


def self_containing() -> dict[str, Any]:
    """A schema object that contains itself."""
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    return schema


def attacks() -> list[Nasty]:
    """Every attack, made anew (some values are large)."""
    return [*_references(), *_sizes(), *_patterns(), *_shapes(), *_recursions(), *_values()]


def _references() -> list[Nasty]:
    far = "http://127.0.0.1:9/schema.json"
    return [
        Nasty("remote ref", {"$ref": far}, 1, "remote_ref"),
        Nasty("remote ref in a property", {"properties": {"a": {"$ref": far + "#/a"}}}, {"a": 1}, "remote_ref"),
        Nasty("file ref", {"$ref": "file:///etc/passwd"}, 1, "remote_ref"),
        Nasty("relative ref", {"$ref": "other.json"}, 1, "remote_ref"),
        Nasty("remote dynamic ref", {"$dynamicRef": far + "#x"}, 1, "remote_ref"),
        Nasty("remote ref in an unused definition", {"$defs": {"a": {"$ref": far}}}, 1, "remote_ref"),
        Nasty("root id makes a ref remote", {"$id": far, "$ref": "other.json"}, 1, "remote_ref"),
        Nasty("embedded id", {"properties": {"a": {"$id": far, "$ref": "#/x"}}}, {"a": 1}, "embedded_id"),
        Nasty("unknown dialect", {"$schema": far, "type": "object"}, {}, "unknown_dialect"),
        Nasty("dialect that is no text", {"$schema": 7}, {}, "unknown_dialect"),
        Nasty("dangling ref", {"$ref": "#/$defs/missing"}, 1, "dangling_ref"),
        Nasty("ref into text", {"title": "a", "$ref": "#/title"}, 1, "dangling_ref"),
        Nasty("self ref", {"$ref": "#"}, 1, "ref_cycle"),
        Nasty(
            "mutual refs",
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            1,
            "ref_cycle",
        ),
        Nasty("cycle through not", {"not": {"$ref": "#"}}, 1, "ref_cycle"),
        Nasty("cycle through if", {"if": {"anyOf": [{"$ref": "#"}]}, "then": {}}, 1, "ref_cycle"),
        Nasty(
            "recursive ref cycle",
            {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#"},
            1,
            "ref_cycle",
        ),
        Nasty(
            "duplicate anchors",
            {"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}},
            1,
            "duplicate_anchor",
        ),
    ]


def _sizes() -> list[Nasty]:
    return [
        Nasty("2^24 by allOf", doubling("allOf", 24), 1, "expansion"),
        Nasty("2^24 by anyOf", doubling("anyOf", 24), "x", "expansion"),
        Nasty("2^1000 by oneOf", doubling("oneOf", 300), "x", "expansion"),
        Nasty(
            "a chain of 500 refs",
            {
                "$ref": "#/$defs/0",
                "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(500)} | {"500": {}},
            },
            1,
            "expansion",
        ),
        Nasty("100,000 levels", nested(100_000, "items", {}), 1, "too_deep"),
        Nasty("schema that contains itself", self_containing(), {}, "too_deep"),
        Nasty("a million enum values", {"enum": list(range(1_000_000))}, 1, "enum_too_long"),
        Nasty("1,001 enum values", {"properties": {"a": {"enum": list(range(1001))}}}, {}, "enum_too_long"),
        Nasty("10,000 properties", {"properties": {f"p{n}": {} for n in range(10_000)}}, {}, "too_many_nodes"),
        Nasty("1 MB of description", {"description": "x" * 1_000_000}, {}, "too_large"),
        Nasty("66 KB of escapes", {"description": "é" * 33_000}, {}, "too_large"),
        Nasty("1 MB key", {"properties": {"x" * 1_000_000: {}}}, {}, "too_large"),
    ]


def _patterns() -> list[Nasty]:
    evil = "a" * 5_000 + "!"
    return [
        Nasty("(a+)+$", {"pattern": "^(a+)+$"}, evil, None, "too_costly"),
        Nasty("(a|a)*$", {"pattern": "^(a|a)*$"}, evil, None, "too_costly"),
        Nasty("(a|aa)+$", {"pattern": "^(a|aa)+$"}, evil, None, "too_costly"),
        Nasty("(.*a){20}", {"pattern": "^(.*a){20}$"}, "a" * 40 + "!", None),
        Nasty("nested stars", {"pattern": "^((a*)*)*$"}, evil, None, "too_costly"),
        Nasty("quadratic search", {"pattern": "a+$"}, evil, None),
        Nasty(
            "evil property name", {"patternProperties": {"^(a+)+$": {"type": "integer"}}}, {evil: 1}, None, "too_costly"
        ),
        Nasty("look-ahead", {"pattern": "^(?=(a+))\\1$"}, evil, "pattern_not_linear"),
        Nasty("look-behind", {"pattern": "(?<!a)b"}, "b", "pattern_not_linear"),
        Nasty("back-reference", {"pattern": "^(a+)\\1$"}, evil, "pattern_not_linear"),
        Nasty("counted bomb", {"pattern": "((a{100}){100}){100}"}, "a", "pattern_too_large"),
        Nasty("one huge count", {"pattern": "a{999999}"}, "a", "pattern_too_large"),
        Nasty(
            "1,900 large patterns",
            {"patternProperties": {f"a{{900}}{n}": {} for n in range(1900)}},
            {},
            "pattern_too_large",
        ),
        Nasty(
            "20 large patterns",
            {"patternProperties": {f"^[^a]{{900}}{n}": {} for n in range(20)}},
            {"b" * 999: 1},
            None,
        ),
        Nasty(
            "1,900 small patterns",
            {"patternProperties": {f"^a{n}": {} for n in range(1900)}},
            {f"a{n}": 1 for n in range(10)},
            None,
        ),
        Nasty("a wide search", {"pattern": "[ab]*a[ab]{900}c"}, "ab" * 300, None),
        Nasty("1,000 open groups", {"pattern": "(" * 1000}, "a", "pattern_unsupported"),
        Nasty("bad syntax", {"pattern": "[a-"}, "a", "pattern_syntax"),
        Nasty("script property", {"pattern": "\\p{Script=Greek}"}, "a", None),
        Nasty("general category", {"pattern": "^\\p{L}+$"}, "é", None),
        Nasty("regex format", {"format": "regex"}, "(" * 5_000, None),
        Nasty("email format", {"format": "email"}, "a@" + "a." * 20_000, None),
        Nasty("uri format", {"format": "uri"}, "a://" + "%" * 50_000, None),
        Nasty("date-time format", {"format": "date-time"}, "1" * 50_000, None),
    ]


def _shapes() -> list[Nasty]:
    return [
        Nasty("unknown type", {"type": "dict"}, {}, "keyword_shape"),
        Nasty("required: true", {"properties": {"a": {"required": True}}}, {}, "keyword_shape"),
        Nasty("negative length", {"minLength": -1}, "", "keyword_shape"),
        Nasty("multipleOf 0", {"multipleOf": 0}, 1, "keyword_shape"),
        Nasty("empty anyOf", {"anyOf": []}, 1, "keyword_shape"),
        Nasty("items list in 2020-12", {"items": [{}]}, [], "keyword_shape"),
        Nasty("properties as a list", {"properties": [{}]}, {}, "keyword_shape"),
        Nasty("infinite maximum", {"maximum": float("inf")}, 1, "not_finite"),
        Nasty("NaN minimum", {"minimum": float("nan")}, 1, "not_finite"),
        Nasty("5,000 digits", {"maximum": 10**5000}, 1, "too_many_digits"),
        Nasty("lone surrogate", {"const": "\ud800"}, "a", "lone_surrogate"),
        Nasty("surrogate key", {"properties": {"\udfff": {}}}, {}, "lone_surrogate"),
        Nasty("number as key", {"properties": {1: {}}}, {}, "key_not_text"),
        Nasty("a set as enum", {"enum": {1, 2}}, 1, "not_json"),
        Nasty("schema that is a list", [], 1, "not_an_object"),
        Nasty("schema that is true", True, 1, "not_an_object"),
        Nasty("multipleOf 1e-300", {"multipleOf": 1e-300}, 1e300, None),
    ]


def _recursions() -> list[Nasty]:
    twice = {
        "$ref": "#/$defs/n",
        "$defs": {"n": {"anyOf": [{"properties": {"c": {"$ref": "#/$defs/n"}}, "required": ["x"]}] * 2}},
    }
    both = {"allOf": [{"properties": {"c": {"$ref": "#"}}}] * 3}
    strict = {"properties": {"c": {"$ref": "#"}}, "unevaluatedProperties": False}
    return [
        Nasty("doubling recursion, anyOf", twice, deep(30, "c"), None, "too_costly"),
        Nasty("tripling recursion, allOf", both, deep(30, "c"), None, "too_costly"),
        Nasty("recursive unevaluatedProperties", strict, deep(30, "c"), None),
        Nasty("2^60 over 30 levels", doubling("allOf", 30, "c"), deep(30, "c"), "too_costly"),
        Nasty(
            "recursive oneOf over arrays",
            {"oneOf": [{"items": {"$ref": "#"}}, {"contains": {"$ref": "#"}}]},
            deep(25),
            None,
            "too_costly",
        ),
        Nasty("recursive not", {"properties": {"c": {"not": {"$ref": "#"}}}}, deep(30, "c"), None),
    ]


def _values() -> list[Nasty]:
    tree = {"items": {"$ref": "#"}}
    return [
        Nasty("100,000-deep value", tree, deep(100_000), "too_deep"),
        Nasty("65-deep value", tree, deep(65), "too_deep"),
        Nasty(
            "uniqueItems of 20,000 objects",
            {"uniqueItems": True},
            [{"a": n, "b": [n]} for n in range(20_000)],
            "too_many_items",
        ),
        Nasty("contains over 20,000 items", {"contains": {"const": -1}}, list(range(20_000)), "too_many_items"),
        Nasty(
            "uniqueItems of 1,000 objects",
            {"uniqueItems": True},
            [{"a": n, "b": [n]} for n in range(1_000)],
            None,
        ),
        Nasty("5,000-digit value", {"maximum": 5}, 10**5000, "too_many_digits"),
        Nasty("NaN value", {"minimum": 0, "maximum": 1}, float("nan"), "not_finite"),
        Nasty("infinite value", {"minimum": 0}, [float("inf")], "not_finite"),
        Nasty("surrogate value", {"type": "string"}, "\ud800", "lone_surrogate"),
        Nasty("surrogate key in a value", {"type": "object"}, {"\ud800": 1}, "lone_surrogate"),
        Nasty("a tuple", {"type": "array"}, {"a": (1, 2)}, "not_json"),
        Nasty("a number as key", {"type": "object"}, {1: 1}, "key_not_text"),
        Nasty("5 Mi characters", {"type": "string"}, "x" * (5 << 20), "too_large"),
        Nasty("huge whole float", {"type": "integer", "multipleOf": 3}, 1e308, None),
    ]
