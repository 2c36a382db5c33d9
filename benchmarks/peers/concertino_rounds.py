"""concertino itself, measured as its peers are: an Orchestrator in parallel rounds, with a listener and a budget."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import concertino as ct

DISTRIBUTION = "concertino"
REQUIREMENTS = ("concertino",)


class Scripted(ct.Model):
    """Says what it was given."""

    def __init__(self, texts: list[str]) -> None:
        self.script = iter(texts)

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The next text."""
        return ct.Reply(next(self.script), usage=ct.Usage(input_tokens=10, output_tokens=10))


def _text(turn: list[Any]) -> str:
    blocks = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in turn]
    return "<reasoning>go on</reasoning>" + "".join(f"<tool_call>{block}</tool_call>" for block in blocks)


def build(functions: list[Callable[..., Any]], turns: list[Any]) -> Callable[[], Awaitable[list[str]]]:
    """A run until the model answers. Only `hang` gets a time limit of its own, of half a second."""
    pool = ct.Pool([ct.tool(timeout=0.5 if f.__name__ == "hang" else 60.0)(f) for f in functions])
    texts = [*(_text(turn) for turn in turns), _text([("final_answer", {})]), "<answer>done</answer>"]
    strategy = ct.ParallelRounds(max_rounds=len(turns) + 1, max_parallel=1000)
    budget = ct.Budget(calls=10**9, units=1e9, seconds=3600)

    async def run() -> list[str]:
        done = await ct.Orchestrator(Scripted(texts), strategy).run("go", pool=pool, budget=budget)
        return [seen.error.message if seen.error else str(seen.content) for seen in done.observations]

    return run


def graph(nodes: list[tuple[float, tuple[int, ...]]]) -> Callable[[], Awaitable[Any]]:
    """A plan with `after`."""
    import asyncio

    @ct.tool
    async def work(seconds: float) -> float:
        """Wait."""
        await asyncio.sleep(seconds)
        return seconds

    pool = ct.Pool.of(work)
    calls = [
        ct.Call("work", {"seconds": seconds}, id=f"n{number}", after=tuple(f"n{other}" for other in before))
        for number, (seconds, before) in enumerate(nodes)
    ]

    async def run() -> Any:
        async with ct.Executor() as executor:
            return await executor.run(calls, pool)

    return run
