"""S3 and S8: whole runs of many rounds; what a round costs, and whether the last cost more than the first.

    python benchmarks/rounds.py [--json] [--quick]

S3: 200 rounds of 4 calls. S8: 1,000 rounds of one call, with the memory they leave behind. The model is a script that
answers at once, so all time is the SDK's: reading the text, validating, running, recording, rendering. A budget of
calls, units, $ and seconds is set and shown to the model in every round.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import concertino as ct
import floors
from measure import Row, memory_mb, script
from scripted import BUDGET, finished, led_by, probe, probes, turn

POOL = ct.Pool(probes(1))
ARGUMENTS = {"text": "hello", "count": 3}


def laps(rounds: int, calls: int, trace: Path | None) -> list[float]:
    """Milliseconds of each round: from one question to the model to the next."""
    orchestrator, model = led_by([turn(*[("probe", ARGUMENTS)] * calls)] * rounds)
    finished(orchestrator.run_sync("What?", pool=POOL, budget=BUDGET, trace=trace), rounds)
    return [(after - before) * 1000 for before, after in pairwise(model.asked)][:rounds]


def floor_laps(rounds: int, calls: int) -> list[float]:
    """The careful floor in the same loop: validated calls, results put into a list of messages."""
    functions = {"probe": floors.function(probe, POOL.actions[0].spec.input_schema, 30.0)}
    text = json.dumps(ARGUMENTS)

    async def run() -> list[float]:
        messages: list[str] = []
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            messages += [json.dumps(seen) for seen in await floors.careful(functions, [("probe", text)] * calls)]
            times.append((time.perf_counter() - began) * 1000)
        return times

    return asyncio.run(run())


def growth(times: list[float]) -> float:
    """The last fifth of the rounds against the first, by their medians."""
    fifth = len(times) // 5
    return statistics.median(times[-fifth:]) / statistics.median(times[:fifth])


def many(quick: bool, folder: Path) -> list[Row]:
    """S3."""
    memory, journal, floor = [], [], []
    for number in range(2 if quick else 5):
        floor.append(floor_laps(200, 4))
        memory.append(laps(200, 4, None))
        journal.append(laps(200, 4, folder / f"{number}.trace.jsonl"))
    middle = statistics.median
    below = middle(middle(times) for times in floor)
    return [
        Row("S3", "one of 200 rounds of 4 calls", middle(middle(t) for t in memory), "ms/round", 0.2, below),
        Row("S3", "the same: last fifth / first fifth", middle(growth(t) for t in memory), "x", 1.1),
        Row("S3", "one of 200 rounds of 4 calls, trace", middle(middle(t) for t in journal), "ms/round", None, below),
        Row("S3", "the same: last fifth / first fifth, trace", middle(growth(t) for t in journal), "x", 1.1),
    ]


def long() -> list[Row]:
    """S8: the run is kept while its memory is looked at, as a caller would keep it."""
    laps(20, 1, None)
    # The second of two that are kept: the first one also fills what a process fills once.
    first, second = (led_by([turn(("probe", ARGUMENTS))] * 1000)[0] for _ in range(2))
    began = time.perf_counter()
    kept = [finished(first.run_sync("What?", pool=POOL, budget=BUDGET), 1000)]
    seconds = time.perf_counter() - began
    before = memory_mb()
    kept.append(finished(second.run_sync("What?", pool=POOL, budget=BUDGET), 1000))
    grown = memory_mb() - before
    floor = sum(floor_laps(1000, 1)) / 1000
    return [
        Row("S8", "1,000 rounds", seconds, "s", 0.3, floor),
        Row("S8", f"memory of the kept run, {len(kept[1].events):,} events", grown, "MB", 10.0),
    ]


def rows(quick: bool) -> list[Row]:
    """All figures."""
    with tempfile.TemporaryDirectory() as name:
        return [*long(), *many(quick, Path(name))]


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
