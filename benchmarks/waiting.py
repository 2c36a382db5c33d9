"""S2, S2B, S7: many calls that wait, asynchronous or blocking, and the end of those that wait for ever.

    python benchmarks/waiting.py [--json] [--quick]

S2: 200 calls of 100 ms. S2B: 64 synchronous calls that block for 100 ms, and how long the event loop does not answer
meanwhile. S7: a round of 50 calls that never return is cancelled. All in the default settings of `Executor`.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable

import concertino as ct
import floors
from concertino.executor import Scope
from concertino.executor.isolation.stall import THREAD_NAME
from measure import Row, script

PAUSE = 0.1
TEXT = '{"number": 1}'


@ct.tool(timeout=30)
async def nap(number: int) -> int:
    """Wait."""
    await asyncio.sleep(PAUSE)
    return number


@ct.tool(timeout=30)
def block(number: int) -> int:
    """Block the thread."""
    time.sleep(PAUSE)
    return number


@ct.tool
async def hang(number: int) -> int:
    """Never return."""
    await asyncio.Event().wait()
    return number


POOL = ct.Pool.of(nap, block, hang)


def plan(name: str, count: int) -> ct.Plan:
    """The same call many times."""
    return ct.Plan([ct.Call(name, TEXT) for _ in range(count)])


async def seconds(work: Awaitable[object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def stall_of(work: Callable[[], Awaitable[object]]) -> float:
    """The longest time for which the event loop does not answer while the work is under way, in seconds."""
    longest = 0.0
    running = True

    async def beat() -> None:
        nonlocal longest
        while running:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - began - 0.001)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0)
    await work()
    running = False
    await heart
    return longest


async def naps(executor: ct.Executor, repeat: int) -> Row:
    """S2."""
    function = floors.function(nap.function, nap.input_schema, 30.0)
    written = [("nap", TEXT)] * 200
    ours, floor = [], []
    for _ in range(repeat):
        floor.append(await seconds(floors.careful({"nap": function}, written)))
        ours.append(await seconds(executor.run(plan("nap", 200), POOL)))
    return Row("S2", "200 calls of 100 ms", statistics.median(ours), "s", 0.106, statistics.median(floor))


async def blocks(executor: ct.Executor, repeat: int) -> list[Row]:
    """S2B."""
    ours, floor, stalls = [], [], []
    for _ in range(repeat):
        floor.append(await seconds(asyncio.gather(*[asyncio.to_thread(block.function, n) for n in range(64)])))
        ours.append(await seconds(executor.run(plan("block", 64), POOL)))
        stalls.append(1000 * await stall_of(lambda: executor.run(plan("block", 64), POOL)))
    below, note = statistics.median(floor), "floor: asyncio.to_thread"
    return [
        Row("S2B", "64 blocking calls of 100 ms", statistics.median(ours), "s", 0.12, below, note=note),
        Row("S2B", "the same: longest stall of the event loop", statistics.median(stalls), "ms", 20.0),
    ]


def left(scope: Scope) -> int:
    """Tasks and threads beyond this one, and calls of the run without an observation."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    threads = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    strangers = [thread for thread in threads if thread.name != THREAD_NAME]
    return len(tasks) + len(strangers) + 50 - len(scope.results)


async def cancelled(repeat: int) -> list[Row]:
    """S7: until `await` returns, with nothing left running and an observation for each call."""
    ours, floor, orphans = [], [], []
    async with ct.Executor() as executor:
        for _ in range(repeat):
            task = asyncio.create_task(floors.bare(hang.function, {"number": 1}, 50))  # type: ignore[arg-type]
            await asyncio.sleep(0.02)
            floor.append(await _end(task))
            scope = executor.open(POOL)
            round_ = asyncio.create_task(executor.run_plan(plan("hang", 50), scope))
            await asyncio.sleep(0.02)
            ours.append(await _end(round_))
            orphans.append(left(scope))
    return [
        Row("S7", "cancel 50 hanging calls", statistics.median(ours), "ms", 2.0, statistics.median(floor)),
        Row("S7", "tasks and threads left, observations missing", max(orphans), "", 0.0),
    ]


async def _end(task: asyncio.Task[object]) -> float:
    began = time.perf_counter()
    task.cancel()
    await asyncio.wait({task})
    return (time.perf_counter() - began) * 1000


async def measured(quick: bool) -> list[Row]:
    """All figures."""
    repeat = 2 if quick else 7
    found = await cancelled(3 * repeat)
    async with ct.Executor() as executor:
        await executor.run(plan("nap", 1), POOL)
        return [await naps(executor, repeat), *await blocks(executor, repeat), *found]


def rows(quick: bool) -> list[Row]:
    """All figures."""
    return asyncio.run(measured(quick))


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
