"""Function objects made short: within their tokens, and no stricter than the whole ones."""

from __future__ import annotations

from typing import Any

import pytest
from concertino.pool.short_functions import shortened, tokens_of
from concertino.schema import compile_schema
from hypothesis import given
from hypothesis import strategies as st

WHOLE: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Books a room. " * 100,
        "parameters": {
            "type": "object",
            "$defs": {"Guest": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
            "properties": {
                "guest": {"$ref": "#/$defs/Guest"},
                "nights": {"type": "integer", "minimum": 1, "description": "how many nights " * 40},
                "view": {"enum": ["sea", "park"]},
                "extras": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            },
            "required": ["guest"],
        },
    },
}
ROOM = {"guest": {"name": "Ada"}, "nights": 2, "view": "sea", "extras": ["tea", None]}


@pytest.mark.parametrize("tokens", [1000, 300, 150, 120])
def test_a_short_form_takes_no_more_than_its_tokens_and_admits_what_the_whole_admits(tokens: int) -> None:
    short = shortened(WHOLE, tokens)
    assert short is not None
    assert tokens_of(short) <= tokens
    assert short["function"]["name"] == "book"
    parameters = short["function"]["parameters"]
    assert list(parameters["properties"]) == list(WHOLE["function"]["parameters"]["properties"])
    assert compile_schema(parameters).is_valid(ROOM)


def test_what_fits_stays_whole() -> None:
    assert shortened(WHOLE, 10_000) is WHOLE


def test_without_room_for_its_name_there_is_no_form() -> None:
    assert shortened(WHOLE, 10) is None


def test_a_reference_to_itself_ends() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    parameters = {"type": "object", "$defs": {"Node": node}, **node}
    function = {"name": "walk", "description": "w " * 900, "parameters": parameters}
    assert shortened({"type": "function", "function": function}, 200) is not None


LEAF = st.one_of(
    st.builds(lambda kind: {"type": kind}, st.sampled_from(["string", "integer", "boolean", "null"])),
    st.builds(lambda values: {"enum": values}, st.lists(st.sampled_from(["a", "b", "c", 1, None]), min_size=1)),
    st.just({}),
    st.just(True),
)
SCHEMA = st.recursive(
    LEAF,
    lambda part: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, part),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(part, min_size=1, max_size=3)),
        st.builds(
            lambda parts: {"type": "object", "properties": parts, "additionalProperties": False},
            st.dictionaries(st.sampled_from("pqr"), part, max_size=3),
        ),
    ),
    max_leaves=8,
)
VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from("abc")),
    lambda part: st.one_of(st.lists(part, max_size=2), st.dictionaries(st.sampled_from("pqr"), part, max_size=2)),
    max_leaves=5,
)


@given(SCHEMA, VALUE, st.integers(30, 120))
def test_no_short_form_refuses_what_the_whole_schema_admits(schema: Any, value: Any, tokens: int) -> None:
    parameters = {"type": "object", "properties": {"x": schema}}
    function = {"name": "f", "description": "d " * 400, "parameters": parameters}
    short = shortened({"type": "function", "function": function}, tokens)
    if short is not None and compile_schema(parameters).is_valid({"x": value}):
        assert compile_schema(short["function"]["parameters"]).is_valid({"x": value})
