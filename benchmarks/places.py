"""S23: where many runs happen, in this process or in several.

    python benchmarks/places.py [--json] [--quick]

What an order costs beside its run: orders of nothing, in this process and in one worker, in microseconds of processor
time, that of the worker included. What a second worker gives where tools compute: the seconds of one worker divided by
those of two, for the same runs, once the workers are ready. The bar is 1.7 on two free cores, so the figure is its
inverse: two workers take at most 0.59 of the time of one.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import time
from collections.abc import Iterable
from contextlib import aclosing

from concertino.rollouts import InProcess, Processes, Rollouts, RunOrder, Work
from measure import Row, script
from place_work import Computing, Nothing

SLOTS = 16


async def all_of(place: Rollouts, orders: Iterable[RunOrder]) -> int:
    """How many of the orders are done."""
    async with aclosing(place.submit(orders)) as results:
        return len([result async for result in results if result.status == "done"])


def orders(count: int, name: str) -> Iterable[RunOrder]:
    """So many, of different runs."""
    return (RunOrder("Go.", id=f"{name}-{number}") for number in range(count))


def processor_time() -> float:
    """Of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


async def seconds_of(work: Work, workers: int, count: int) -> float:
    """Of so many orders, once all workers are ready."""
    place: Rollouts = Processes(work, workers, slots=SLOTS) if workers else InProcess(work, slots=SLOTS)
    async with place:
        await all_of(place, orders(2 * SLOTS, "first"))
        began = time.perf_counter()
        assert await all_of(place, orders(count, "measured")) == count
        return time.perf_counter() - began


def cost_of_an_order(workers: int, count: int) -> float:
    """Microseconds of processor time, what a start takes left out."""
    taken = []
    for number in (0, count):
        before = processor_time()
        asyncio.run(seconds_of(Nothing(), workers, number))
        taken.append(processor_time() - before)
    return 1e6 * (taken[1] - taken[0]) / count


def rows(quick: bool) -> list[Row]:
    """All figures."""
    count, runs, rounds = (1000, 100, 1) if quick else (20_000, 400, 3)
    found = [
        Row("S23", f"an order {where}", cost_of_an_order(workers, count), "µs")
        for where, workers in (("in this process", 0), ("in a worker", 1))
    ]
    shares = []
    for _ in range(rounds):
        one, two = (asyncio.run(seconds_of(Computing(), workers, runs)) for workers in (1, 2))
        shares.append(two / one)
    share = statistics.median(shares)
    note = f"{1 / share:.2f} times as fast; {runs} runs"
    return [*found, Row("S23", "two workers, of one", share, "x", 0.59, None, min(shares), max(shares), note)]


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
