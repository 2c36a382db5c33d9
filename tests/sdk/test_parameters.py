"""From a schema of arguments to the parameters of a function."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import concertino as ct
import pytest
from concertino.members.parameters import annotation_of, read_parameters


def object_of(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


@pytest.mark.parametrize(
    ("schema", "annotation"),
    [
        ({"type": "string"}, str),
        ({"type": "integer", "minimum": 0}, int),
        ({"type": "number"}, float),
        ({"type": "boolean"}, bool),
        ({"type": "null"}, type(None)),
        ({"type": "array", "items": {"type": "integer"}}, list[int]),
        ({"type": "array"}, list[Any]),
        ({"type": "object"}, dict[str, Any]),
        ({"enum": ["a", 1, None]}, Literal["a", 1, None]),
        ({"enum": [1.5]}, Any),
        ({"const": "a"}, Literal["a"]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, str | None),
        ({"oneOf": [{"type": "string"}, {}]}, Any),
        ({"type": ["string", "integer"]}, str | int),
        ({"$ref": "#/$defs/n"}, int),
        ({"$ref": "#/$defs/loop"}, Any),
        ({"$ref": "https://example.org/x"}, Any),
        ({"type": "file"}, Any),
        ({}, Any),
        (True, Any),
    ],
)
def test_a_schema_is_the_type_that_comes_nearest(schema: Any, annotation: Any) -> None:
    root = {"$defs": {"n": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}}}
    assert annotation_of(schema, root) == annotation


def test_required_parameters_come_first_and_others_have_their_default() -> None:
    schema = object_of(
        ["b"],
        a={"type": "integer", "default": 3},
        b={"type": "string"},
        c={"type": "number"},
        d={"anyOf": [{"type": "string"}, {"type": "null"}]},
    )
    read = read_parameters(schema, {"type": "array", "items": {"type": "string"}})
    assert str(read.signature) == "(b: str, a: int = 3, c: float | None = None, d: str | None = None) -> list[str]"
    assert read.optional == {"c"}


def test_names_that_are_none_in_python_are_taken_by_name_alone() -> None:
    read = read_parameters(object_of(["class"], **{"x-y": {"type": "string"}, "class": {}, "a": {}}), None)
    assert [each.kind for each in read.signature.parameters.values()] == [
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_KEYWORD,
    ]
    assert read.arguments((1,), {"class": 2, "x-y": "z"}) == {"a": 1, "class": 2, "x-y": "z"}


def test_arguments_are_those_that_were_passed() -> None:
    read = read_parameters(object_of(["a"], a={"type": "string"}, b={"type": "integer"}, c={}), None)
    assert read.arguments(("x",), {}) == {"a": "x"}
    assert read.arguments(("x", None), {"c": None}) == {"a": "x", "c": None}
    assert read.arguments((), {"a": None, "other": 1}) == {"a": None, "other": 1}
    with pytest.raises(TypeError, match="takes 3 positional arguments but 4 were given"):
        read.arguments((1, 2, 3, 4), {})
    with pytest.raises(TypeError, match="multiple values for argument 'a'"):
        read.arguments((1,), {"a": 2})


def test_the_parameters_of_a_typed_function_come_back() -> None:
    def pay(amount: float, to: Literal["Ada", "Bob"], note: str = "", tags: list[str] | None = None) -> list[str]:
        """Pay."""
        return [note]

    spec = ct.tool(pay)
    read = read_parameters(spec.input_schema, spec.output_schema)
    assert read.signature == inspect.signature(pay, eval_str=True)
