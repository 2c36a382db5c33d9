"""What the executor keeps to under faults: budgets, deadlines, orphans, retries, breakers, back-pressure.

    python benchmarks/reliability.py [--full] [--json]

The trials are those of `tests/sdk/executor`, at larger counts: some hundreds of random runs by default (half a
minute), the full counts with `--full` (two minutes). Schedules, budgets and deadlines run on a virtual clock, where
lateness is exact; faults, orphans and memory on the real one. Each row has a bar, and a row that misses it makes the
exit status 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the trials; worker processes import the faulty tools from there as well

import concertino as ct  # noqa: E402
from concertino.executor import BreakerPolicy, Executor, Limits, RetryPolicy  # noqa: E402
from concertino.executor.breaker import Breaker  # noqa: E402

from tests.sdk.executor import budget_trials, deadline_trials, orphan_trials  # noqa: E402
from tests.sdk.executor.faulty import FAULTS, NEIGHBOURS, POOL  # noqa: E402
from tests.sdk.executor.scripted_server import scripted_server  # noqa: E402


@dataclass(frozen=True)
class Row:
    """One figure and its bar: at most `most`, at least `least`."""

    area: str
    what: str
    value: float
    unit: str = ""
    most: float | None = None
    least: float | None = None

    @property
    def met(self) -> bool:
        """Whether the bar is met."""
        return (self.most is None or self.value <= self.most) and (self.least is None or self.value >= self.least)


def budgets(full: bool) -> Iterator[Row]:
    """E3: random true cost, failures, cancels; a provider that bills thrice its bound; nested agents."""
    count = 1000 if full else 200
    accounts = [budget_trials.spend_in_parallel(seed) for seed in range(count)]
    spent = [account.spent for account in accounts]
    used = statistics.mean(account.spent for account in accounts if not account.cancelled) / budget_trials.BUDGET
    yield Row("budget", f"most spent of 10 $, {count} runs x 100 calls", max(spent), "$", most=10 + 1e-9)
    yield Row("budget", "mean share of the budget used", 100 * used, "%", least=90)
    yield Row("budget", "largest reservation left at the end", max(abs(a.reserved) for a in accounts), "$", most=1e-9)
    for workers in (1, 4, 16):
        over = [budget_trials.overbill(seed, workers) for seed in range(count // 10)]
        excess = max(account.spent for account in over) - budget_trials.BUDGET
        yield Row("budget", f"bills 3x its bound, {workers} workers: overrun in calls", excess / 3, "", most=workers)
        yield Row(
            "budget", f"... calls begun after that, {workers} workers", sum(a.started_after_limit for a in over), most=0
        )
    trees = [budget_trials.spend_in_a_tree(seed) for seed in range(count)]
    yield Row("budget", f"deadlocks in {count} random trees of agents", count - len(trees), most=0)


def deadlines(full: bool) -> Iterator[Row]:
    """E4: five nested agents, some disobedient."""
    count = 500 if full else 200
    outcomes = [deadline_trials.run_tree(seed) for seed in range(count)]
    yield Row("deadline", f"latest observation of {count} trees", max(o.late for o in outcomes), "s", most=0.25 + 1e-9)
    yield Row("deadline", "calls observed", sum(o.observations for o in outcomes), least=count)
    yield Row("deadline", "calls without an observation", sum(o.missing for o in outcomes), most=0)
    yield Row("deadline", "calls that outlived their agent", sum(len(o.outlived) for o in outcomes), most=0)


def faults(full: bool) -> Iterator[Row]:
    """E5: every fault of the matrix in a round with nine good calls."""
    repeats = 5 if full else 1
    wrong = disturbed = 0
    lags: list[float] = []

    def view(observations: list[ct.Observation]) -> list[tuple[object, ...]]:
        return [(o.name, o.status, o.content, o.error, o.attempts) for o in observations]

    async def one(row: object) -> None:
        nonlocal wrong, disturbed
        async with Executor(Limits(stall=5)) as executor:
            expected = view(await executor.run(NEIGHBOURS, POOL))
            calls = [*NEIGHBOURS[:4], ct.Call(row.name), *NEIGHBOURS[4:]]  # type: ignore[attr-defined]
            watching = asyncio.ensure_future(watch(worst := [0.0]))
            observations = await executor.run(calls, POOL)
            watching.cancel()
            seen = observations.pop(4)
            code = seen.error.code if seen.error else ""
            wrong += (seen.status, code) != (row.status, row.code)  # type: ignore[attr-defined]
            disturbed += view(observations) != expected
            if not row.name.startswith("returns_"):  # type: ignore[attr-defined]
                lags.append(worst[0])

    async def watch(worst: list[float]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.005)
            worst[0] = max(worst[0], loop.time() - before - 0.005)

    for row in FAULTS * repeats:
        asyncio.run(one(row))
    yield Row("faults", f"{len(FAULTS)} faults x {repeats}: wrong or missing observations", wrong, most=0)
    yield Row("faults", "rounds in which a neighbour's result differed", disturbed, most=0)
    yield Row("faults", "lag of the caller's loop, median (giant results aside)", 1000 * statistics.median(lags), "ms")
    yield Row("faults", "lag of the caller's loop, worst (giant results aside)", 1000 * max(lags), "ms", most=50)


def orphans(full: bool) -> Iterator[Row]:
    """E6: random scenes; the baseline afterwards."""
    count = 2000 if full else 200
    left = orphan_trials.left_behind(range(count))
    yield Row("orphans", f"tasks, threads, processes, files, warnings left by {count} scenes", len(left), most=0)


def retries(full: bool) -> Iterator[Row]:
    """E7: executions counted by the server."""
    calls = 2000 if full else 500

    async def ask(path: str, times: int, retry_safe: bool) -> tuple[int, list[float]]:
        never = BreakerPolicy(consecutive=10**9, minimum=10**9)
        async with scripted_server() as server, Executor(retries=RetryPolicy(base=0.001), breaker=never) as executor:
            pool = ct.Pool.of(server.tool(retry_safe=retry_safe))
            await executor.run([ct.Call("fetch", {"path": path})] * times, pool)
            gaps = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
            return sum(server.executed.values()), gaps

    executed, _ = asyncio.run(ask("/status/500", calls, True))
    yield Row("retries", f"executions of {calls} calls in an outage, per call", executed / calls, most=1.1 + 10 / calls)
    executed, _ = asyncio.run(ask("/reset", calls, False))
    yield Row("retries", "executions per call that may not be repeated", executed / calls, most=1, least=1)
    _, gaps = asyncio.run(ask("/after/0.5/429", 1, True))
    yield Row("retries", "Retry-After of 0.5 s, waited", max(gaps), "s", most=0.55, least=0.45)


def breakers(full: bool) -> Iterator[Row]:
    """E8: an outage of a minute, by an injected clock."""
    now = 0.0
    breaker = Breaker(BreakerPolicy(jitter=0.0), lambda: now)
    probes = after = 0
    while now < 200 and not after:
        if breaker.allows():
            if now >= 60:
                after += 1
                breaker.succeeded()
            else:
                probes += now > 1
                breaker.failed()
        now += 0.01
    yield Row("breaker", "probes in an outage of 60 s (windows of 30 s, 60 s)", probes, most=2)
    yield Row("breaker", "probes after healing until it is closed", after, most=1, least=1)


def backpressure(full: bool) -> Iterator[Row]:
    """E9: ten thousand calls, sixteen at a time."""
    count = 10_000
    most_tasks = most_memory = 0

    @ct.tool
    async def work(number: int) -> int:
        """Do a little."""
        nonlocal most_tasks, most_memory
        if number % 100 == 0:
            most_tasks = max(most_tasks, len(asyncio.all_tasks()))
            most_memory = max(most_memory, resident())
        await asyncio.sleep(0.001)
        return number

    async def run() -> tuple[int, float]:
        async with Executor(Limits(calls=16)) as executor:
            pool = ct.Pool.of(work)
            await executor.run([ct.Call("work", {"number": 1})], pool)
            before, started = resident(), time.perf_counter()
            await executor.run([ct.Call("work", {"number": n}) for n in range(count)], pool)
            return most_memory - before, time.perf_counter() - started

    grown, seconds = asyncio.run(run())
    yield Row("back-pressure", f"tasks alive, {count} calls, 16 at a time", most_tasks, most=16 + 64)
    yield Row("back-pressure", "memory grown", grown / 2**20, "MiB", most=50)
    yield Row("back-pressure", "time of all", seconds, "s")


def resident() -> int:
    """Bytes of this process in RAM; 0 where /proc is absent."""
    import resource

    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() if statm.exists() else 0


AREAS: list[Callable[[bool], Iterator[Row]]] = [
    budgets, deadlines, faults, orphans, retries, breakers, backpressure,
]  # fmt: skip


def main() -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the full counts of the bars: two minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    logging.getLogger("concertino").setLevel(logging.ERROR)  # thousands of deliberate faults
    rows = [row for area in AREAS for row in area(options.full)]
    if options.json:
        print(json.dumps({"rows": [{**asdict(row), "met": row.met} for row in rows]}, indent=2))
    else:
        print(f"{'area':14}{'what':64}{'figure':>12} {'unit':5}{'bar':>18}")
        for row in rows:
            bars = [f"{sign} {bar:g}" for sign, bar in ((">=", row.least), ("<=", row.most)) if bar is not None]
            missed = "" if row.met else "  MISSED"
            print(f"{row.area:14}{row.what:64}{row.value:12.4g} {row.unit:5}{' '.join(bars):>18}{missed}")
    return int(not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())
