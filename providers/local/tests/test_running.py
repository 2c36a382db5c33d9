"""A local model in real runs: as an agent's model under a deadline, within a budget, and as the orchestrator."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import concertino as ct
import concertino_local
import pytest
from concertino_local import LocalModel
from local_models import COUNT, NUMBERS, until


class Opened:
    """A pool's model, and the `LocalModel` behind it."""

    def __init__(self, path: Path, **options: Any) -> None:
        spec = concertino_local.model("tiny", path=str(path), threads=1, dtype="float32", **options)
        self.models: list[LocalModel] = []

        def make() -> LocalModel:
            model = spec.factory()
            assert isinstance(model, LocalModel)
            self.models.append(model)
            return model

        self.spec = spec.with_(factory=make)

    @property
    def model(self) -> LocalModel:
        (model,) = self.models
        return model


@ct.agent(models=("worker",))
async def solver(ctx: ct.Context, text: str) -> str:
    """Ask the worker model one question.

    Args:
        text: the question, as it is.
    """
    reply: ct.Reply = await ctx.model("worker").chat(text, sampling=ct.Sampling(temperature=0.0, max_tokens=900))
    return reply.text


def pool_of(opened: Opened, *members: Any) -> ct.Pool:
    return ct.Pool.of(opened.spec, *members).bind(worker=opened.spec.name)


async def test_an_agent_is_answered_and_what_it_read_and_wrote_is_counted(scripted: Path) -> None:
    opened = Opened(scripted)
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("solver", {"text": COUNT})], pool_of(opened, solver))
        assert (seen.status, seen.content) == (ct.Status.OK, NUMBERS)
        assert seen.usage.output_tokens == 38
        assert seen.usage.input_tokens > 10
        assert (seen.usage.usd, seen.usage.unpriced, seen.usage.estimated) == (0, 0, 0)
    assert not [thread for thread in threading.enumerate() if thread.name == "concertino-local"]


async def test_sixteen_agents_share_the_batch(scripted: Path) -> None:
    opened = Opened(scripted, max_batch=16)
    async with ct.Executor() as executor:
        calls = [ct.Call("solver", {"text": COUNT}) for _ in range(16)]
        seen = await executor.run(calls, pool_of(opened, solver))
        assert [observation.content for observation in seen] == [NUMBERS] * 16
        assert opened.model.stats.steps < 16 * 38 / 4


@pytest.mark.slow
async def test_a_deadline_stops_the_generation_itself(rambler: Path) -> None:
    opened = Opened(rambler)
    slow = solver.with_(name="slow", timeout=0.5)
    async with ct.Executor() as executor:
        pool = pool_of(opened, slow, solver.with_(name="warm"))
        await executor.run([ct.Call("warm", {"text": "a"})], pool)  # the model is loaded now
        steps = opened.model.stats.steps
        throttled = Throttle(opened.model)
        (seen,) = await executor.run([ct.Call("slow", {"text": "a"})], pool)
        assert seen.status is ct.Status.TIMEOUT
        await until(lambda: opened.model.stats.running == opened.model.stats.waiting == 0)
        stopped_at = opened.model.stats.steps
        throttled.end()
        assert opened.model.stats.cancelled == 1
        assert stopped_at - steps < 890
        await asyncio.sleep(0.2)
        assert opened.model.stats.steps == stopped_at


class Throttle:
    """Makes each step of a model take a few milliseconds, so that a deadline falls into its reply on any machine."""

    def __init__(self, model: LocalModel) -> None:
        import time

        from concertino_local.sampling import Network

        self._step = Network.step

        def slow(network: Network, *others: Any) -> Any:
            time.sleep(0.005)
            return self._step(network, *others)

        Network.step = slow  # type: ignore[method-assign]

    def end(self) -> None:
        from concertino_local.sampling import Network

        Network.step = self._step  # type: ignore[method-assign]


async def test_under_a_token_budget_a_reply_is_as_long_as_the_exact_count_leaves_room_for(scripted: Path) -> None:
    opened = Opened(scripted)
    async with ct.Executor() as executor:
        pool = pool_of(opened, solver)
        (seen,) = await executor.run([ct.Call("solver", {"text": COUNT})], pool, budget=ct.Budget(tokens=50))
        of_the_message = 4
        assert seen.usage.output_tokens == 50 - opened.model.count_tokens(COUNT) - of_the_message


async def test_a_prompt_that_is_too_long_reaches_the_orchestrator_as_an_error_and_is_asked_once(
    scripted: Path,
) -> None:
    opened = Opened(scripted)
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("solver", {"text": "word " * 3000})], pool_of(opened, solver))
        assert seen.status is ct.Status.EXEC_ERR
        assert seen.error is not None
        assert "leaves no room for a reply in a context of 1024" in seen.error.message
        assert opened.model.stats.failed == 1


@pytest.mark.slow
async def test_a_local_model_can_lead_a_run(rambler: Path) -> None:
    """A random model plans nothing sensible; that is told, and the run ends in order."""
    opened = Opened(rambler, max_tokens=30)
    pool = ct.Pool.of(opened.spec, solver).bind(orchestrator=opened.spec.name, worker=opened.spec.name)
    run = await ct.Orchestrator(model="orchestrator").run("Count.", pool=pool, budget=ct.Budget(rounds=2))
    assert run.usage.output_tokens >= 30
    assert not [thread for thread in threading.enumerate() if thread.name == "concertino-local"]
