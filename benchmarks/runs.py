"""S19 to S21: a thousand runs in one process, long histories, large results.

    python benchmarks/runs.py [--json] [--quick]

S19: 10 to 3,000 concurrent runs of 10 rounds of 4 calls, in the default settings (each run has an executor of its own)
and with a shared one. Meanwhile a coroutine of the caller wakes up every millisecond: by how much it is late is the lag
of the loop. S20: one run whose history is kept to 4,000 tokens, by its number of rounds. S21: 100 results of 1 MB
in one round. The model is a script, and each of its replies takes one pass of the loop. Every figure has a process of
its own; time is that of the processor. Memory is what stays of finished runs that are kept, after a collection.
"""

from __future__ import annotations

import asyncio
import gc
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
        self._task = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            self.late.append((time.perf_counter() - began) * 1000 - 1)
            self.threads = max(self.threads, threading.active_count())

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


async def many(number: int, shared: bool, repeat: int) -> dict[str, float]:
    """So many runs at once, several times; only the last ones are kept."""
    warnings = Warnings(logging.WARNING)
    logging.getLogger("concertino").addHandler(warnings)
    executor = ct.Executor(Limits(calls=10**6)) if shared else None

    async def one() -> ct.Run:
        leader = ct.Orchestrator(Script(ROUND, ROUNDS), ct.ParallelRounds(max_rounds=ROUNDS + 1), executor=executor)
        return await leader.run("What?", pool=POOL)

    for _ in range(20):
        await one()
    costs: list[float] = []
    beats: list[Beat] = []
    runs: list[ct.Run] = []
    for _ in range(repeat):
        runs.clear()
        gc.collect()
        before, beat = memory_mb(), Beat()
        began = time.process_time()
        runs += await asyncio.gather(*(one() for _ in range(number)))
        costs.append((time.process_time() - began) / (number * ROUNDS * CALLS) * 1e6)
        beat.stop()
        beats.append(beat)
    kept = memory_mb() - before
    assert all(run.answer == "done" and len(run.rounds) == ROUNDS for run in runs)
    assert all(seen.ok for run in runs for seen in run.observations)
    if executor is not None:
        await executor.aclose()
    return {
        "cpu": statistics.median(costs),
        "middle": statistics.median(beat.at(0.5) for beat in beats),
        "p99": statistics.median(beat.at(0.99) for beat in beats),
        "worst": max(beat.at(1.0) for beat in beats),
        "kept": kept * 1024 / number,
        "threads": max(beat.threads for beat in beats),
        "warnings": warnings.count,
    }


def many_rows(quick: bool) -> list[Row]:
    """S19."""
    sizes = {10: 5, 100: 2} if quick else {10: 30, 100: 5, 1000: 1, 3000: 1}
    rows = []
    for shared in (False, True):
        name = "shared executor" if shared else "default settings"
        seen = {
            size: fresh("many", size, shared, repeat) for size, repeat in sizes.items() if size < 3000 or not shared
        }
        for size, figures in seen.items():
            rows.append(Row("S19", f"{size:,} runs, {name}: CPU of a call", figures["cpu"], "us"))
        largest = seen[100 if quick else 1000]
        most = "100" if quick else "1,000"
        times = largest["cpu"] / seen[10]["cpu"]
        rows += [
            Row("S19", f"the same: {most} runs / 10 runs", times, "x", 1.3),
            Row("S19", f"{most} runs, {name}: lag of the loop, p99", largest["p99"], "ms", 100.0),
            Row("S19", f"the same: in the middle, and at worst {largest['worst']:.0f} ms", largest["middle"], "ms"),
            Row("S19", f"{most} runs, {name}: memory of a kept run", largest["kept"], "KB", 40.0),
            Row("S19", f"{most} runs, {name}: threads", largest["threads"], "", seen[10]["threads"]),
            Row("S19", f"{most} runs, {name}: warnings", largest["warnings"], "", 0.0),
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


def fresh(name: str, *arguments: Any) -> dict[str, float]:
    """What a measure finds in a process of its own."""
    command = [sys.executable, __file__, "--measure", name, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}{arguments} failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def rows(quick: bool) -> list[Row]:
    """All figures."""
    return [*many_rows(quick), *long_rows(quick), *large_rows(quick)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(asyncio.run(MEASURES[sys.argv[2]](*json.loads(sys.argv[3])))))
        sys.exit(0)
    sys.exit(script(rows, __doc__))
