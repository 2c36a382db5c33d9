"""Budgets under pressure: parallel calls never overshoot, use what there is, and never wait for ever (bar E3)."""

from __future__ import annotations

import asyncio
from statistics import mean

import concertino as ct
import pytest
from concertino.executor import Executor

from .budget_trials import BOUND, BUDGET, overbill, spend_in_a_tree, spend_in_parallel
from .virtual_clock import run_virtually


def test_parallel_calls_of_unknown_cost_never_overshoot_and_use_nine_tenths_of_the_budget() -> None:
    accounts = [spend_in_parallel(seed) for seed in range(100)]
    assert max(account.spent for account in accounts) <= BUDGET + 1e-9
    assert max(abs(account.reserved) for account in accounts) < 1e-9
    assert mean(account.spent for account in accounts if not account.cancelled) >= 0.9 * BUDGET


@pytest.mark.parametrize("workers", [1, 4, 16])
def test_a_provider_that_bills_more_than_its_bound_is_stopped_after_one_call_per_worker(workers: int) -> None:
    for seed in range(20):
        account = overbill(seed, workers)
        assert BUDGET < account.spent <= BUDGET + workers * 3 * BOUND
        assert account.started_after_limit == 0
        assert abs(account.reserved) < 1e-9


def test_nested_agents_that_wait_for_budget_never_deadlock() -> None:
    accounts = [spend_in_a_tree(seed) for seed in range(150)]
    assert max(abs(account.reserved) for account in accounts) < 1e-6
    assert sum(account.calls for account in accounts) > 150


def test_a_refused_call_says_how_much_it_needs_and_how_much_is_left() -> None:
    @ct.tool(cost=ct.Cost(units=3))
    async def dear() -> str:
        """Cost three units."""
        return "done"

    async def run() -> list[ct.Observation]:
        async with Executor() as executor:
            return await executor.run([ct.Call("dear")] * 3, ct.Pool.of(dear), budget=ct.Budget(units=7))

    observations = run_virtually(run())
    assert [o.status for o in observations] == ["OK", "OK", "EXEC_ERR"]
    error = observations[2].error
    assert error is not None
    assert error.code == "budget_exhausted"
    assert "it needs 3 units, 1 left" in error.message
    assert observations[2].attempts == 0


def test_a_call_cut_off_by_its_deadline_is_charged_what_was_reserved_for_it() -> None:
    @ct.tool(cost=ct.Cost(max_usd=2), timeout=1)
    async def endless() -> str:
        """Never end."""
        await asyncio.sleep(1e9)
        return ""

    async def run() -> float:
        async with Executor() as executor:
            scope = executor.open(ct.Pool.of(endless), budget=ct.Budget(usd=5))
            await executor.run_plan(ct.Plan([ct.Call("endless")]), scope)
            return scope.ledger.spent.usd

    assert run_virtually(run()) == 2


def test_an_agent_that_ends_while_a_call_of_its_own_waits_for_budget_has_nobody_else_refused() -> None:
    @ct.tool(cost=ct.Cost(max_usd=1), timeout=None)
    async def pay(seconds: float) -> ct.Result:
        """Cost next to nothing, after a while."""
        await asyncio.sleep(seconds)
        return ct.Result("", usd=0.1)

    @ct.tool
    async def pause() -> None:
        """Take a moment."""
        await asyncio.sleep(0.05)

    @ct.agent(timeout=None)
    async def hasty(ctx: ct.Context) -> str:
        """Leave without waiting for the call it asked for."""
        task = asyncio.create_task(ctx.call("pay", {"seconds": 1}))
        await asyncio.sleep(0.1)
        return f"left, done: {task.done()}"

    async def run() -> list[ct.Observation]:
        async with Executor() as executor:
            calls = [
                ct.Call("pay", {"seconds": 1}),
                ct.Call("hasty"),
                ct.Call("pause", {}, "pause"),
                ct.Call("pay", {"seconds": 1}, after=("pause",)),
            ]
            return await executor.run(calls, ct.Pool.of(pay, hasty, pause), budget=ct.Budget(usd=1.5))

    observations = run_virtually(run())
    assert [o.status for o in observations] == ["OK", "OK", "OK", "OK"]
