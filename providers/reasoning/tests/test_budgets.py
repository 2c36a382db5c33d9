"""Cut short: whatever a budget or a deadline leaves, the observation is well-formed and nothing is overspent.

A request takes one second, and a word is a token that costs $ 1 where there is a price, so that every cut falls at a
known point: before a request, inside one, between two rounds.
"""

from __future__ import annotations

import asyncio
import math
import re

import concertino as ct
import pytest
from concertino.testing import run_call
from concertino_reasoning import agents

from .helpers import (
    EACH_AGENT,
    REQUESTS,
    ROLES,
    ROUND_TRIPS,
    TASK,
    Worker,
    answer_of,
    arguments_of,
    notes_of,
    pool_of,
    run_virtually,
    solution,
    well_formed,
)

QUESTION = "How many hours has a week, less 126?"
DOLLAR_A_TOKEN = ct.Prices(input=1e6, output=1e6)
CUTS = 60
"""Budgets between nothing and enough that are tried for each agent."""
EACH = pytest.mark.parametrize("name", EACH_AGENT)


async def run(name: str, worker: ct.Model, budget: ct.Budget | None, prices: ct.Prices | None = None) -> ct.Observation:
    pool = pool_of(worker, prices=prices)
    return await run_call(EACH_AGENT[name], arguments_of(name), pool=pool, question=QUESTION, budget=budget)


def undisturbed(name: str) -> int:
    """Tokens of a call that nothing cuts short, and of what its last request reserves."""
    seen: ct.Observation = run_virtually(run(name, Worker(), None))
    return seen.usage.tokens + 64


