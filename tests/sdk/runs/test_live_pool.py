"""A pool that changes while a service runs: nobody's run sees two pools, and nothing of an old pool stays open."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from pathlib import Path

import concertino as ct
import pytest
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.testing import ScriptedModel, fake_tool

OPENED: Counter[int] = Counter()
"""Model objects that are open, by generation."""


class Generation(ct.Model):
    """Leads and works: asks its own agent three times, then answers with its number."""

    def __init__(self, number: int) -> None:
        self.number = number
        OPENED[number] += 1

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        await asyncio.sleep(random.uniform(0.0, 0.002))
        used = ct.Usage(input_tokens=10, output_tokens=10)
        said = [message.text for message in request.messages]
        if not any("worker" in text for text in said[:1]):
            return ct.Reply(f"generation {self.number}", usage=used)
        rounds = sum(message.role == "assistant" for message in request.messages)
        if rounds < 3:
            calls = "".join(
                f'<tool_call>{{"name": "worker", "arguments": {{"text": "{rounds}.{n}"}}}}</tool_call>'
                for n in range(2)
            )
            return ct.Reply(f"<reasoning>round {rounds}</reasoning>{calls}", usage=used)
        return ct.Reply(f"<answer>generation {self.number}</answer>", usage=used)

    async def close(self) -> None:
        OPENED[self.number] -= 1


@ct.agent(timeout=None)
async def worker(text: str, *, ctx: ct.Context) -> str:
    """Ask the model."""
    return (await ctx.model("worker").chat(text)).text


def pool_of(number: int) -> ct.Pool:
    spec = ct.ModelSpec(f"acme/v{number}", lambda: Generation(number), prices=ct.Prices(number + 1, number + 1))
    return ct.Pool.of(worker, spec, orchestrator=spec.name, worker=spec.name).alias({"worker": "worker"})


@pytest.mark.slow
async def test_500_questions_flow_while_the_pool_is_replaced_20_times() -> None:
    OPENED.clear()
    pools = {pool_of(number).id: number for number in range(21)}
    live = ct.LivePool(pool_of(0))
    runs: list[ct.Run] = []
    strategy = ParallelRounds(max_parallel=2)

    async with ct.Executor() as executor:
        orchestrator = ct.Orchestrator("orchestrator", strategy, executor=executor)
        under_way: set[asyncio.Task[ct.Run]] = set()
        for question in range(500):
            if question and question % 24 == 0 and live.swaps < 20:
                assert live.swap(pool_of(live.swaps + 1))
            task = asyncio.create_task(orchestrator.run(f"question {question}", pool=live))
            under_way.add(task)
            await asyncio.sleep(0)
            if len(under_way) >= 40:
                done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                runs += [task.result() for task in done]
        runs += await asyncio.gather(*under_way)
        assert live.swaps == 20
        assert +OPENED == {20: 1}, "models of pools that nobody uses any more are closed"

    assert len(runs) == 500
    assert +OPENED == {}
    generations = Counter()
    for run in runs:
        number = pools[run.trace.setup["pool"]]
        assert (run.answer, run.stop) == (f"generation {number}", "answered")
        assert {seen.content for seen in run.observations} == {f"generation {number}"}
        assert {r["model"] for r in run.trace.of_kind("ask")} == {f"acme/v{number}"}
        assert run.usage.usd == pytest.approx(run.usage.tokens * (number + 1) / 1e6)
        generations[number] += 1
    assert set(generations) == set(range(21))


async def test_a_new_price_or_description_opens_no_second_connection() -> None:
    OPENED.clear()
    live = ct.LivePool(pool_of(7))
    async with ct.Executor() as executor:
        orchestrator = ct.Orchestrator(executor=executor)
        for price in (1.0, 2.0, 3.0):
            live.update(lambda pool, price=price: pool.price({"acme/v7": ct.Prices(price, price)}))
            run = await orchestrator.run("?", pool=live)
            assert run.usage.usd == pytest.approx(run.usage.tokens * price / 1e6)
            assert OPENED[7] == 1


async def test_an_executor_remembers_no_more_members_than_the_pools_in_use_have() -> None:
    async with ct.Executor() as executor:
        for number in range(50):
            orchestrator = ct.Orchestrator(executor=executor)
            await orchestrator.run("?", pool=pool_of(number))
        assert len(executor.bindings.models) <= 2
        assert len(executor.bindings.open_models) <= 2


async def test_a_model_that_was_swapped_out_is_closed_though_the_pool_has_many_other_members() -> None:
    OPENED.clear()
    tools = [fake_tool(f"t{number}") for number in range(8)]
    async with ct.Executor() as executor:
        orchestrator = ct.Orchestrator(executor=executor)
        for number in (1, 2, 2, 2):
            await orchestrator.run("?", pool=pool_of(number).adding(*tools))
        assert +OPENED == {2: 1}


async def test_a_model_object_that_leads_is_not_closed_under_other_runs() -> None:
    class Leader(Generation):
        closed = 0

        async def close(self) -> None:
            Leader.closed += 1

    async with ct.Executor() as executor:
        orchestrator = ct.Orchestrator(Leader(1), executor=executor)
        for _ in range(3):
            await orchestrator.run("?", pool=pool_of(2))
        assert Leader.closed == 0
    assert Leader.closed == 1


def test_an_equal_pool_is_no_swap_and_a_wrong_one_leaves_the_current_one() -> None:
    live = ct.LivePool(pool_of(1))
    assert not live.swap(live.current.alias({"worker": "worker"}))
    assert live.swaps == 0
    with pytest.raises(ct.UsageError, match="holds a Pool"):
        live.swap("pool.toml")  # type: ignore[arg-type]
    with pytest.raises(ct.PoolError, match="no member 'nobody'"):
        live.update(lambda pool: pool.replace("nobody", "else"))
    assert live.current.roles["worker"] == "acme/v1"


async def test_a_followed_file_is_taken_over_when_it_changes_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "pool.toml"
    path.write_text('members = ["toy/swift", "toy/steady"]\n[roles]\nworker = "toy/swift"\n')
    live = ct.LivePool(ct.Pool.of(ct.ModelSpec("m", ScriptedModel)))
    async with live.following(path, seconds=0.01):
        assert live.current.roles == {"worker": "toy/swift"}
        path.write_text('members = ["toy/swift", "toy/steady"]\n[roles]\nworker = "toy/steady"\n')
        await _until(lambda: live.current.roles == {"worker": "toy/steady"})
        path.write_text('members = ["toy/swift", "toy/steady"]\n[roles]\nworker = "toy/stedy"\n')
        await _until(lambda: bool(live.fault))
        assert "toy/stedy" in live.fault
        assert live.current.roles == {"worker": "toy/steady"}
        path.write_text('members = ["toy/swift"]\n')
        await _until(lambda: not live.fault)
        assert len(live.current) == 1


async def _until(holds: object) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(20):
            while not holds():  # type: ignore[operator]  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert holds()  # type: ignore[operator]
