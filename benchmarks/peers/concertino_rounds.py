"""concertino itself, measured as its peers are: an Orchestrator in parallel rounds, in its default settings.

The calls are written as text. `concertino_native` has native ones; `concertino_trace` writes a trace to disk.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import concertino as ct

DISTRIBUTION = "concertino"
REQUIREMENTS = ("concertino",)


USAGE = ct.Usage(input_tokens=10, output_tokens=10)


class Scripted(ct.Model):
    """Says what it was given, again and again."""

    def __init__(self, replies: list[ct.Reply]) -> None:
        self.script = itertools.cycle(replies)

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The next reply."""
        return next(self.script)


def _text(turn: list[Any], round: int) -> ct.Reply:
    blocks = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in turn]
    text = "".join(f"<tool_call>{block}</tool_call>" for block in blocks)
    return ct.Reply(f"<reasoning>go on</reasoning>{text}", usage=USAGE)


def _native(turn: list[Any], round: int) -> ct.Reply:
    calls = [ct.ToolCall(name, json.dumps(arguments), f"{round}-{n}") for n, (name, arguments) in enumerate(turn)]
    return ct.Reply("", tuple(calls), usage=USAGE, finish_reason="tool_calls")


def build(
    functions: list[Callable[..., Any]],
    turns: list[Any],
    *,
    native: bool = False,
    trace: bool = False,
    seconds: float | None = None,
) -> Callable[[], Awaitable[list[str]]]:
    """A run until the model answers. `seconds` is a time limit of `hang`, in place of the default.

    The whole list of tools is shown, as the peers show it: a large pool is not searched.
    """
    limits = {"timeout": seconds} if seconds is not None else {}
    pool = ct.Pool([ct.tool(**(limits if f.__name__ == "hang" else {}))(f) for f in functions])
    pool = pool.with_search("never")
    written = [(_native if native else _text)(turn, round) for round, turn in enumerate(turns)]
    model = Scripted([*written, ct.Reply("done" if native else "<answer>done</answer>", usage=USAGE)])
    strategy = ct.ParallelRounds(max_rounds=len(turns) + 1, max_parallel=1000, native=native)
    folder = tempfile.mkdtemp(prefix="concertino-whole-") if trace else None

    async def run() -> list[str]:
        done = await ct.Orchestrator(model, strategy).run("go", pool=pool, trace=folder)
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


build_limited = partial(build, seconds=0.5)
"""With a time limit for the tool that hangs."""