def cuts(most: int) -> list[int]:
    return [*range(0, 40, 4), *range(40, most + 200, max(1, most // CUTS))]


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("currency", ["tokens", "usd"])
def test_a_cut_of_tokens_or_money_is_never_overspent(name: str, currency: str) -> None:
    prices = DOLLAR_A_TOKEN if currency == "usd" else None
    succeeded, requests = [], []
    for limit in cuts(undisturbed(name)):
        worker = Worker()
        budget = ct.Budget(tokens=limit) if currency == "tokens" else ct.Budget(usd=float(limit))
        seen = run_virtually(run(name, worker, budget, prices))
        assert well_formed(seen), (limit, seen)
        assert (seen.usage.tokens if currency == "tokens" else seen.usage.usd) <= limit
        assert seen.ok or (seen.error is not None and seen.error.code in ("budget_exhausted", "truncated")), seen.error
        assert len(worker.requests) <= REQUESTS[name] + (name == "ensemble_solver")
        assert worker.running == 0
        succeeded.append(seen.ok)
        requests.append(len(worker.requests))
    assert not succeeded[0]
    assert succeeded[-1]
    assert succeeded == sorted(succeeded), "once a budget is enough for an answer, a larger one is too"
    assert requests[-1] == REQUESTS[name]


@EACH
def test_a_model_of_unknown_price_is_not_asked_under_a_budget_of_money(name: str) -> None:
    worker = Worker()
    seen = run_virtually(run(name, worker, ct.Budget(usd=1_000.0)))
    assert seen.error is not None
    assert (seen.error.code, worker.requests) == ("budget_exhausted", [])


@EACH
def test_a_cut_of_seconds_ends_in_time(name: str) -> None:
    trips = ROUND_TRIPS[name]
    ok = []
    for limit in [0.01, *(half / 2 + 0.1 for half in range(2 * trips + 6))]:
        worker = Worker()
        seen = run_virtually(run(name, worker, ct.Budget(seconds=limit)))
        assert well_formed(seen), (limit, seen)
        assert seen.ended - seen.started <= limit + 1e-3
        assert seen.ok or seen.status is ct.Status.TIMEOUT
        assert seen.ok == (limit > 1.0), "one round trip is enough for some answer"
        assert worker.running == 0
        ok.append(seen.ok)
    assert len(worker.requests) == REQUESTS[name]


@EACH
def test_a_cut_of_calls_or_units_refuses_the_whole_call(name: str) -> None:
    units = EACH_AGENT[name].cost.units
    for budget in (ct.Budget(calls=0), ct.Budget(units=units - 0.5)):
        worker = Worker()
        seen = run_virtually(run(name, worker, budget))
        assert seen.error is not None
        assert (seen.error.code, seen.usage, worker.requests) == ("budget_exhausted", ct.Usage(), [])
    assert run_virtually(run(name, Worker(), ct.Budget(calls=1, units=units))).ok


def test_a_vote_is_held_over_the_samples_that_came_back_in_time() -> None:
    class Numbered(Worker):
        """Sample n takes n seconds longer."""

        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            await asyncio.sleep(request.sampling.seed or 0)
            return await super().chat(request)

    spec = agents.self_consistency.with_(timeout=3.5)
    seen = run_virtually(run_call(spec, TASK, pool=pool_of(Numbered())))
    assert seen.ok
    assert "3 of 5 samples voted: 42 (3)" in notes_of(seen)
    assert "2 of 5 samples failed; the first: deadline" in notes_of(seen)


def test_samples_that_had_to_wait_for_tokens_are_taken_one_after_another() -> None:
    full = undisturbed("self_consistency")
    worker = Worker()
    seen = run_virtually(run("self_consistency", worker, ct.Budget(tokens=full + 20)))
    assert "5 of 5 samples voted" in notes_of(seen)
    assert worker.most_at_once < 5
    assert seen.ended - seen.started > 1.5


@pytest.mark.parametrize("name", ["self_consistency", "ensemble_solver"])
def test_samples_come_one_by_one_where_a_single_reply_may_take_all_tokens(name: str) -> None:
    worker = Worker()
    pool = pool_of(worker, max_tokens=100_000)
    budget = ct.Budget(tokens=undisturbed(name))
    seen = run_virtually(run_call(EACH_AGENT[name], arguments_of(name), pool=pool, question=QUESTION, budget=budget))
    assert f"{REQUESTS[name]} of {REQUESTS[name]} samples voted" in notes_of(seen)
    assert seen.ended - seen.started == pytest.approx(REQUESTS[name], abs=1e-3)


def test_the_round_in_which_the_tokens_end_is_the_last_of_a_debate() -> None:
    most = undisturbed("debate")
    cut = 0
    for limit in range(most // 8, most, most // 25):
        seen = run_virtually(run("debate", Worker(), ct.Budget(tokens=limit)))
        assert seen.ok
        failed = re.search(r"(\d+) turns failed; the first: budget_exhausted", notes_of(seen))
        assert failed is None or int(failed[1]) <= len(ROLES)
        cut += failed is not None
    assert cut > 5


def test_a_debate_leaves_time_for_its_moderator() -> None:
    worker = Worker()
    seen = run_virtually(run("debate", worker, ct.Budget(seconds=4.5)))
    assert "3 of 5 rounds" in notes_of(seen)
    assert "no moderator" not in notes_of(seen)
    assert len(worker.requests) == 3 * len(ROLES) + 1


def test_a_reflexion_without_time_for_another_attempt_gives_the_last() -> None:
    numbered = Worker(lambda request, n: Worker.obliging(request) if n % 2 else solution(str(n)))
    seen = run_virtually(run("reflexion", numbered, ct.Budget(seconds=4.5)))
    assert answer_of(seen) == "\\boxed{2}"
    assert "attempt 2 stands, not approved: there is no time for another" in notes_of(seen)


def test_parallel_calls_share_one_budget_and_all_end() -> None:
    async def work(limit: int) -> list[ct.Observation]:
        worker = Worker()
        calls = [ct.Call(name, arguments_of(name)) for name in EACH_AGENT]
        pool = pool_of(worker, *EACH_AGENT.values())
        async with ct.Executor() as executor:
            seen = await executor.run(calls, pool, budget=ct.Budget(tokens=limit), question=QUESTION)
        assert worker.running == 0
        return seen

    most = sum(undisturbed(name) for name in EACH_AGENT)
    for limit in (0, 100, most // 8, most // 2, 2 * most):
        seen = run_virtually(work(limit))
        assert len(seen) == len(EACH_AGENT)
        assert all(map(well_formed, seen))
        assert math.fsum(one.usage.tokens for one in seen) <= limit


@EACH
@pytest.mark.parametrize("after", [0.0, 0.5, 1.5, 2.5])
def test_a_cancelled_call_leaves_nothing_behind(name: str, after: float) -> None:
    async def work() -> tuple[int, int]:
        worker = Worker()
        async with ct.Executor() as executor:
            calls = [ct.Call(name, arguments_of(name))]
            running = asyncio.ensure_future(executor.run(calls, pool_of(worker, EACH_AGENT[name]), question=QUESTION))
            await asyncio.sleep(after)
            running.cancel()
            await asyncio.wait({running})
            assert running.cancelled() or running.result()[0].ok
            assert executor.health()["abandoned_calls"] == 0
        others = asyncio.all_tasks() - {asyncio.current_task()}
        return worker.running, len(others)

    assert run_virtually(work()) == (0, 0)
