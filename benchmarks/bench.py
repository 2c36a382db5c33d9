"""S14: what the bench adds to the runs that it makes.

    python benchmarks/bench.py [--json] [--quick]

2,000 generated questions, 200 at once, each a run of ParallelRounds over concertino-toy's pool with its trace on disk.
The floor makes the same runs with a semaphore and nothing else: no results file, no grading, no progress. Both take the
processor's time, so the bar is a share of that: 5 %. Rounds alternate, and the figure is the median of their ratios.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import concertino as ct
from concertino.executor import Limits
from concertino_bench import System, Task, TaskSet, installed_graders
from concertino_bench.masbench import generate
from concertino_bench.runner import Evaluation, Selection, evaluate
from measure import Row, script

AT_ONCE = 200
POOL = ct.Pool.installed("toy/*").bind(orchestrator="toy/leader")


async def plain(tasks: list[Task], folder: Path) -> float:
    """The runs alone."""
    gate = asyncio.Semaphore(AT_ONCE)
    began = time.perf_counter()
    async with ct.Executor(limits=Limits(calls=4 * AT_ONCE)) as executor:

        async def one(number: int, task: Task) -> None:
            async with gate:
                orchestrator = ct.Orchestrator(strategy=ct.ParallelRounds(), executor=executor)
                await orchestrator.run(task.question, pool=POOL, trace=folder / f"{number}.trace.jsonl")

        await asyncio.gather(*(one(number, task) for number, task in enumerate(tasks)))
    return time.perf_counter() - began


async def benched(tasks: list[Task], folder: Path) -> float:
    """The runs with everything that the bench does."""
    home = TaskSet("measured", "Questions.", lambda: iter(tasks))
    evaluation = Evaluation([Selection(home)], [System("rounds", ct.ParallelRounds())])
    graders = installed_graders()  # their import is not a part of the runs
    began = time.perf_counter()
    outcome = await evaluate(
        evaluation, POOL, folder / "results.jsonl", graders=graders, concurrency=AT_ONCE,
        on_progress=lambda progress: None,
    )  # fmt: skip
    assert len(outcome.items) == len(tasks)
    return time.perf_counter() - began


def rows(quick: bool) -> list[Row]:
    """All figures."""
    tasks = list(generate("depth", 3, 200 if quick else 1500))
    ratios, ours, floor = [], [], []
    for number in range(1 if quick else 3):
        first = (plain, benched) if number % 2 else (benched, plain)
        taken = {}
        for work in first:
            folder = Path(tempfile.mkdtemp())
            taken[work] = asyncio.run(work(tasks, folder))
            shutil.rmtree(folder)
        ours.append(taken[benched])
        floor.append(taken[plain])
        ratios.append(100 * (taken[benched] / taken[plain] - 1))
    return [
        Row(
            "S14",
            f"{len(tasks):,} questions, 200 at once",
            statistics.median(ours),
            "s",
            None,
            statistics.median(floor),
        ),
        Row("S14", "what the bench adds", statistics.median(ratios), "%", 5.0, None, min(ratios), max(ratios)),
    ]


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
