"""Validation by itself: from what a model wrote to arguments that a tool takes, or an error that names the place."""

from __future__ import annotations

from typing import Any

import concertino as ct
import pytest
from concertino.executor.bound import BoundTool, Provider
from concertino.executor.breaker import BreakerPolicy
from concertino.executor.validation import ArgumentsRefused, check_result, read_arguments
from concertino.schema import compile_schema
from pydantic import BaseModel, field_validator


class Place(BaseModel):
    """A place, which is never Atlantis."""

    city: str

    @field_validator("city")
    @classmethod
    def exists(cls, city: str) -> str:
        """Refuse what no JSON schema can."""
        if city == "Atlantis":
            raise ValueError("it sank")
        return city


@ct.tool
async def weather(place: Place, days: int = 1) -> str:
    """Tell the weather."""
    return f"{place.city}: {days}"


BOUND = BoundTool(weather, Provider("local", 2**30, BreakerPolicy()))


@pytest.mark.parametrize(
    ("written", "arguments", "repaired"),
    [
        ('{"place": {"city": "Oslo"}, "days": 2}', {"place": {"city": "Oslo"}, "days": 2}, False),
        ('{"place": {"city": "Oslo"}, "days": 2,}', {"place": {"city": "Oslo"}, "days": 2}, True),
        ('{"place": {"city": "Oslo"}, "days": "2"}', {"place": {"city": "Oslo"}, "days": 2}, True),
        ({"place": {"city": "Oslo"}, "days": 2.0}, {"place": {"city": "Oslo"}, "days": 2}, False),
    ],
)
def test_arguments_are_read_and_coerced_and_repairs_are_named(written: Any, arguments: Any, repaired: bool) -> None:
    read, repairs = read_arguments(ct.Call("weather", written), BOUND, None)
    assert read == arguments
    assert type(read["days"]) is int
    assert bool(repairs) is repaired


def test_references_to_results_are_put_in_before_the_schema_is_asked() -> None:
    calls = [ct.Call("find", {}, "c1"), ct.Call("weather", {"place": {"city": "${c1.name}"}}, "c2")]
    call = ct.Plan.parse(calls).calls[1]
    assert read_arguments(call, BOUND, {"c1": {"name": "Oslo"}})[0] == {"place": {"city": "Oslo"}}
    with pytest.raises(ArgumentsRefused) as refused:
        read_arguments(call, BOUND, {"c1": {"title": "Oslo"}})
    assert refused.value.error.code == "invalid_arguments"


@pytest.mark.parametrize(
    ("written", "code", "where", "text"),
    [
        ("{place", "bad_json", "", ""),
        ('{"place": {"city": "Oslo"}, "days": "many"}', "invalid_arguments", "/days", "integer"),
        ([1], "invalid_arguments", "", "expected an object, got list"),
        ('{"place": {"city": "Atlantis"}}', "invalid_arguments", "", "it sank"),
    ],
)
def test_what_a_tool_cannot_take_is_refused_with_its_place(written: Any, code: str, where: str, text: str) -> None:
    with pytest.raises(ArgumentsRefused) as refused:
        read_arguments(ct.Call("weather", written), BOUND, None)
    error = refused.value.error
    assert (error.code, error.path) == (code, where)
    assert text in error.message


def test_a_result_is_checked_against_the_output_schema() -> None:
    output = compile_schema({"type": "object", "properties": {"days": {"type": "integer"}}})
    assert check_result({"days": 2}, output) is None
    wrong = check_result({"days": "two"}, output)
    assert wrong is not None
    assert wrong.code == "bad_result"
    assert "/days" in wrong.message
