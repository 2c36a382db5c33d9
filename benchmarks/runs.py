"""S19 to S21: a thousand runs in one process, long histories, large results.

    python benchmarks/runs.py [--json] [--quick]

S19: 10 to 3,000 concurrent runs of 10 rounds of 4 calls, in the default settings (each run has an executor of its own)
and with a shared one. Sizes are measured in turn, in one process, and ratios are taken between neighbours. Meanwhile a
coroutine of the caller wakes up every millisecond: by how much it is late is the lag of the loop, without the time for
which the thread was ready and had no processor. Memory is what stays, after a collection, of runs that are kept, in a
process that did nothing before. S20: one run whose history is kept to 4,000 tokens, by its number of rounds. S21: 100
results of 1 MB in one round. The model is a script, and each of its replies takes one pass of the loop. Times of calls
and rounds are those of the processor.
"""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino as ct
from concertino.executor import Limits
from measure import Row, memory_mb, script
from scripted import TEXT, probe, turn

ROUNDS, CALLS = 10, 4
RESULTS, SIZE = 100, 2**20
POOL = ct.Pool.of(ct.tool(probe))
ROUND = turn(*[("probe", json.loads(TEXT))] * CALLS)


class Script(ct.Model):
    """The same turn so many times, then the answer."""

    def __init__(self, text: str, turns: int) -> None:
        self.text, self.left = text, turns

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The next text, after one pass of the loop."""
        await asyncio.sleep(0)
        self.left -= 1
        text = self.text if self.left >= 0 else "<answer>done</answer>"
        return ct.Reply(text, usage=ct.Usage(input_tokens=10, output_tokens=10))


class Beat:
    """Wakes up every millisecond and notes by how many it is late, and how many threads there are."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self.threads = 0
        self._schedule = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self._task = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            began, starved = time.perf_counter(), self._starved()
            await asyncio.sleep(0.001)
            late = time.perf_counter() - began - 0.001 - (self._starved() - starved)
            self.late.append(max(0.0, late * 1000))
            self.threads = max(self.threads, threading.active_count())

    def _starved(self) -> float:
        """Seconds for which the thread of the loop was ready and had no processor, where the system says it."""
        try:
            return int(self._schedule.read_text(encoding="ascii").split()[1]) / 1e9
        except OSError:
            return 0.0

    def stop(self) -> None:
        """No more."""
        self._task.cancel()

    def at(self, share: float) -> float:
        """The lag, in ms, that so large a share of the beats does not exceed."""
        return sorted(self.late)[min(len(self.late) - 1, int(share * len(self.late)))]


