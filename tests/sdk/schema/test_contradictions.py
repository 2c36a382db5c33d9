"""Schemas that nothing can meet are told at admission; no schema that something meets ever is."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from concertino import ToolSpec
from concertino.schema import SchemaRefused, compile_schema
from concertino.schema.contradictions import contradiction
from hypothesis import given
from hypothesis import strategies as st

from .suite import DIALECTS, cases, data_root


def needs(part: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            needs({"type": "integer", "enum": ["1", "2"]}),
            "/properties/a: the type is integer, and enum has no value of it",
        ),
        (needs({"type": "string", "const": 1}), "/properties/a: the type is string, and const has no value of it (1)"),
        (needs({"type": ["integer", "null"], "enum": ["1"]}), "the type is integer or null"),
        (
            needs({"type": "string", "minLength": 3, "maxLength": 2}),
            "/properties/a: minLength 3 is more than maxLength 2",
        ),
        (needs({"type": "number", "minimum": 1.5, "maximum": 1}), "minimum 1.5 is more than maximum 1"),
        (needs(False), "/properties/a: false admits nothing"),
        (needs(needs({"type": "boolean", "enum": [0, 1]})), "/properties/a/properties/a: "),
        (needs({"type": "array", "minItems": 1, "items": {"type": "null", "const": 0}}), "/properties/a/items: "),
        ({"type": "object", "required": ["b"], "additionalProperties": False}, "'b' is required"),
        ({"allOf": [{}, needs(False)]}, "/allOf/1/properties/a: "),
        (
            {"anyOf": [needs(False), {"type": "object", "minProperties": 2, "maxProperties": 1}]},
            "/anyOf/0/properties/a: ",
        ),
    ],
)
def test_a_contradiction_is_found_with_its_place(schema: dict[str, Any], said: str) -> None:
    assert said in contradiction(schema)
    validator = compile_schema(schema)
    assert not validator.is_valid(validator.example())


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": False}},
        needs({"type": "integer", "enum": ["1", 2]}),
        needs({"type": "integer", "const": 1.0}),
        needs({"enum": ["1"]}),
        needs({"type": ["string", "array"], "minLength": 3, "maxLength": 2}),
        needs({"minLength": 3, "maxLength": 2}),
        needs({"type": "array", "items": False}),
        needs({"type": "array", "minItems": 1, "items": False, "prefixItems": [{}]}),
        {"type": "object", "required": ["b"], "additionalProperties": False, "patternProperties": {"^b$": {}}},
        {"anyOf": [needs(False), {}]},
        {"required": ["b"], "additionalProperties": False},
    ],
)
def test_what_something_meets_is_no_contradiction(schema: dict[str, Any]) -> None:
    assert contradiction(schema) == ""


VALUES = st.sampled_from([None, True, 0, 1, 1.5, "", "a", "1", [], [1], {}, {"a": 1}, {"a": "1"}])
PARTS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "number", "object", "array", "null", ["string", "integer"]]),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "minimum": st.integers(0, 2),
            "maximum": st.integers(0, 2),
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array"]),
            "properties": st.fixed_dictionaries({"a": inner}),
            "required": st.just(["a"]),
            "additionalProperties": st.booleans(),
            "items": inner,
            "minItems": st.integers(0, 2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=4,
)


@given(PARTS, st.lists(VALUES, min_size=4, max_size=8))
def test_no_value_meets_a_schema_with_a_contradiction(schema: dict[str, Any], values: list[Any]) -> None:
    if contradiction(schema):
        validator = compile_schema(schema)
        assert not any(validator.is_valid(value) for value in [*values, validator.example()])


@pytest.mark.skipif(
    not (data_root() / "json_schema_test_suite" / "tests").is_dir(),
    reason="no official suite: set CONCERTINO_TEST_DATA to the shared test data",
)
def test_no_schema_of_the_official_suite_that_something_meets_is_a_contradiction() -> None:
    for dialect in DIALECTS:
        met = [case for case in cases(dialect) if case.valid and isinstance(case.schema, dict)]
        assert len(met) > 300
        for case in met:
            try:
                admitted = compile_schema(case.schema).schema
            except SchemaRefused:
                continue
            assert contradiction(admitted) == "", (case.file, case.group)


def test_a_tool_that_can_never_be_called_is_told_once_at_admission(caplog: pytest.LogCaptureFixture) -> None:
    schema = needs({"type": "integer", "enum": ["1"]})
    tool = ToolSpec.from_schema("search/page", "Reads a page.", schema, lambda arguments: None)
    with caplog.at_level(logging.WARNING, logger="concertino"):
        tool.admit()
        tool.admit()
    (record,) = caplog.records
    assert "tool 'search/page': no call can ever fit its input_schema: /properties/a: " in record.getMessage()
