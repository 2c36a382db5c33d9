"""S26: what a Ray cluster costs, beside this process.

    python benchmarks/clusters.py [--json] [--quick]

A cluster of two workers is begun on this machine. Overhead: milliseconds that an order of nothing takes longer there
than in this process, 1,000 orders, 64 at once; the bar is 3. Memory: what this process holds more after 10,000 further
orders, as a share of what it held after the first 1,000; the bar is 10 %. Ray comes from `.venv` or from
`python scripts/servers.py ray`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "scripts"))

from concertino.rollouts import InProcess, Rollouts, RunOrder
from concertino_ray import Cluster, RayRuns
from measure import Row, script
from place_work import Nothing
from servers import RAY

SLOTS = 64
MEASURED = 1000


async def all_of(place: Rollouts, orders: Iterable[RunOrder]) -> int:
    """How many of the orders are done."""
    done = 0
    async with aclosing(place.submit(orders)) as results:
        async for result in results:
            done += result.status == "done"
    return done


def orders(count: int, name: str) -> Iterable[RunOrder]:
    """So many, of different runs."""
    return (RunOrder("Go.", id=f"{name}-{number}") for number in range(count))


async def milliseconds(place: Rollouts, count: int, name: str) -> float:
    """Of an order."""
    began = time.perf_counter()
    assert await all_of(place, orders(count, name)) == count
    return 1e3 * (time.perf_counter() - began) / count


def resident() -> float:
    """MiB that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def measured(quick: bool) -> list[Row]:
    """All figures."""
    rounds, many = (1, 2000) if quick else (5, 10_000)
    async with InProcess(Nothing(), slots=SLOTS) as here, RayRuns(Nothing(), Cluster(workers=2), slots=SLOTS) as there:
        for place in (here, there):
            await milliseconds(place, MEASURED, "first")
        before = resident()
        more = []
        for number in range(rounds):
            base = await milliseconds(here, MEASURED, f"here-{number}")
            more.append(await milliseconds(there, MEASURED, f"there-{number}") - base)
        await milliseconds(there, many, "many")
        grown = resident() / before - 1
    overhead = statistics.median(more)
    return [
        Row("S26", "an order on a cluster, more than here", overhead, "ms", 3.0, None, min(more), max(more)),
        Row("S26", f"memory after {many} orders more", grown, "share", 0.1, None, note=f"of {before:.0f} MiB"),
    ]


def rows(quick: bool) -> list[Row]:
    """All figures."""
    if importlib.util.find_spec("ray") is None:
        found = [str(path) for path in RAY.python().parent.parent.glob("lib/python*/site-packages")]
        sys.path.extend(found)
        os.environ["PYTHONPATH"] = os.pathsep.join([*found, str(Path(__file__).parent)])
    else:
        os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    return asyncio.run(measured(quick))


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
