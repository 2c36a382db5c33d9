"""A pool and a model whose texts are written down, for tests of whole runs."""

import asyncio
from collections.abc import Callable
from typing import Any

import concertino as ct
import pytest
from concertino.strategies.parallel_rounds.format import write_round

Turn = str | Exception


class Texts(ct.Model):
    """Answers with one text after the other; an exception is raised."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.requests: list[ct.ChatRequest] = []

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self.requests.append(request)
        await asyncio.sleep(0)
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return ct.Reply(turn, usage=ct.Usage(input_tokens=100, output_tokens=10))


def round_of(*calls: tuple[str, Any]) -> str:
    return write_round("Go.", calls)


FINAL = round_of(("final_answer", {}))


@ct.tool(cost=ct.Cost(units=1, usd=0.01))
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@ct.tool(timeout=0.2)
async def hang(seconds: float = 100) -> str:
    """Take long."""
    await asyncio.sleep(seconds)
    return "late"


@ct.agent(cost=ct.Cost(units=2))
async def ask_worker(question: str, *, ctx: ct.Context) -> str:
    """Ask the worker model."""
    return (await ctx.model("worker").chat(question)).text


@pytest.fixture
def pool() -> ct.Pool:
    worker = ct.ModelSpec("m/worker", lambda: Texts("w1", "w2", "w3"), prices=ct.Prices(1.0, 10.0))
    return ct.Pool.of(add, hang, ask_worker, worker).bind(worker="m/worker")


@pytest.fixture
def led_by() -> Callable[..., ct.Orchestrator]:
    def make(*turns: Turn, **options: Any) -> ct.Orchestrator:
        model = Texts(*turns)
        return ct.Orchestrator(ct.ModelSpec("m/lead", lambda: model, prices=ct.Prices(1.0, 10.0)), **options)

    return make