class Warnings(logging.Handler):
    """Counts warnings."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """One more."""
        self.count += 1


# -- S19 ---------------------------------------------------------------------------------------------------------------


async def many(shared: bool, sizes: list[int], repeat: int) -> dict[str, Any]:
    """So many runs at once, for each size in turn; those of the last time are kept."""
    warnings = Warnings(logging.WARNING)
    logging.getLogger("concertino").addHandler(warnings)
    executor = ct.Executor(Limits(calls=10**6)) if shared else None

    async def one() -> ct.Run:
        leader = ct.Orchestrator(Script(ROUND, ROUNDS), ct.ParallelRounds(max_rounds=ROUNDS + 1), executor=executor)
        return await leader.run("What?", pool=POOL)

    async def at_once(number: int) -> tuple[float, list[ct.Run]]:
        """Microseconds of a call, and the runs."""
        began = time.process_time()
        runs = await asyncio.gather(*(one() for _ in range(number)))
        return (time.process_time() - began) / (number * ROUNDS * CALLS) * 1e6, runs

    await at_once(20)
    costs: dict[int, list[float]] = {size: [] for size in sizes}
    kept = 0.0
    for _ in range(repeat):
        for size in sizes:
            # Small ones several times, so that a busy machine strikes all sizes alike.
            beat, costs_now = Beat(), []
            before = memory_mb()
            # No collection between them: what the collector takes is a part of what calls take, at all sizes.
            for _ in range(max(1, min(30, 300 // size))):
                cost, runs = await at_once(size)
                costs_now.append(cost)
            costs[size].append(statistics.median(costs_now))
            beat.stop()
            kept = (memory_mb() - before) * 1024 / size
            check(runs)
            runs = []
    if executor is not None:
        await executor.aclose()
    return {
        "cpu": {size: statistics.median(found) for size, found in costs.items()},
        "ratios": [large / small for small, large in zip(costs[sizes[0]], costs[sizes[-1]], strict=True)],
        "middle": beat.at(0.5),
        "p99": beat.at(0.99),
        "worst": beat.at(1.0),
        "kept": kept,
        "threads": beat.threads,
        "warnings": warnings.count,
    }


def check(runs: list[ct.Run]) -> None:
    """They went as agreed."""
    assert all(run.answer == "done" and len(run.rounds) == ROUNDS for run in runs)
    assert all(seen.ok for run in runs for seen in run.observations)


def many_rows(quick: bool) -> list[Row]:
    """S19."""
    sizes = [10, 100] if quick else [10, 100, 1000]
    most = f"{sizes[-1]:,} runs"
    rows = []
    for shared in (False, True):
        name = "shared executor" if shared else "default settings"
        few, alone = fresh("many", shared, [10], 1), fresh("many", shared, sizes[-1:], 1)
        seen = fresh("many", shared, sizes, 1 if quick else 3)
        ratios = seen["ratios"]
        rows += [
            *(Row("S19", f"{int(size):,} runs, {name}: CPU of a call", us, "us") for size, us in seen["cpu"].items()),
            Row(
                "S19",
                f"the same: {most} / 10 runs",
                statistics.median(ratios),
                "x",
                1.3,
                None,
                min(ratios),
                max(ratios),
            ),
            Row("S19", f"{most}, {name}: lag of the loop, p99", seen["p99"], "ms", 100.0),
            Row("S19", "the same: in the middle", seen["middle"], "ms"),
            Row("S19", "the same: at worst", seen["worst"], "ms"),
            Row("S19", f"{most}, {name}: memory of a kept run", alone["kept"], "KB", 40.0),
            Row("S19", f"{most}, {name}: threads", seen["threads"], "", few["threads"]),
            Row("S19", f"{most}, {name}: warnings", seen["warnings"], "", 0.0),
        ]
    if not quick:
        seen = fresh("many", False, [3000], 1)
        rows += [
            Row("S19", "3,000 runs, default settings: CPU of a call", seen["cpu"]["3000"], "us"),
            Row("S19", "3,000 runs, default settings: lag of the loop, p99", seen["p99"], "ms", 100.0),
            Row("S19", "3,000 runs, default settings: threads", seen["threads"], "", few["threads"]),
        ]
    return rows


# -- S20 ---------------------------------------------------------------------------------------------------------------


async def long(rounds: int) -> dict[str, float]:
    """One run of so many rounds of one call, its history kept short."""
    text = turn(("probe", json.loads(TEXT)))

    async def run(number: int) -> float:
        strategy = ct.ParallelRounds(max_rounds=number + 1, history_tokens=4000)
        began = time.process_time()
        done = await ct.Orchestrator(Script(text, number), strategy).run("What?", pool=POOL)
        assert done.answer == "done"
        assert len(done.rounds) == number
        return time.process_time() - began

    await run(20)
    return {"us": await run(rounds) / rounds * 1e6}


def long_rows(quick: bool) -> list[Row]:
    """S20."""
    sizes = (100, 250) if quick else (250, 500, 1000, 4000)
    costs = {size: fresh("long", size)["us"] for size in sizes}
    rows = [Row("S20", f"{size:,} rounds, history_tokens=4000", cost, "us/round") for size, cost in costs.items()]
    rows.append(
        Row("S20", f"the same: {sizes[-1]:,} / {sizes[0]:,} rounds", costs[sizes[-1]] / costs[sizes[0]], "x", 1.3)
    )
    return rows


# -- S21 ---------------------------------------------------------------------------------------------------------------


@ct.tool
async def much(place: int, data: bool) -> Any:
    """Give much."""
    if data:
        return {"rows": [f"{place:09d} {number:09d}{'x' * 1004}" for number in range(SIZE // 1024)]}
    return chr(97 + place % 26) * SIZE


async def large(kind: str, data: bool) -> dict[str, float]:
    """One round of large results; `kind` is `memory` or `journal`."""
    pool = ct.Pool.of(much)
    warnings = Warnings(logging.WARNING)
    logging.getLogger("concertino").addHandler(warnings)

    async def run(folder: Path | None, calls: int) -> ct.Run:
        text = turn(*[("much", {"place": n, "data": data}) for n in range(calls)])
        leader = ct.Orchestrator(Script(text, 1), ct.ParallelRounds(max_parallel=calls, max_rounds=3))
        return await leader.run("What?", pool=pool, trace=folder)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if kind == "journal" else None
        await run(folder, 2)
        before, beat = memory_mb(), Beat()
        await asyncio.sleep(0.01)
        began = time.perf_counter()
        done = await run(folder, RESULTS)
        seconds = time.perf_counter() - began
        beat.stop()
        assert done.answer == "done"
        assert [seen.ok for seen in done.observations] == [True] * RESULTS
        kept = memory_mb() - before
        return {
            "times": kept * 2**20 / (RESULTS * SIZE),
            "stall": beat.at(1.0),
            "seconds": seconds,
            "warnings": warnings.count,
        }


def large_rows(quick: bool) -> list[Row]:
    """S21."""
    rows = []
    for kind in ("memory",) if quick else ("memory", "journal"):
        for data in (False, True):
            seen = fresh("large", kind, data)
            what = f"{RESULTS} {'lists of texts' if data else 'texts'} of 1 MB, {kind}"
            stall = 20.0 if kind == "journal" else None
            rows += [
                Row("S21", f"{what}: memory / their size", seen["times"], "x", 1.2),
                Row("S21", f"{what}: longest lag of the loop", seen["stall"], "ms", stall),
                Row("S21", f"{what}: the run", seen["seconds"], "s"),
                Row("S21", f"{what}: warnings", seen["warnings"], "", 0.0),
            ]
    return rows


# -- processes ---------------------------------------------------------------------------------------------------------

MEASURES: dict[str, Callable[..., Any]] = {"many": many, "long": long, "large": large}


def fresh(name: str, *arguments: Any) -> dict[str, Any]:
    """What a measure finds in a process of its own."""
    command = [sys.executable, __file__, "--measure", name, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}{arguments} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def rows(quick: bool) -> list[Row]:
    """All figures."""
    return [*many_rows(quick), *long_rows(quick), *large_rows(quick)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(asyncio.run(MEASURES[sys.argv[2]](*json.loads(sys.argv[3])))))
        sys.exit(0)
    sys.exit(script(rows, __doc__))
