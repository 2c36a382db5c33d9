"""Results that have a type: declared by annotation or by `result=`, checked, and turned into JSON data."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from typing import Any

import concertino as ct
import pytest
from concertino.members.value_type import ValueType, is_structured
from concertino.testing import ScriptedModel
from pydantic import BaseModel, Field, computed_field, field_validator
from typing_extensions import TypedDict


class Weather(BaseModel):
    city: str
    celsius: float = 3
    day: datetime.date = datetime.date(2026, 1, 1)
    secret: str = Field(default="hidden", exclude=True)

    @field_validator("city")
    @classmethod
    def known(cls, value: str) -> str:
        if value == "Atlantis":
            raise ValueError("sunk")
        return value


class Square(BaseModel):
    side: int

    area = computed_field(return_type=int)(property(lambda self: self.side**2))


@dataclasses.dataclass
class Visit:
    place: str
    when: datetime.date


class Row(TypedDict):
    a: int


@dataclasses.dataclass
class Holder:
    """A dataclass without a JSON schema."""

    thing: logging.Logger


@ct.tool(isolation="process")
def visit_elsewhere(place: str) -> Visit:
    """Visit a place, in another process."""
    return Visit(place, datetime.date(2026, 5, 17))


async def result_of(member: Any, *more: Any) -> ct.Observation:
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call(member.name)], ct.Pool.of(member, *more))
    return seen


def told(seen: ct.Observation) -> str:
    assert seen.error is not None
    assert (seen.status, seen.error.code) == (ct.Status.EXEC_ERR, "bad_result")
    return seen.error.message


async def test_a_model_becomes_json_data_that_satisfies_its_schema() -> None:
    @ct.agent
    async def look(*, ctx: ct.Context) -> Weather:
        """Look."""
        return Weather(city="Oslo")

    assert look.output_schema is not None
    assert set(look.output_schema["properties"]) >= {"city", "celsius", "day"}
    assert (await result_of(look)).content == {"city": "Oslo", "celsius": 3.0, "day": "2026-01-01"}


@pytest.mark.parametrize(
    ("kind", "value", "content"),
    [
        (list[Weather], [Weather(city="A")], [{"city": "A", "celsius": 3.0, "day": "2026-01-01"}]),
        (Visit, Visit("Oslo", datetime.date(2026, 5, 17)), {"place": "Oslo", "when": "2026-05-17"}),
        (Visit | None, None, None),
        (Weather | Visit, Visit("Oslo", datetime.date(2026, 5, 17)), {"place": "Oslo", "when": "2026-05-17"}),
        (dict[str, Visit], {"x": Visit("A", datetime.date(2026, 1, 1))}, {"x": {"place": "A", "when": "2026-01-01"}}),
        (Row, {"a": 1}, {"a": 1}),
        (Square, Square(side=3), {"side": 3, "area": 9}),
        (Weather, {"city": "as a dict"}, {"city": "as a dict"}),
        (list[str], ["x"], ["x"]),
    ],
)
async def test_lists_unions_dataclasses_and_dicts_are_typed_too(kind: Any, value: Any, content: Any) -> None:
    @ct.tool(result=kind)
    def give() -> Any:
        """Give."""
        return value

    seen = await result_of(give)
    assert (seen.status, seen.content) == (ct.Status.OK, content), seen.error


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (Weather, {"celsius": 1}, "expected required property 'city'"),
        (Weather, {"city": 3}, "/city: expected string, got 3"),
        (Weather, '{"city": "a text"}', "expected object"),
        (list[Weather], [Weather(city="A"), {"city": 3}], "/1/city: expected string"),
        (Row, {"a": "x"}, '/a: expected integer, got "x"'),
        (Visit | None, "nothing", "(root)"),
        (list[str], [1], "/0: expected string, got 1"),
        (Weather, object(), "is not JSON data"),
    ],
)
async def test_a_result_of_another_form_is_bad_in_the_words_of_every_schema(kind: Any, value: Any, said: str) -> None:
    @ct.tool(result=kind)
    def give() -> Any:
        """Give."""
        return value

    assert said in told(await result_of(give))


async def test_the_return_annotation_counts_as_result_does() -> None:
    @ct.tool
    def rows() -> list[Row]:
        """Rows."""
        found: Any = [{"a": "x"}]
        return list(found)

    assert "/0/a: expected integer" in told(await result_of(rows))


def test_a_type_given_as_output_schema_is_its_schema_and_a_dict_given_as_result_is_one() -> None:
    as_schema: dict[str, Any] = {"output_schema": Weather}

    @ct.tool(**as_schema)
    def one() -> Any:
        """One."""

    @ct.tool(result={"type": "integer"})
    def two() -> Any:
        """Two."""

    assert one.output_schema == ValueType(Weather, "").result_schema
    assert two.output_schema == {"type": "integer"}
    assert ct.Pool.of(one, two).id  # nothing in it that is not JSON


@pytest.mark.parametrize("annotation", [None, str, int, dict[str, Any], dict[str, int], list, ct.Image, ct.Result, Any])
def test_an_annotation_that_says_nothing_about_the_form_is_not_checked(annotation: Any) -> None:
    def give() -> Any:
        """Give."""

    give.__annotations__["return"] = annotation
    spec = ct.tool(give)
    assert (spec.output_schema, spec.dump) == (None, None)


@pytest.mark.parametrize("annotation", [list[ct.Image], ct.Image | str, ct.Result | Weather])
def test_what_concertino_takes_apart_itself_is_no_structure(annotation: Any) -> None:
    assert not is_structured(annotation)


def test_an_annotation_without_a_schema_is_said_and_a_declared_type_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def give() -> Holder:
        """Give."""
        raise NotImplementedError

    with caplog.at_level(logging.WARNING, "concertino"):
        assert ct.tool(give).output_schema is None
    assert "Holder" in caplog.text
    assert "its results are not checked" in caplog.text
    with pytest.raises(ct.SpecError, match=r"tool 'give': result=.*Holder.*expected a pydantic model, a dataclass"):
        ct.tool(result=Holder)(give)
    with pytest.raises(ct.SpecError, match=r"output_schema=.*Weather.*expected a JSON schema as a dict"):
        ct.ToolSpec.from_schema("x", "X.", {"type": "object"}, print, output_schema=Weather)


@pytest.mark.slow
async def test_a_result_of_another_process_is_typed_too() -> None:
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("visit_elsewhere", {"place": "Oslo"})], ct.Pool.of(visit_elsewhere))
    assert seen.content == {"place": "Oslo", "when": "2026-05-17"}


async def test_an_agent_asks_its_model_for_a_value_of_a_type() -> None:
    @ct.agent
    async def ask(*, ctx: ct.Context) -> Weather:
        """Ask."""
        found = (await ctx.model("default").chat("How warm is it?", schema=Weather)).data
        assert isinstance(found, Weather)
        return found

    model = ct.ModelSpec("m", lambda: ScriptedModel('{"city": "Oslo", "celsius": 4}'))
    assert (await result_of(ask, model)).content == {"city": "Oslo", "celsius": 4.0, "day": "2026-01-01"}


async def test_a_reply_that_the_type_itself_refuses_is_a_bad_reply() -> None:
    @ct.agent
    async def ask(*, ctx: ct.Context) -> Any:
        """Ask."""
        return (await ctx.model("default").chat("How warm is it?", schema=Weather)).data

    seen = await result_of(ask, ct.ModelSpec("m", lambda: ScriptedModel('{"city": "Atlantis"}')))
    assert seen.error is not None
    assert (seen.error.code, seen.error.retryable) == ("bad_reply", True)
    assert "city: Value error, sunk" in seen.error.message
