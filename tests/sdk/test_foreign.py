"""Members that were written for something else: functions, methods, OpenAI function objects, foreign tools."""

from __future__ import annotations

from typing import Any

import concertino as ct
import pytest


class Account:
    def __init__(self) -> None:
        self.balance = 10.0

    def pay(self, amount: float) -> float:
        """Pay an amount."""
        self.balance -= amount
        return self.balance

    async def look(self) -> float:
        """Look at the balance."""
        return self.balance


def double(x: int) -> int:
    """Double a number."""
    return 2 * x


WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


async def ask(pool: ct.Pool, name: str, **arguments: Any) -> ct.Observation:
    async with ct.Executor() as executor:
        return (await executor.run([ct.Call(name, arguments)], pool))[0]


async def test_functions_and_bound_methods_are_members() -> None:
    account = Account()
    pool = ct.Pool.of(double, account.pay).adding(account.look)
    assert list(pool.visible_names.values()) == ["double", "pay", "look"]
    assert (await ask(pool, "double", x=21)).content == 42
    assert (await ask(pool, "pay", amount=4)).content == 6
    assert (await ask(pool, "look")).content == 6
    assert (await ask(pool, "double", x="many")).status is ct.Status.PARSE_ERR


async def test_a_pair_of_an_openai_function_object_and_its_function_is_a_member() -> None:
    async def weather(city: str) -> str:
        return f"rain in {city}"

    for declared in (WEATHER, WEATHER["function"]):
        pool = ct.Pool.of((declared, weather))
        assert pool["weather"].description == "The weather."
        assert (await ask(pool, "weather", city="Bergen")).content == "rain in Bergen"
        assert (await ask(pool, "weather")).status is ct.Status.PARSE_ERR


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (object(), "cannot be a member of a pool; give a spec"),
        ("search", "'search' cannot be a member of a pool"),
        (lambda x: x, "has no annotation; the model needs its type"),
        (({"type": "function"}, double), "expected an OpenAI function object with a name"),
    ],
)
def test_what_is_no_member_says_what_is_expected(member: Any, said: str) -> None:
    with pytest.raises(ct.SpecError, match=said):
        ct.Pool.of(member)
