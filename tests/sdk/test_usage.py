"""Costs, prices and usages."""

from typing import Any

import concertino as ct
import pytest


def test_usages_add_up_field_by_field() -> None:
    total = ct.Usage(1, 2.0, 0.5, 10, 5, 2, 0.1, 1).plus(ct.Usage(1, 1.0, 0.25, 1, 1, 1, 0.2, 0))
    assert total == ct.Usage(2, 3.0, 0.75, 11, 6, 3, pytest.approx(0.3), 1)
    assert total.tokens == 17


def test_a_usage_survives_a_round_trip_and_leaves_out_zeros() -> None:
    usage = ct.Usage(calls=1, usd=0.5)
    assert usage.to_json() == {"calls": 1, "usd": 0.5}
    assert ct.Usage.from_json(usage.to_json() | {"unheard_of": 3}) == usage


def test_cached_tokens_have_a_price_of_their_own() -> None:
    prices = ct.Prices(input=1.0, output=10.0, cached=0.1)
    assert prices.usd(1_000_000, 0, 400_000) == pytest.approx(0.6 + 0.04)
    assert ct.Prices(input=1.0, output=10.0).usd(1_000_000, 100_000, 400_000) == pytest.approx(2.0)


@pytest.mark.parametrize("text", ["usd=0.5,seconds=60,calls=20", " usd = 0.5 , seconds=60, calls=20,"])
def test_a_budget_is_read_as_the_command_line_gives_it(text: str) -> None:
    assert ct.Budget.parse(text) == ct.Budget(usd=0.5, seconds=60.0, calls=20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dollars=1", "NAME one of rounds, parallel, calls, units, usd, tokens, seconds"),
        ("usd", "expected NAME=NUMBER"),
        ("calls=1.5", "budget calls='1.5': expected a number"),
        ("usd=-1", "budget usd=-1.0: expected a number >= 0"),
        ("usd=nan", "budget usd=nan"),
        ("rounds=0", "budget rounds=0 allows nothing"),
    ],
)
def test_a_wrong_budget_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ct.BudgetError, match=message):
        ct.Budget.parse(text)


@pytest.mark.parametrize("wrong", ["a", None, True, -1, float("inf")])
def test_a_cost_or_a_price_that_is_no_amount_is_refused(wrong: Any) -> None:
    with pytest.raises(ct.SpecError, match=r"Cost\(units=.*expected a number >= 0"):
        ct.Cost(units=wrong)
    with pytest.raises(ct.SpecError, match=r"Prices\(input=.*expected \$ per million tokens"):
        ct.Prices(wrong, 1)
