"""Trials of deadlines: nested agents, some of which do not obey, under a run that ends at a random moment.

All run on a virtual clock, so lateness is exact and not a matter of the machine's load. Used by the tests at small
counts and by `benchmarks/reliability.py` at full ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field

import concertino as ct
from concertino.core.events import CallEnded, CallStarted
from concertino.core.plan import Call
from concertino.executor import Executor, RetryPolicy

from .virtual_clock import run_virtually


@dataclass
class Outcome:
    """What one trial showed. Times in seconds."""

    late: float
    """How long after the run's deadline the last observation came; negative if before."""
    observations: int
    missing: int
    """Calls that began and have no observation."""
    outlived: list[str] = field(default_factory=list)
    """Calls that ended after the agent that made them."""


@ct.tool(timeout=None)
async def sleep(seconds: float) -> str:
    """Obey."""
    await asyncio.sleep(seconds)
    return "slept"


@ct.tool(timeout=None)
async def stubborn(seconds: float) -> str:
    """Swallow every cancellation."""
    ends = asyncio.get_running_loop().time() + seconds
    while (left := ends - asyncio.get_running_loop().time()) > 0:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(left)
    return "outlasted everyone"


@ct.tool(timeout=None)
async def untidy(seconds: float) -> str:
    """Take five seconds to clean up."""
    try:
        await asyncio.sleep(seconds)
    finally:
        await asyncio.sleep(5)
    return "cleaned up"


@ct.tool(timeout=None, retry_safe=True)
async def flaky(seconds: float) -> str:
    """Lose the connection each time."""
    await asyncio.sleep(seconds / 10)
    raise ConnectionResetError("lost")


@ct.tool(timeout=0.3)
async def limited(seconds: float) -> str:
    """Have a time limit of its own."""
    await asyncio.sleep(seconds)
    return "in time"


@ct.agent(timeout=None)
async def boss(ctx: ct.Context, children: list[dict[str, object]], together: bool, ignores: bool) -> int:
    """Run the children; the stubborn kind tries again when it is told to stop."""
    calls = [as_call(child) for child in children]
    for _ in range(2 if ignores else 1):
        try:
            observations = await ctx.run(calls) if together else [(await ctx.run([call]))[0] for call in calls]
        except asyncio.CancelledError:
            if not ignores:
                raise
            continue
        return sum(o.ok for o in observations)
    return 0


LEAVES = ("sleep", "sleep", "sleep", "stubborn", "untidy", "flaky", "limited")
POOL = ct.Pool.of(sleep, stubborn, untidy, flaky, limited, boss)


def as_call(node: dict[str, object]) -> Call:
    arguments = dict(node)
    return Call(str(arguments.pop("name")), arguments)


def random_tree(chance: random.Random, depth: int) -> dict[str, object]:
    """A call of an agent nested `depth` deep, with leaves of every temper."""
    if depth == 0:
        return {"name": chance.choice(LEAVES), "seconds": chance.choice([0.01, 0.3, 2, 20])}
    children = [random_tree(chance, depth - 1)]
    children += [random_tree(chance, chance.randint(0, depth - 1)) for _ in range(chance.randint(0, 2))]
    chance.shuffle(children)
    return {
        "name": "boss",
        "children": children,
        "together": chance.random() < 0.7,
        "ignores": chance.random() < 0.15,
    }


def run_tree(seed: int, depth: int = 5) -> Outcome:
    """One run of five nested agents whose deadline passes after 0.1 to 5 s."""
    chance = random.Random(seed)
    tree, seconds = random_tree(chance, depth), chance.uniform(0.1, 5)

    async def run() -> Outcome:
        async with Executor(retries=RetryPolicy(base=0.2)) as executor:
            scope = executor.open(POOL, budget=ct.Budget(seconds=seconds))
            observations = await executor.run_plan(ct.Plan([as_call(tree)]), scope)
            late = scope.now() - seconds
            assert len(observations) == 1
            await asyncio.sleep(6)  # whatever is still going on has time to show
            return judge(scope.events, seconds, late)

    return run_virtually(run())


def judge(events: list[object], deadline: float, late: float) -> Outcome:
    """Read the events of a finished run."""
    begun = {e.call_id for e in events if isinstance(e, CallStarted)}
    ended = [e for e in events if isinstance(e, CallEnded)]
    over: set[str] = set()
    outlived = []
    for event in ended:
        if event.parent in over:
            outlived.append(event.observation.call_id)
        over.add(event.observation.call_id)
    at = {e.observation.call_id: e.observation.ended for e in ended}
    late = max(late, max(at.values(), default=0.0) - deadline)
    return Outcome(late, len(ended), len(begun - over), outlived)
