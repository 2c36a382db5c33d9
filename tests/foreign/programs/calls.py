"""Calls members of a pool, and prints one line of JSON per call: name, what is expected, what came, and the content."""

import asyncio
import json
import sys
from typing import Any

import concertino as ct

Expected = tuple[str, dict[str, Any], str]
"""Name, arguments, and the status that is expected."""


def tell(name: str, expected: str, came: str, content: Any) -> None:
    sys.stdout.write(json.dumps([name, expected, came, content]) + "\n")


def show(pool: ct.Pool, *calls: Expected, deps: Any = None) -> None:
    """Call tools that came into a pool."""

    async def run() -> None:
        async with ct.Executor() as executor:
            plan = [ct.Call(name, arguments) for name, arguments, _ in calls]
            for seen, (name, _, expected) in zip(await executor.run(plan, pool, deps=deps), calls, strict=True):
                tell(name, expected, seen.status.value, seen.content)

    asyncio.run(run())


# -- what goes out -----------------------------------------------------------------------------------------------------


@ct.tool
async def pay(amount: float, to: str = "Ada", *, ctx: ct.Context[dict[str, float]]) -> dict[str, float]:
    """Pay somebody.

    Args:
        amount: how much
        to: to whom
    """
    ctx.deps[to] = ctx.deps.get(to, 0.0) + amount
    return ctx.deps


@ct.agent
async def spend(amounts: list[float], *, ctx: ct.Context) -> list[str]:
    """Pay several amounts, one after another."""
    seen = [await ctx.call("pay", {"amount": amount}) for amount in amounts]
    return [each.status.value for each in seen]


@ct.tool(approval=True)
def erase(name: str) -> str:
    """Erase a file."""
    return f"erased {name}"


@ct.tool
def draw() -> list[Any]:
    """Draw a cat."""
    return ["a cat", ct.Image(b"\x89PNG\r\n\x1a\n", name="cat.png")]


OURS = ct.Pool.of(pay, spend, erase, draw)
