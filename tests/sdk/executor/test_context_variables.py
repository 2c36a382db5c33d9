"""Context variables: a call sees those of whoever asked for it, not of whoever happened to make room for it."""

from __future__ import annotations

import asyncio
import contextvars

import concertino as ct
from concertino.executor import Executor, Limits

from .virtual_clock import run_virtually

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


@ct.tool
async def who() -> str:
    """Say on whose behalf this runs, and spoil it for others."""
    seen = WHO.get()
    await asyncio.sleep(1)
    WHO.set("a call before")
    return seen


def test_calls_that_had_to_wait_run_in_the_context_of_their_own_run() -> None:
    async def run(name: str, executor: Executor) -> list[object]:
        WHO.set(name)
        plan = [ct.Call("who"), ct.Call("who"), ct.Call("who", id="last", after=("1",))]
        return [o.content for o in await executor.run(plan, ct.Pool.of(who), run_id=name)]

    async def main() -> list[list[object]]:
        async with Executor(Limits(calls=1)) as executor:
            return await asyncio.gather(*(run(name, executor) for name in ("Ada", "Bob")))

    assert run_virtually(main()) == [["Ada"] * 3, ["Bob"] * 3]
