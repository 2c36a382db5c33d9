"""Models under aliases: written into a tool's JSON, read out of it, and taken from a pool."""

from typing import Any

import concertino as ct
import pytest
from concertino.strategies.serial_calls import ModelChoice, choices_of, write_choice
from concertino.strategies.serial_calls.choices import choices_by_tool, read_choices

RELEASED = {
    "type": "string",
    "description": "The model used to look. Choices: ['s-1', 's-2']. s-1 is good. s-2 is cheap.\n"
    "Model | price per million input tokens | price per million output tokens | average latency\n"
    "s-1 | $1.25 | $10 | 22s\ns-2 | $$0.2 | $0.2 | 9s",
}


def tool(schema: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"model": schema}, "required": ["model"]}
    return {"type": "function", "function": {"name": "search", "description": "d", "parameters": parameters}}


def test_what_is_written_is_read() -> None:
    choices = [
        ModelChoice("s-1", "", ct.Prices(1.25, 10), 22),
        ModelChoice("s-2", "", ct.Prices(0.2, 0.2), 9.5),
        ModelChoice("s-3"),
    ]
    schema = write_choice("The model that searches.", choices)
    assert list(read_choices(schema)) == choices
    assert schema["enum"] == ["s-1", "s-2", "s-3"]


def test_strengths_stand_before_the_table() -> None:
    schema = write_choice("Who searches.", [ModelChoice("a", "quick\nand cheap", ct.Prices(1, 2), 3)])
    assert schema["description"].splitlines()[0] == "Who searches. Choices: ['a']. a: quick and cheap."
    assert schema["description"].splitlines()[-1] == "a | $1 | $2 | 3s"


def test_aliases_and_prices_stand_in_the_prose_of_released_tools() -> None:
    assert read_choices(RELEASED) == (
        ModelChoice("s-1", "", ct.Prices(1.25, 10), 22),
        ModelChoice("s-2", "", ct.Prices(0.2, 0.2), 9),
    )


@pytest.mark.parametrize("schema", [{}, {"type": "string"}, {"description": 3}, {"description": "Choices: none"}])
def test_an_argument_without_choices_has_none(schema: dict[str, Any]) -> None:
    assert read_choices(schema) == ()


def test_only_what_no_schema_checks_is_checked_by_hand() -> None:
    ours = write_choice("Who.", [ModelChoice("a")])
    assert choices_by_tool([tool(RELEASED)]) == {"search": {"model": ("s-1", "s-2")}}
    assert choices_by_tool([tool(ours)]) == {}


@pytest.mark.parametrize("aliases", [[], ["a", "a"], ["it's"], ["a|b"], [""]])
def test_aliases_that_cannot_be_listed_are_refused(aliases: list[str]) -> None:
    with pytest.raises(ct.UsageError):
        write_choice("Who.", [ModelChoice(alias) for alias in aliases])


def test_a_pools_models_become_choices_by_the_roles_they_are_bound_to() -> None:
    big = ct.ModelSpec("acme/big", ct.Model, "strong", ct.Prices(1, 10))
    small = ct.ModelSpec("acme/small", ct.Model, "quick", ct.Prices(0.1, 0.2))
    pool = ct.Pool.of(big, small).bind(**{"search-1": "acme/big", "search-2": "acme/small"})
    assert choices_of(pool, ["search-1", "search-2"], {"search-2": 4}) == [
        ModelChoice("search-1", "strong", ct.Prices(1, 10)),
        ModelChoice("search-2", "quick", ct.Prices(0.1, 0.2), 4),
    ]
    with pytest.raises(ct.PoolError, match="'search-3' is bound to no model"):
        choices_of(pool, ["search-3"])
