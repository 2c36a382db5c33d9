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


def test_tokens_that_a_server_wrote_into_its_cache_have_a_price_of_their_own() -> None:
    prices = ct.Prices(input=4.0, output=20.0, cached=0.2, cache_write=5.0)
    used = ct.Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=500_000, cache_write_tokens=300_000)
    assert prices.cost_of(used) == pytest.approx(0.2 * 4.0 + 0.5 * 0.2 + 0.3 * 5.0 + 2.0)
    assert ct.Prices(4.0, 20.0, 0.2).cost_of(used) == pytest.approx(0.5 * 4.0 + 0.5 * 0.2 + 2.0)
    assert prices.most(1_000_000, 100_000) == pytest.approx(5.0 + 2.0)
    assert ct.Prices(4.0, 20.0).most(1_000_000, 100_000) == pytest.approx(4.0 + 2.0)


def test_a_long_prompt_raises_the_price_of_all_tokens() -> None:
    prices = ct.Prices(0.1, 0.5, 0.01, cache_write=0.125, long_from=100_000, long_input=0.5, long_output=2.5)
    short, long = 100_000, 100_001
    assert prices.usd(short, 1000) == pytest.approx((short * 0.1 + 1000 * 0.5) / 1e6)
    assert prices.usd(long, 1000) == pytest.approx((long * 0.5 + 1000 * 2.5) / 1e6)
    assert prices.usd(long, 0, long) == pytest.approx(long * 0.05 / 1e6)
    assert prices.usd(long, 0, 0, long) == pytest.approx(long * 0.625 / 1e6)
    assert prices.most(long, 1000) == pytest.approx((long * 0.625 + 1000 * 2.5) / 1e6)
    assert prices.at(short) == ct.Prices(0.1, 0.5, 0.01, cache_write=0.125)
    assert ct.Prices(0.0, 0.0, 0.0, long_from=1, long_input=1.0, long_output=1.0).usd(2, 2, 2) == 0.0 + 2e-6


@pytest.mark.parametrize(
    "given", [{"long_from": 10}, {"long_input": 1.0, "long_output": 2.0}, {"long_from": 0, "long_input": 1.0}]
)
def test_prices_of_long_prompts_are_complete_or_refused(given: Any) -> None:
    with pytest.raises(ct.SpecError, match="expected all three, long_from as a number of tokens"):
        ct.Prices(1.0, 2.0, **given)


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
