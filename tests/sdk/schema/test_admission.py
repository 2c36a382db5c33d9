"""Admission: what comes back, what is refused, where and with which direction."""

from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from concertino.schema import SchemaRefused, admit, compile_schema


def refusal_of(schema: Any) -> SchemaRefused:
    with pytest.raises(SchemaRefused) as caught:
        admit(schema)
    return caught.value


def test_an_admitted_schema_is_a_plain_deep_copy() -> None:
    inner = OrderedDict(type="string")
    given = MappingProxyType({"type": "object", "properties": {"a": inner}, "required": ("a",)})
    admitted = admit(given)
    inner["type"] = "integer"
    assert admitted == {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert type(admitted["properties"]["a"]) is dict


def test_a_refusal_names_reason_place_and_next_step() -> None:
    refusal = refusal_of({"properties": {"a/b": {"$ref": "https://example.com/x.json"}}})
    assert refusal.reason == "remote_ref"
    assert refusal.pointer == "/properties/a~1b/$ref"
    assert "/properties/a~1b/$ref" in str(refusal)
    assert "copy its target into `$defs`" in str(refusal)


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"type": "dict"}, "did you mean 'object'"),
        ({"type": "strin"}, "did you mean 'string'"),
        ({"type": "any"}, "leave `type` out"),
        ({"items": [{}]}, "use `prefixItems`"),
        ({"required": True}, "next to `properties`"),
        ({"$ref": "#/$defs/adress", "$defs": {"address": {}}}, "did you mean 'address'"),
        ({"$schema": "https://example.com/dialect"}, "declare draft 4, 6, 7, 2019-09 or 2020-12"),
        ({"pattern": "(?=a)"}, "look-around"),
        ({"minLength": -1}, "expected a number >= 0, got -1"),
    ],
)
def test_a_refusal_is_a_direction(schema: dict[str, Any], hint: str) -> None:
    assert hint in str(refusal_of(schema))


def test_a_reference_inside_data_is_data() -> None:
    schema = {
        "enum": [{"$ref": "http://example.com/"}],
        "default": {"$ref": "#/nowhere"},
        "properties": {"$ref": {"type": "integer"}},
    }
    assert admit(schema) == schema
    assert compile_schema({"properties": {"$ref": {"type": "integer"}}}).is_valid({"$ref": "x"}) is False


def test_limits_hold_at_their_edge() -> None:
    admit({"enum": list(range(1000))})
    assert refusal_of({"enum": list(range(1001))}).reason == "enum_too_long"
    level: dict[str, Any] = {}
    for _ in range(32):
        level = {"items": level}
    admit(level)
    assert refusal_of({"items": level}).reason == "too_deep"
    admit({"description": "x" * (64 * 1024 - len('{"description": ""}'))})
    assert refusal_of({"description": "x" * (64 * 1024 - len('{"description": ""}') + 1)}).reason == "too_large"


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        (
            {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True},
            4,
            3,
        ),
        (
            {"$schema": "http://json-schema.org/draft-04/schema", "minimum": 3, "exclusiveMinimum": False},
            3,
            2,
        ),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}, 3, 3.0),
        (
            {
                "$schema": "http://json-schema.org/draft-06/schema#",
                "items": [{"type": "integer"}],
                "additionalItems": False,
            },
            [1],
            [1, 2],
        ),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}},
            {"a": 1, "b": 1},
            {"a": 1},
        ),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "dependencies": {"a": {"required": ["b"]}},
            },
            {"c": 1},
            {"a": 1},
        ),
        (
            {
                "$schema": "https://json-schema.org/draft/2019-09/schema",
                "type": "object",
                "additionalProperties": {"$recursiveRef": "#"},
            },
            {"a": {}},
            {"a": 1},
        ),
        ({"$defs": {"n": {"$anchor": "num", "type": "number"}}, "$ref": "#num"}, 1, "1"),
        ({"$defs": {"n": {"$dynamicAnchor": "num", "type": "number"}}, "$dynamicRef": "#num"}, 1, "1"),
        (
            {
                "$id": "https://example.com/s",
                "$ref": "https://example.com/s#/$defs/n",
                "$defs": {"n": {"type": "number"}},
            },
            1,
            "1",
        ),
        ({"$ref": "#/$defs/a%25b~1c", "$defs": {"a%b/c": {"type": "number"}}}, 1, "1"),
        ({"$ref": "#/components/n", "components": {"n": {"type": "number"}}}, 1, "1"),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "definitions": {"n": {"$id": "#n", "type": "number"}},
                "$ref": "#n",
            },
            1,
            "1",
        ),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "python"])
def test_declared_dialects_keep_their_meaning(schema: dict[str, Any], valid: Any, invalid: Any, backend: str) -> None:
    validator = compile_schema(schema, backend=backend)  # type: ignore[arg-type]
    assert validator.is_valid(valid)
    assert not validator.is_valid(invalid)


def test_beside_a_ref_nothing_counts_before_2019() -> None:
    schema = {"definitions": {"n": {"type": "number"}}, "$ref": "#/definitions/n", "minimum": 5}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    assert compile_schema(old).is_valid(1)
    assert not compile_schema(schema).is_valid(1)
