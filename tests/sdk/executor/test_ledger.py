"""The ledger: what is reserved, what is settled, who waits and who is refused."""

from __future__ import annotations

import asyncio

import concertino as ct
import pytest
from concertino.core.budget import Amount
from concertino.core.usage import NOTHING, Usage
from concertino.executor.ledger import Ledger
from hypothesis import given
from hypothesis import strategies as st


def usd(amount: float) -> Amount:
    return Amount(usd=amount)


def ledger(limit: float) -> Ledger:
    return Ledger(ct.Budget(usd=limit).limits())


async def wait_a_little() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_a_reservation_counts_at_every_level_until_it_is_settled() -> None:
    top = ledger(10)
    below = top.child(ct.Budget(usd=4))
    reservation = below.try_reserve(usd(3))
    assert reservation is not None
    assert (top.reserved.usd, below.reserved.usd) == (3, 3)
    below.settle(reservation, Usage(usd=2))
    assert (top.spent.usd, below.spent.usd, top.reserved.usd, below.reserved.usd) == (2, 2, 0, 0)
    assert below.remaining().usd == 2
    assert top.remaining().usd == 8


def test_the_tighter_level_decides() -> None:
    below = ledger(1).child(ct.Budget(usd=100))
    assert below.try_reserve(usd(2)) is None
    assert ledger(100).child(ct.Budget(usd=1)).try_reserve(usd(2)) is None


def test_settling_twice_changes_nothing() -> None:
    account = ledger(10)
    reservation = account.try_reserve(usd(3))
    assert reservation is not None
    account.settle(reservation, Usage(usd=1))
    account.settle(reservation, Usage(usd=1))
    assert account.spent.usd == 1


def test_what_costs_nothing_fits_an_exhausted_budget() -> None:
    account = ledger(1)
    account.charge(Usage(usd=1))
    assert account.try_reserve(Amount(calls=1)) is not None
    assert account.try_reserve(usd(0.01)) is None


async def test_a_call_waits_for_one_under_way_and_gets_what_that_one_left() -> None:
    account = ledger(1)
    first = account.try_reserve(usd(1))
    assert first is not None
    second = asyncio.ensure_future(account.reserve(usd(0.5)))
    await wait_a_little()
    assert not second.done()
    account.settle(first, Usage(usd=0.4))
    granted = await second
    assert granted is not None
    assert account.reserved.usd == 0.5


async def test_a_waiting_call_is_refused_when_the_rest_cannot_cover_it() -> None:
    account = ledger(1)
    first = account.try_reserve(usd(1))
    assert first is not None
    second = asyncio.ensure_future(account.reserve(usd(0.5)))
    await wait_a_little()
    account.settle(first, Usage(usd=0.8))
    assert await second is None


async def test_what_can_never_fit_is_refused_without_waiting() -> None:
    account = ledger(1)
    assert account.try_reserve(usd(0.5)) is not None
    assert await asyncio.wait_for(account.reserve(usd(2)), 60) is None


async def test_a_cancelled_wait_leaves_no_reservation() -> None:
    account = ledger(1)
    first = account.try_reserve(usd(1))
    assert first is not None
    second = asyncio.ensure_future(account.reserve(usd(0.5)))
    await wait_a_little()
    second.cancel()
    await asyncio.wait([second])
    account.settle(first, NOTHING)
    assert account.reserved.usd == account.spent.usd == 0


async def test_a_wait_cancelled_at_the_moment_it_is_granted_leaves_no_reservation() -> None:
    account = ledger(1)
    first = account.try_reserve(usd(1))
    assert first is not None
    second = asyncio.ensure_future(account.reserve(usd(1)))
    await wait_a_little()
    account.settle(first, NOTHING)
    second.cancel()
    await asyncio.wait([second])
    assert account.reserved.usd == 0
    assert account.try_reserve(usd(1)) is not None


async def test_an_agent_whose_only_call_waits_does_not_keep_the_others_waiting() -> None:
    account = ledger(1)
    agent = account.try_reserve(usd(0.6))
    assert agent is not None
    inside = account.child()
    assert await asyncio.wait_for(inside.reserve(usd(0.5)), 60) is None


async def test_two_agents_that_wait_for_each_other_are_told_apart_by_refusing_the_later() -> None:
    account = ledger(2)
    assert account.try_reserve(usd(1)) is not None
    assert account.try_reserve(usd(0.5)) is not None
    first = asyncio.ensure_future(account.child().reserve(usd(0.8)))
    await wait_a_little()
    assert not first.done()
    second = asyncio.ensure_future(account.child().reserve(usd(0.8)))
    assert await asyncio.wait_for(second, 60) is None
    await wait_a_little()
    assert first.done() is False  # the second agent goes on without its call, and will settle


def test_a_bill_above_the_bound_is_recorded_and_freezes_only_when_it_breaks_the_limit() -> None:
    account = ledger(10)
    reservation = account.try_reserve(usd(1))
    assert reservation is not None
    account.settle(reservation, Usage(usd=3))
    assert account.overrun.usd == 2
    assert not account.frozen
    reservation = account.try_reserve(usd(1))
    assert reservation is not None
    account.settle(reservation, Usage(usd=9))
    assert account.frozen
    assert account.try_reserve(Amount(calls=1)) is None


def test_a_call_in_doubt_is_charged_its_reservation_or_more() -> None:
    account = ledger(10)
    for actual, charged in ((0.2, 2.0), (3.0, 3.0)):
        before = account.spent.usd
        reservation = account.try_reserve(usd(2))
        assert reservation is not None
        account.settle(reservation, Usage(usd=actual), at_reservation=True)
        assert account.spent.usd - before == charged


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1)), max_size=40), st.floats(0.1, 10))
def test_spent_and_reserved_never_pass_the_limit_whatever_is_asked(
    asked: list[tuple[float, float]], limit: float
) -> None:
    account = ledger(limit)
    held = []
    for bound, share in asked:
        reservation = account.try_reserve(usd(bound))
        if reservation is not None:
            held.append((reservation, bound * share))
        assert account.spent.usd + account.reserved.usd <= limit + 1e-6
        if len(held) > 3:
            reservation, actual = held.pop(0)
            account.settle(reservation, Usage(usd=actual))
    for reservation, actual in held:
        account.settle(reservation, Usage(usd=actual))
    assert account.spent.usd <= limit + 1e-6
    assert abs(account.reserved.usd) < 1e-6


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("usd=0.5, seconds=60,calls=20", ct.Budget(usd=0.5, seconds=60, calls=20)),
        ("", ct.Budget()),
    ],
)
def test_a_budget_reads_from_the_command_line(text: str, budget: ct.Budget) -> None:
    assert ct.Budget.parse(text) == budget


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dollars=1", "expected NAME=NUMBER with NAME one of rounds, parallel"),
        ("usd", "expected NAME=NUMBER"),
        ("calls=many", "expected a number"),
        ("usd=-1", "expected a number >= 0"),
        ("usd=nan", "expected a number >= 0"),
        ("seconds=0", "allows nothing"),
    ],
)
def test_a_wrong_budget_says_what_was_expected(text: str, said: str) -> None:
    with pytest.raises(ct.BudgetError, match=said):
        ct.Budget.parse(text)
