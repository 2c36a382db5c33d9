"""`call`, `run_call` and `make_context`: one member through the real executor."""

from __future__ import annotations

import asyncio

import concertino as ct
import pytest
from concertino.testing import ScriptedModel, call, fake_tool, make_context, make_pool, run_call


@ct.tool(timeout=5)
def half(n: int) -> float:
    """Half of a number."""
    return n / 2


def test_a_plain_test_gets_the_observation() -> None:
    seen = call(half, {"n": 3})
    assert (seen.status, seen.content) == (ct.Status.OK, 1.5)


def test_arguments_may_be_the_text_that_a_model_wrote() -> None:
    assert call(half, '{"n": 3,}').repairs
    assert call(half, "{").error.code == "bad_json"


async def test_an_async_test_gets_the_observation() -> None:
    assert (await run_call(half, {"n": 4})).content == 2.0


def test_a_budget_counts() -> None:
    dear = fake_tool("dear", cost=ct.Cost(units=2))
    assert call(dear, {}, budget=ct.Budget(units=1)).error.code == "budget_exhausted"


def test_two_calls_share_nothing() -> None:
    refused = fake_tool("refused", raises=ct.ProviderError.from_http(401))
    codes = {call(refused, {}).error.code for _ in range(3)}
    assert codes == {"rejected"}, "a breaker that the first call opened would refuse the others"


def test_the_spec_takes_the_place_of_a_member_of_its_name() -> None:
    pool = ct.Pool.of(fake_tool("half", returns="the pool's"))
    assert call(half, {"n": 2}, pool=pool).content == 1.0


def test_hooks_are_passed_on() -> None:
    def deny(spec, arguments, call_id):
        raise PermissionError("not today")

    assert call(half, {"n": 2}, before=[deny]).error.code == "denied"


def test_a_pool_binds_model_objects_to_roles() -> None:
    pool = make_pool(half, worker=ScriptedModel("x"), judge=ScriptedModel("y"))
    assert pool.roles == {"worker": "model-worker", "judge": "model-judge"}
    assert pool.model("worker").factory() is not pool.model("judge").factory()


async def test_a_context_is_the_real_one() -> None:
    with ScriptedModel("42") as model:
        async with make_context(make_pool(half, worker=model), question="what?", budget=ct.Budget(calls=2)) as ctx:
            assert isinstance(ctx, ct.Context)
            assert ctx.question == "what?"
            assert (await ctx.model("worker").chat("?")).text == "42"
            assert (await ctx.call("half", {"n": 2})).content == 1.0
            assert (await ctx.call("half", {"n": 2})).error.code == "budget_exhausted"


async def test_an_error_in_the_block_of_a_context_is_raised_and_everything_ends() -> None:
    async def work() -> None:
        async with make_context() as ctx:
            raise LookupError(f"{ctx.remaining_seconds()} seconds")

    with pytest.raises(LookupError, match="inf seconds"):
        await work()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_budget_that_lets_nothing_begin_is_named() -> None:
    with pytest.raises(AssertionError, match="does not let a single call begin"):
        async with make_context(budget=ct.Budget(calls=0)):
            pass
