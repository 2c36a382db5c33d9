"""Schemas for replies: what the API enforces is sent, and what it has no form for is asked for in words."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from concertino import ChatRequest, Message
from concertino_anthropic.schema import MOST_OPTIONAL, MOST_UNIONS, sayable
from pydantic import BaseModel, Field

from .asking import asked
from .stand_in import StandIn, Turn, stand_in, text

# Words of JSON Schema that the API takes, and where; from its page on structured outputs.
TAKEN = {
    "type",
    "enum",
    "const",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "format",
}


class Place(BaseModel):
    """Somewhere."""

    name: str = Field(min_length=1, pattern="^[A-Z]")
    kind: Literal["city", "village"] = "city"


class Answer(BaseModel):
    places: list[Place] = Field(min_length=2, max_length=5)
    celsius: float = Field(ge=-90, le=60, description="of the air")
    note: str | None = None
    first: Place


class Tree(BaseModel):
    children: list[Tree]


def test_a_model_of_pydantic_is_sent_in_the_form_that_the_api_enforces() -> None:
    said = sayable(Answer.model_json_schema())
    assert said is not None
    assert said["required"] == ["places", "celsius", "first"]
    assert said["additionalProperties"] is False
    places = said["properties"]["places"]
    assert (places["type"], places["minItems"]) == ("array", 1)
    assert places["description"] == '{"maxItems": 5, "minItems": 2}'
    assert places["items"] == said["properties"]["first"]
    assert places["items"]["properties"]["name"]["description"] == '{"minLength": 1, "pattern": "^[A-Z]"}'
    assert places["items"]["properties"]["kind"] == {"enum": ["city", "village"]}
    assert said["properties"]["celsius"]["description"] == 'of the air\n{"maximum": 60, "minimum": -90}'
    assert said["properties"]["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


def words_of(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(words_of, schema))
    if not isinstance(schema, dict):
        return set()
    found = set(schema) - {"description"}
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("anyOf")]
    return found.union(*map(words_of, inner))


@pytest.mark.parametrize(
    "schema",
    [
        Answer.model_json_schema(),
        {"type": "object", "properties": {"a": {"type": ["string", "null"], "maxLength": 3}}},
        {"type": "object", "properties": {"a": {"type": "string", "format": "date"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "format": "color"}, "b": {"const": 4}}},
        {"type": "object", "properties": {"a": {"oneOf": [{"type": "integer"}, {"enum": ["x", None]}]}}},
        {"type": "object", "additionalProperties": False},
        {"$ref": "#/$defs/P", "$defs": {"P": Place.model_json_schema()}},
    ],
)
def test_only_words_that_the_api_takes_are_sent(schema: dict[str, Any]) -> None:
    said = sayable(schema)
    assert said is not None
    assert words_of(said) <= TAKEN


OPTIONAL = {f"p{n}": {"type": "string"} for n in range(MOST_OPTIONAL + 1)}
UNION = {"anyOf": [{"type": "string"}, {"type": "null"}]}
UNIONS = {f"p{n}": UNION for n in range(MOST_UNIONS + 1)}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}]}}},
        {"type": "object", "properties": {"a": {"enum": [{"b": 1}]}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.org/schema"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"type": "object", "properties": OPTIONAL},
        {"type": "object", "properties": UNIONS, "required": [*UNIONS]},
        Tree.model_json_schema(),
    ],
)
async def test_a_shape_that_the_api_cannot_say_is_asked_for_in_words(schema: dict[str, Any]) -> None:
    assert sayable(schema) is None
    async with stand_in(Turn([text("{}")])) as server, asked(server) as model:
        await model.chat(ChatRequest([Message("system", "Be brief."), Message("user", "?")], schema=schema))
    (system,) = server.bodies[0]["system"]
    assert system["text"].startswith("Be brief.\n\nAnswer with one JSON value")
    assert json.dumps(schema, ensure_ascii=False) in system["text"]
    assert "output_config" not in server.bodies[0]


def test_as_many_optional_values_and_unions_as_the_api_takes_are_sent() -> None:
    optional = dict([*OPTIONAL.items()][:MOST_OPTIONAL])
    unions = dict([*UNIONS.items()][:MOST_UNIONS])
    assert sayable({"type": "object", "properties": optional}) is not None
    assert sayable({"type": "object", "properties": unions, "required": [*unions]}) is not None


async def test_a_server_that_knows_no_schemas_is_asked_in_words(server: StandIn) -> None:
    async with asked(server, schema_style="instruction") as model:
        await model.chat(ChatRequest([Message("user", "?")], schema=Place.model_json_schema()))
    assert "Answer with one JSON value" in server.bodies[0]["system"][0]["text"]
    assert "output_config" not in server.bodies[0]


@pytest.fixture
async def server() -> Any:
    async with stand_in() as server:
        yield server
