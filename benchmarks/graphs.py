"""S5: a graph of 40 dependent calls; how much longer than its critical path it takes, without and with faults in it.

    python benchmarks/graphs.py [--json] [--quick]

A graph is made from a seed: call n depends on up to three of the eight before it and waits 20 to 200 ms. With faults,
a tenth of the calls raises, hangs under its time limit of 150 ms or has invalid arguments; their followers are not
run, everything else is. The critical path is computed from the waits, not measured, so the ratio holds all overhead.
`levels` is what running level by level would take, for comparison.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import time
from dataclasses import dataclass

import concertino as ct
from measure import Row, script

SEEDS = (7, 8, 9, *range(100, 110))
NODES = 40
LIMIT = 0.15


@ct.tool
async def work(seconds: float) -> float:
    """Wait."""
    await asyncio.sleep(seconds)
    return seconds


@ct.tool
async def fail(seconds: float) -> float:
    """Wait, then raise."""
    await asyncio.sleep(seconds)
    raise ValueError("broken")


@ct.tool(timeout=LIMIT)
async def hang(seconds: float) -> float:
    """Never return."""
    await asyncio.Event().wait()
    return seconds


POOL = ct.Pool.of(work, fail, hang)


@dataclass(frozen=True, slots=True)
class Node:
    """One call: what it does, how long that takes, which calls come before it."""

    kind: str
    seconds: float
    before: tuple[int, ...]

    def call(self, number: int) -> ct.Call:
        """As a plan holds it."""
        name = "work" if self.kind == "invalid" else self.kind
        arguments = {"seconds": "soon" if self.kind == "invalid" else self.seconds}
        return ct.Call(name, arguments, id=f"n{number}", after=tuple(f"n{other}" for other in self.before))


def graph(seed: int, faulty: bool) -> list[Node]:
    """The nodes of a seed, in an order in which each comes after those before it."""
    rng = random.Random(seed)
    nodes = []
    for number in range(NODES):
        near = range(max(0, number - 8), number)
        before = tuple(sorted(rng.sample(near, min(len(near), rng.choice((0, 1, 1, 2, 2, 3))))))
        seconds = rng.uniform(0.02, 0.2)
        kind = rng.choice(("fail", "hang", "invalid")) if faulty and rng.random() < 0.1 else "work"
        nodes.append(Node(kind, {"hang": LIMIT, "invalid": 0.0}.get(kind, seconds), before))
    return nodes


def critical_path(nodes: list[Node]) -> float:
    """Seconds until the last call that can run has ended: each starts when the last of its predecessors ends."""
    ends: list[float | None] = []
    for node in nodes:
        before = [ends[other] for other in node.before]
        reachable = all(end is not None and nodes[o].kind == "work" for o, end in zip(node.before, before, strict=True))
        ends.append(max((end or 0.0 for end in before), default=0.0) + node.seconds if reachable else None)
    return max(end for end in ends if end is not None)


def level_by_level(nodes: list[Node]) -> float:
    """Seconds if every level waits for the slowest call of the one before."""
    depth: list[int] = []
    slowest: dict[int, float] = {}
    for node in nodes:
        depth.append(1 + max((depth[other] for other in node.before), default=-1))
        slowest[depth[-1]] = max(slowest.get(depth[-1], 0.0), node.seconds)
    return sum(slowest.values())


async def floor(nodes: list[Node]) -> None:
    """Twenty lines of asyncio: a task per call that awaits the tasks before it."""

    async def one(node: Node, before: list[asyncio.Task[None]]) -> None:
        for task in before:
            await task
        await asyncio.sleep(node.seconds)

    tasks: list[asyncio.Task[None]] = []
    for node in nodes:
        tasks.append(asyncio.create_task(one(node, [tasks[other] for other in node.before])))
    await asyncio.gather(*tasks)


async def ratio(executor: ct.Executor, nodes: list[Node]) -> float:
    """Makespan over critical path."""
    plan = ct.Plan([node.call(number) for number, node in enumerate(nodes)])
    began = time.perf_counter()
    seen = await executor.run(plan, POOL)
    seconds = time.perf_counter() - began
    good = [observation.ok or node.kind != "work" for node, observation in zip(nodes, seen, strict=True)]
    skipped = [o.error is not None and o.error.code == "dependency_failed" for o in seen]
    if len(seen) != NODES or not all(g or s for g, s in zip(good, skipped, strict=True)):
        raise SystemExit(f"the graph went wrong: {[o.to_json() for o in seen if not o.ok]}")
    return seconds / critical_path(nodes)


async def measured(quick: bool) -> list[Row]:
    """All figures."""
    found = []
    seeds = SEEDS[:3] if quick else SEEDS
    async with ct.Executor() as executor:
        await ratio(executor, graph(1, False))
        for faulty in (False, True):
            ratios, floors = [], []
            for seed in seeds:
                nodes = graph(seed, faulty)
                ratios.append(await ratio(executor, nodes))
                if not faulty:
                    began = time.perf_counter()
                    await floor(nodes)
                    floors.append((time.perf_counter() - began) / critical_path(nodes))
            below = statistics.median(floors) if floors else None
            what = f"40 calls, {len(seeds)} seeds{', a tenth faulty' if faulty else ''}"
            found.append(Row("S5", f"{what}: median", statistics.median(ratios), "x path", 1.02, below))
            found.append(Row("S5", f"{what}: worst", max(ratios), "x path", 1.02, max(floors, default=None)))  # type: ignore[type-var]
        levels = [level_by_level(graph(seed, False)) / critical_path(graph(seed, False)) for seed in seeds]
        found.append(Row("S5", "for comparison: level by level, computed", statistics.median(levels), "x path"))
    return found


def rows(quick: bool) -> list[Row]:
    """All figures."""
    return asyncio.run(measured(quick))


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
