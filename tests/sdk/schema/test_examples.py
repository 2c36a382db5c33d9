"""Generated examples: valid, minimal, deterministic."""

import random
from typing import Any

import pytest
from concertino.schema import SchemaRefused, compile_schema

from .generators import random_schema, random_value


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
            {"a": "text"},
        ),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": 1}),
        ({"type": "object"}, {}),
        ({"type": "integer", "minimum": 5, "multipleOf": 4}, 8),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.125),
        ({"type": "string", "minLength": 6, "maxLength": 7}, "textxx"),
        ({"type": "string", "maxLength": 2}, "te"),
        ({"type": "string", "pattern": "^[A-Z]{3}-\\d+$"}, "AAA-1"),
        ({"type": "string", "format": "uuid"}, "123e4567-e89b-42d3-a456-426614174000"),
        ({"enum": ["b", "a"]}, "b"),
        ({"const": None}, None),
        ({"type": "string", "examples": ["Oslo"]}, "Oslo"),
        ({"type": "string", "minLength": 3, "default": "x"}, "text"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True}, [1, 2, 3]),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": False},
            ["text", True],
        ),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, None),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"type": "integer"}, {"minimum": 7}]}}}, 7),
        (
            {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
            {"text1": 1, "text2": 1},
        ),
        (
            {"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]}},
            {"a": "text", "b": "text"},
        ),
        ({"not": {"type": "string"}}, 1),
    ],
)
def test_an_example_is_small_and_valid(schema: dict[str, Any], example: Any) -> None:
    validator = compile_schema(schema)
    assert validator.example() == example
    assert validator.is_valid(example)
    assert compile_schema(schema).example() == validator.example()


@pytest.mark.parametrize(
    "schema",
    [
        {
            "anyOf": [
                {"type": "object", "properties": {"left": {"$ref": "#"}}, "required": ["left"]},
                {"type": "integer"},
            ]
        },
        {
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "type": "object",
            "properties": {"a": {}, "b": {}},
        },
        {
            "type": "object",
            "if": {"properties": {"k": {"const": "x"}}, "required": ["k"]},
            "then": {"required": ["y"]},
            "required": ["k"],
            "properties": {"k": {"enum": ["x"]}},
        },
        {"type": "array", "contains": {"const": 7}, "minItems": 2},
        {
            "type": "object",
            "patternProperties": {"^x-": {"type": "integer"}},
            "additionalProperties": False,
            "minProperties": 1,
        },
        {"type": ["string", "null"], "pattern": "\\d{4}", "minLength": 8},
        {
            "type": "object",
            "dependentSchemas": {"a": {"required": ["c"], "properties": {"c": {"type": "integer"}}}},
            "required": ["a"],
        },
    ],
)
def test_choices_are_tried_until_one_is_valid(schema: dict[str, Any]) -> None:
    validator = compile_schema(schema)
    assert validator.is_valid(validator.example()), validator.example()


def test_an_example_is_a_fresh_value_each_time() -> None:
    validator = compile_schema({"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]})
    validator.example()["a"].append(1)
    assert validator.example() == {"a": []}


def test_an_impossible_schema_still_gives_some_example() -> None:
    assert compile_schema({"allOf": [{"type": "string"}, {"type": "integer"}]}).example() == {}
    assert compile_schema({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}).example() == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 10**30},
        {"type": "string", "minLength": 10**30, "pattern": "a"},
        {"type": "array", "minItems": 1e30, "items": {}},
        {"type": "object", "minProperties": 1e300},
        {"type": "number", "minimum": 1e300, "multipleOf": 1e-300},
        {"type": "integer", "minimum": 10**39, "maximum": 10**39 + 1, "multipleOf": 7},
    ],
)
def test_absurd_bounds_cost_nothing(schema: dict[str, Any]) -> None:
    example = compile_schema(schema).example()
    assert len(repr(example)) < 20_000
    assert compile_schema(schema, backend="python").example() == example


def test_random_satisfiable_schemas_mostly_get_a_valid_example() -> None:
    rng = random.Random(8)
    found = satisfiable = 0
    for _ in range(400):
        try:
            validator = compile_schema(random_schema(rng))
        except SchemaRefused:
            continue
        valid = validator.is_valid(validator.example())
        if valid or any(validator.is_valid(random_value(rng)) for _ in range(40)):
            satisfiable += 1
            found += valid
    assert found / satisfiable > 0.9
