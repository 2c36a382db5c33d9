"""Trials of tidiness: random rounds of misbehaving tools, cut off at random moments, after which nothing may be left.

A trial returns what it left behind in the process: tasks, threads, child processes, open files, complaints of the
event loop. Used by the tests at small counts and by `benchmarks/reliability.py` at full ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import concertino as ct
from concertino.executor import Executor, Limits
from concertino.executor.isolation.stall import THREAD_NAME

from .deadline_trials import boss
from .faulty import FAULTS, POOL


@ct.tool(name="sleep", timeout=None)
async def sleep(seconds: float) -> str:
    """Obey."""
    await asyncio.sleep(seconds)
    return "slept"


@ct.tool(name="stubborn", timeout=None)
async def stubborn(seconds: float) -> str:
    """Swallow cancellations for a while."""
    ends = time.monotonic() + min(seconds, 0.2)
    while time.monotonic() < ends:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.02)
    return "outlasted"


@ct.tool(name="thread", timeout=None)
def thread(seconds: float) -> str:
    """Sleep in a thread."""
    time.sleep(min(seconds, 0.1))
    return "slept"


@ct.agent(name="careless", timeout=None)
async def careless(ctx: ct.Context, seconds: float) -> str:
    """Leave tasks and calls behind."""
    for _ in range(3):
        asyncio.create_task(asyncio.sleep(3600))  # noqa: RUF006
    asyncio.create_task(ctx.call("sleep", {"seconds": 3600}))  # noqa: RUF006
    await asyncio.sleep(min(seconds, 0.05))
    return "left"


SKIPPED = {"returns_a_giant_text", "returns_a_giant_list", "returns_something_bottomless", "recurses"}
"""Slow, and about other things."""
QUICK = [row.tool for row in FAULTS if row.tool.isolation != "process" and row.name not in SKIPPED]
SCENE = ct.Pool([*QUICK, sleep, stubborn, thread, careless, boss, POOL["add"]])
OWN = ("sleep", "stubborn", "thread", "careless")


def random_call(chance: random.Random, depth: int = 2) -> ct.Call:
    pick = chance.random()
    if pick < 0.25 and depth:
        children = [as_node(random_call(chance, depth - 1)) for _ in range(chance.randint(1, 3))]
        arguments = {"children": children, "together": chance.random() < 0.5, "ignores": chance.random() < 0.2}
        return ct.Call("boss", arguments)
    if pick < 0.75:
        return ct.Call(chance.choice(OWN), {"seconds": chance.choice([0.0, 0.01, 0.05, 30])})
    return ct.Call(chance.choice(QUICK).name)


def as_node(call: ct.Call) -> dict[str, Any]:
    assert not isinstance(call.arguments, str)
    return {"name": call.name, **call.arguments}


async def scene(seed: int) -> None:
    """One executor, some rounds; they end by themselves, by the deadline, or because the caller leaves."""
    chance = random.Random(seed)
    limits = Limits(calls=chance.choice([1, 3, 256]), grace=0.01, margin=0.005, threads=chance.choice([2, 256]))
    async with Executor(limits) as executor:
        for _ in range(chance.randint(1, 2)):
            plan = ct.Plan(random_call(chance) for _ in range(chance.randint(1, 6)))
            budget = ct.Budget(seconds=chance.choice([0.01, 0.05, 0.1]), calls=chance.choice([None, 3]))
            run = asyncio.ensure_future(executor.run(plan, SCENE, budget=budget))
            if chance.random() < 0.4:
                await asyncio.sleep(chance.uniform(0, 0.05))
                run.cancel()
            await asyncio.wait([run])
            if not run.cancelled():
                assert len(run.result()) == len(plan)


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name != THREAD_NAME}


def files() -> set[str]:
    folder = Path("/proc/self/fd")
    return {f"{entry.name} -> {entry.readlink()}" for entry in folder.iterdir() if entry.exists()}


def left_behind(seeds: range) -> list[str]:
    """Run scenes one after another on one loop, then say what is left."""
    complaints: list[str] = []

    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(str(context["message"])))
        await scene(-1)  # what is made once stays: imports, the self-pipe
        before_threads, before_files, before_processes = threads(), files(), child_processes()
        left: list[str] = []
        for seed in seeds:
            await scene(seed)
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            left += [f"seed {seed}: {task}" for task in tasks]
        for _ in range(300):
            if threads() <= before_threads and child_processes() <= before_processes:
                break
            await asyncio.sleep(0.02)
        left += [f"thread {t.name}" for t in threads() - before_threads]
        if sys.platform == "linux":
            left += [f"file {name}" for name in files() - before_files]
            left += [f"process {pid}" for pid in child_processes() - before_processes]
        return left

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        left = asyncio.run(main())
        gc.collect()
    return left + complaints + [str(warning.message) for warning in caught]


def child_processes() -> set[int]:
    """Ids of this process's children; none where there is no /proc."""
    found: set[int] = set()
    for children in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found |= {int(pid) for pid in children.read_text().split()}
    return found
