"""Trials of budgets under pressure: a run of many parallel calls whose true cost shows only afterwards.

All run on a virtual clock, so a trial takes milliseconds and a deadlock is an exception. One trial is one run; it
returns what the ledger ended with. Used by the tests at small counts and by `benchmarks/reliability.py` at full ones.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

import concertino as ct
from concertino.executor import Executor, Limits

from .virtual_clock import run_virtually

BUDGET = 10.0
BOUND = 1.0


@dataclass(frozen=True)
class Account:
    """What a ledger ended with, in $."""

    spent: float
    reserved: float
    calls: int
    """Calls that were really made."""
    started_after_limit: int = 0
    """Calls that began although the limit had been passed already."""
    cancelled: bool = False


async def random_call(seconds: float, cost: float, fate: str) -> ct.Result:
    """Take some time, then bill, fail or hang."""
    await asyncio.sleep(1e6 if fate == "hangs" else seconds)
    if fate == "raises":
        raise ValueError("failed, and billed nothing")
    return ct.Result("", usd=cost)


PAID = ct.tool(cost=ct.Cost(max_usd=BOUND), timeout=1.0)(random_call)


def spend_in_parallel(seed: int, calls: int = 100) -> Account:
    """One run of parallel calls with random cost and fate; one run in five is cancelled half way."""
    chance = random.Random(seed)
    fates = chance.choices(["ends", "raises", "hangs"], [0.90, 0.08, 0.02], k=calls)
    plan = ct.Plan(
        ct.Call(
            "random_call", {"seconds": chance.uniform(0.001, 0.004), "cost": chance.uniform(0.05, BOUND), "fate": fate}
        )
        for fate in fates
    )
    cancelled = chance.random() < 0.2

    async def run() -> Account:
        async with Executor(Limits(calls=chance.choice([4, 20, 256]))) as executor:
            scope = executor.open(ct.Pool.of(PAID), budget=ct.Budget(usd=BUDGET))
            work = asyncio.ensure_future(executor.run_plan(plan, scope))
            if cancelled:
                await asyncio.sleep(chance.uniform(0, 0.01))
                work.cancel()
            await asyncio.wait([work])
            made = sum(o.attempts > 0 for o in scope.results.values())
            return Account(scope.ledger.spent.usd, scope.ledger.reserved.usd, made, cancelled=cancelled)

    return run_virtually(run())


def overbill(seed: int, workers: int, factor: float = 3.0) -> Account:
    """A run over a provider that bills `factor` times its own bound."""
    chance = random.Random(seed)
    late = 0

    async def run() -> Account:
        async with Executor(Limits(calls=workers)) as executor:
            pool = ct.Pool.of(ct.tool(cost=ct.Cost(max_usd=BOUND), timeout=None, name="greedy")(greedy))
            scope = executor.open(pool, budget=ct.Budget(usd=BUDGET))
            ledgers.append(scope.ledger)
            plan = ct.Plan(ct.Call("greedy", {"seconds": chance.uniform(0.001, 0.004)}) for _ in range(100))
            observations = await executor.run_plan(plan, scope)
            made = sum(o.attempts > 0 for o in observations)
            return Account(scope.ledger.spent.usd, scope.ledger.reserved.usd, made, late)

    ledgers: list[ct.Ledger] = []

    async def greedy(seconds: float) -> ct.Result:
        """Bill too much."""
        nonlocal late
        late += ledgers[0].spent.usd > BUDGET
        await asyncio.sleep(seconds)
        return ct.Result("", usd=factor * BOUND)

    return run_virtually(run())


# -- nested agents -----------------------------------------------------------------------------------------------------


@ct.tool(cost=ct.Cost(units=1, max_usd=BOUND), timeout=None)
async def leaf(seconds: float, cost: float) -> ct.Result:
    """Cost something."""
    await asyncio.sleep(seconds)
    return ct.Result("", usd=cost)


@ct.agent(cost=ct.Cost(units=1, usd=0.1), timeout=None)
async def branch(ctx: ct.Context, children: list[dict[str, object]], together: bool) -> int:
    """Call the children, all together or one after another; how many succeeded."""
    if together:
        return sum(o.ok for o in await ctx.run([_child(c) for c in children]))
    return sum([(await ctx.run([_child(c)]))[0].ok for c in children])


def _child(arguments: dict[str, object]) -> ct.Call:
    return ct.Call("branch" if "children" in arguments else "leaf", arguments)


def random_tree(chance: random.Random, depth: int = 4) -> dict[str, object]:
    """Arguments of a branch, or of a leaf, nested at random."""
    if depth == 0 or chance.random() < 0.25:
        return {"seconds": chance.uniform(0, 0.01), "cost": chance.uniform(0, BOUND)}
    children = [random_tree(chance, depth - 1) for _ in range(chance.randint(1, 4))]
    return {"children": children, "together": chance.random() < 0.7}


def spend_in_a_tree(seed: int) -> Account:
    """One run of nested agents that all draw on one tight budget."""
    chance = random.Random(seed)
    plan = ct.Plan(_child(random_tree(chance)) for _ in range(chance.randint(1, 6)))
    budget = ct.Budget(usd=chance.uniform(0.5, 8), units=chance.choice([None, 5, 20]), calls=chance.choice([None, 12]))

    async def run() -> Account:
        async with Executor(Limits(calls=chance.choice([1, 3, 256]))) as executor:
            scope = executor.open(ct.Pool.of(leaf, branch), budget=budget)
            await executor.run_plan(plan, scope)
            spent, limits = scope.ledger.spent, budget.limits()
            assert all(s <= most + 1e-6 for s, most in zip(spent, limits, strict=True)), (spent, limits)
            made = sum(o.attempts > 0 for o in scope.results.values())
            return Account(spent.usd, sum(scope.ledger.reserved), made)

    return run_virtually(run())
