"""S1: what one validated call costs above `asyncio.gather`, and what a whole turn of one call costs.

    python benchmarks/overhead.py [--json] [--quick]

The tool does nothing. Every feature is on, in its default setting: the argument text is read and validated, the call
has a deadline, is reserved in a budget of calls, units, $ and seconds, has a status and is told to a listener.
Bare gather, the floors and concertino take turns in one process.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import concertino as ct
import floors
from concertino.traces import JournalSink
from measure import Row, in_turn, script
from scripted import BUDGET, TEXT, finished, led_by, probe, probes, turn


async def timed(start: Callable[[], Awaitable[Any]], count: int) -> float:
    """Seconds of `count` rounds."""
    began = time.perf_counter()
    for _ in range(count):
        await start()
    return time.perf_counter() - began


class Round:
    """Rounds of `width` calls on one executor. Each is a run of its own; only the work of a round is timed."""

    def __init__(self, pool: ct.Pool, width: int, sink: JournalSink | None) -> None:
        self.pool, self.width, self.sink = pool, width, sink
        self.executor = ct.Executor()
        self.numbers = itertools.count()

    async def __call__(self) -> None:
        """One round, from the calls as a model wrote them to its observations."""
        scope = self.executor.open(self.pool, budget=BUDGET, sink=self.sink, listeners=[_listen])
        plan = ct.Plan([ct.Call("probe", TEXT) for _ in range(self.width)])
        seen = await self.executor.run_plan(plan, scope, prefix=f"{next(self.numbers)}.")
        if not seen[-1].ok:
            raise SystemExit(f"a call failed: {seen[-1]}")


def _listen(_: object) -> None:
    """A listener that does nothing."""


def per_call(width: int, number_of_tools: int, quick: bool, folder: Path) -> dict[str, float]:
    """Microseconds per call above bare gather, by system."""
    specs = probes(number_of_tools)
    pool = ct.Pool(specs)
    functions = {spec.name: floors.function(probe, spec.input_schema, 30.0) for spec in specs}
    written = [("probe", TEXT)] * width
    rounds = max(1, 300 // width)
    loop = asyncio.new_event_loop()
    sink = JournalSink.create(folder / f"{width}-{number_of_tools}.trace.jsonl", {"t": "header", "v": 1})

    async def make() -> dict[str, Callable[[], Awaitable[Any]]]:
        return {
            "bare": lambda: floors.bare(probe, {"text": "hello", "count": 3}, width),
            "schema": lambda: floors.schema(functions, written),
            "careful": lambda: floors.careful(functions, written),
            "ours": Round(pool, width, None),
            "journal": Round(pool, width, sink),
        }

    systems = loop.run_until_complete(make())
    ours, journal = systems["ours"], systems["journal"]
    assert isinstance(ours, Round)
    assert isinstance(journal, Round)
    journal.executor = ours.executor  # one executor per event loop
    measures = {
        name: functools.partial(lambda start: loop.run_until_complete(timed(start, rounds)), start)
        for name, start in systems.items()
    }
    seen = in_turn(measures, 3 if quick else 15)
    loop.run_until_complete(ours.executor.aclose())
    loop.close()
    sink.close()
    calls = rounds * width
    medians = {name: statistics.median(values) / calls * 1e6 for name, values in seen.items()}
    return {name: value - medians["bare"] for name, value in medians.items() if name != "bare"}


def turn_of_one(number_of_tools: int, quick: bool) -> float:
    """Microseconds that one more turn of one call adds to a whole run."""
    pool = ct.Pool(probes(number_of_tools))
    further = 20 if quick else 100

    def run(turns: int) -> float:
        orchestrator, _ = led_by([turn((pool.actions[0].visible_name, {"text": "hello", "count": 3}))] * turns)
        began = time.perf_counter()
        finished(orchestrator.run_sync("What?", pool=pool, budget=BUDGET, on_event=_listen), turns)
        return time.perf_counter() - began

    seen = in_turn({"one": lambda: run(1), "more": lambda: run(1 + further)}, 3 if quick else 9)
    return (statistics.median(seen["more"]) - statistics.median(seen["one"])) / further * 1e6


def rows(quick: bool) -> list[Row]:
    """All figures."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        for number_of_tools in (1, 100, 1000):
            for width in (1, 10, 100, 1000):
                figures = per_call(width, number_of_tools, quick, Path(name))
                what = f"K={width}, {number_of_tools} tool{'s' * (number_of_tools > 1)}"
                bar = 25.0 if width >= 100 else None
                found.append(Row("S1", what, figures["ours"], "us/call", bar, figures["careful"]))
                bar = 45.0 if width >= 100 else None
                found.append(Row("S1", f"{what}, trace", figures["journal"], "us/call", bar, figures["careful"]))
    for number_of_tools in (1, 1000):
        what = f"turn of one call, full loop, {number_of_tools} tool{'s' * (number_of_tools > 1)}"
        found.append(Row("S1", what, turn_of_one(number_of_tools, quick), "us/turn", 150.0))
    return found


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
