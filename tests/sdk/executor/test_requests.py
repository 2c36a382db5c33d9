"""Requests to models: what a provider reports decides about retries, time-outs and the bill."""

from __future__ import annotations

import asyncio

import concertino as ct
import pytest
from concertino.executor import RetryPolicy
from concertino.testing import ScriptedModel

from .virtual_clock import run_virtually


def failing(
    failure: ct.FailureClass, retry_after: float | None = None, usage: ct.Usage | None = None
) -> ct.ProviderError:
    return ct.ProviderError("as it was told", failure=failure, retry_after=retry_after, usage=usage)


def observe(
    *turns: object,
    prices: ct.Prices | None = None,
    seconds: float | None = None,
    calls: int = 1,
    budget: ct.Budget | None = None,
    question: str = "?",
) -> list[ct.Observation]:
    model = ScriptedModel(*turns, strict=False)  # type: ignore[arg-type]

    @ct.agent(timeout=None)
    async def clerk(number: int, *, ctx: ct.Context) -> str:
        """Ask."""
        return (await ctx.model("default").chat(question)).text

    async def run() -> list[ct.Observation]:
        pool = ct.Pool.of(clerk, ct.ModelSpec("m", lambda: model, prices=prices, timeout=None))
        async with ct.Executor(retries=RetryPolicy(base=0.1)) as executor:
            plan = [ct.Call("clerk", {"number": number}) for number in range(calls)]
            return await executor.run(plan, pool, budget=budget or ct.Budget(seconds=seconds))

    return run_virtually(run())


def test_a_reply_that_broke_off_is_not_asked_for_again_and_is_charged() -> None:
    spent = ct.Usage(input_tokens=100, output_tokens=50)
    (seen,) = observe(failing(ct.FailureClass.CUT_OFF, usage=spent), "never reached", prices=ct.Prices(1.0, 2.0))
    assert seen.error is not None
    assert (seen.status, seen.error.code, seen.error.retryable) == ("EXEC_ERR", "truncated", True)
    assert seen.usage.usd == pytest.approx(200e-6)


def test_what_failed_attempts_consumed_is_added_to_the_bill_of_the_one_that_succeeded() -> None:
    spent = ct.Usage(input_tokens=100)
    reply = ct.Reply("yes", usage=ct.Usage(input_tokens=100, output_tokens=10))
    (seen,) = observe(failing(ct.FailureClass.MAYBE_EXECUTED, usage=spent), reply, prices=ct.Prices(1.0, 1.0))
    assert (seen.status, seen.usage.input_tokens, seen.usage.usd) == ("OK", 200, pytest.approx(210e-6))


def test_the_bill_of_the_server_wins_over_the_price_table() -> None:
    billed = ct.Reply("yes", usage=ct.Usage(input_tokens=10, output_tokens=10, usd=0.5, reasoning_tokens=4))
    (seen,) = observe(billed, prices=ct.Prices(1.0, 1.0))
    assert (seen.usage.usd, seen.usage.unpriced, seen.usage.reasoning_tokens) == (0.5, 0, 4)
    (seen,) = observe(billed)
    assert (seen.usage.usd, seen.usage.unpriced) == (0.5, 0)


def test_what_the_server_wrote_into_its_cache_is_billed_at_its_own_price() -> None:
    used = ct.Usage(input_tokens=1000, output_tokens=10, cached_tokens=600, cache_write_tokens=300)
    (seen,) = observe(ct.Reply("yes", usage=used), prices=ct.Prices(4.0, 20.0, 0.2, cache_write=5.0))
    assert seen.usage.usd == pytest.approx((100 * 4.0 + 600 * 0.2 + 300 * 5.0 + 10 * 20.0) / 1e6)
    assert seen.usage.cache_write_tokens == 300


@pytest.mark.parametrize(
    ("prices", "fits"),
    [
        (ct.Prices(1.0, 1.0), True),
        (ct.Prices(1.0, 1.0, cache_write=1.25), False),
        (ct.Prices(1.0, 1.0, long_from=100, long_input=2.0, long_output=1.0), False),
        (ct.Prices(1.0, 1.0, long_from=1000, long_input=2.0, long_output=1.0), True),
    ],
)
def test_a_budget_reserves_a_prompt_at_the_most_that_its_tokens_can_cost(prices: ct.Prices, fits: bool) -> None:
    (seen,) = observe("yes", prices=prices, budget=ct.Budget(usd=330e-6), question="x" * 885)  # 300 tokens by estimate
    assert (seen.status == "OK") is fits


def test_without_price_and_bill_the_cost_is_unknown_and_not_nothing() -> None:
    (seen,) = observe(ct.Reply("yes", usage=ct.Usage(input_tokens=10, output_tokens=10)))
    assert (seen.usage.usd, seen.usage.unpriced) == (0.0, 1)


def test_a_model_that_puts_off_until_the_deadline_is_a_time_out_and_no_fault_of_the_provider() -> None:
    (seen,) = observe(failing(ct.FailureClass.THROTTLED, retry_after=2.0), seconds=5.0)
    assert seen.error is not None
    assert (seen.status, seen.error.code) == ("TIMEOUT", "deadline")


def test_many_calls_put_off_at_once_are_all_asked_again() -> None:
    """The retry budget of an outage (10 and a tenth of the calls) would leave most of them without an answer."""
    answered = 0

    async def busy(request: ct.ChatRequest) -> ct.Reply:
        nonlocal answered
        running.append(request)
        try:
            if len(running) > 8:
                raise failing(ct.FailureClass.THROTTLED)
            await asyncio.sleep(0.2)
            answered += 1
            return ct.Reply("done")
        finally:
            running.pop()

    running: list[object] = []
    seen = observe(busy, calls=64)
    assert {observation.status for observation in seen} == {"OK"}
    assert answered == 64
