"""Many runs inside one budget; the argument says where: `local`, or `local:2` for two worker processes."""

import asyncio
import sys
import tempfile
from collections import Counter
from contextlib import aclosing

import concertino as ct
from concertino.rollouts import OrderedRuns, RunOrder, open_rollouts

POOL = ct.Pool.installed("toy/*").bind(orchestrator="toy/leader")


async def main(place: str, folder: str) -> None:
    orders = (
        RunOrder(f"What is {number} + 5?", budget=ct.Budget(usd=0.05), seed=number, folder=folder)
        for number in range(20)
    )
    async with (
        open_rollouts(place, OrderedRuns(POOL), slots=8) as rollouts,
        aclosing(rollouts.submit(orders, budget=ct.Budget(usd=1.0))) as results,
    ):
        found = [result async for result in results]
    print(len(found), "runs", dict(Counter(result.status for result in found)))
    print("inside the budget:", sum(result.usage.usd for result in found) <= 1.0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as traces:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "local", traces))
