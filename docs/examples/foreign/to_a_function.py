"""A member as a plain async function."""

import asyncio
import inspect

import concertino as ct


@ct.tool(approval=lambda arguments: arguments["amount"] > 100)
async def pay(amount: float, to: str = "Ada", *, ctx: ct.Context[dict[str, float]]) -> dict[str, float]:
    """Pay somebody.

    Args:
        amount: how much
        to: to whom
    """
    ctx.deps[to] = ctx.deps.get(to, 0.0) + amount
    return ctx.deps


async def main() -> None:
    pool = ct.Pool.of(pay)
    function = ct.as_function(pool, "pay", deps={}, budget=ct.Budget(seconds=10), approve=lambda request: False)
    print(function.__name__, inspect.signature(function))
    print(await function(30), await function(5, to="Bob"))
    for amount in ("much", 1000):
        try:
            await function(amount)
        except ct.CallFailed as failed:
            print(failed.observation.status, failed)


asyncio.run(main())
