"""S4: one turn of 100 calls of which 40 go wrong, in the default settings.

    python benchmarks/faults.py [--json] [--quick]

60 good calls, 10 with invalid arguments, 10 to unknown names, 10 that raise, 10 that never return under a time limit
of 0.5 s, mixed by a seed. Every call needs an answer, every fault an explanation that a model can act on: at most 200
characters, and naming what was wrong.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import time
from collections import Counter

import concertino as ct
from concertino.executor import Scope
from measure import Row, script


@ct.tool
async def search(query: str, count: int) -> str:
    """Search."""
    return f"{count} results for {query}"


@ct.tool
async def fail(query: str) -> str:
    """Raise."""
    raise ValueError(f"no index for {query}")


@ct.tool(timeout=0.5)
async def hang(query: str) -> str:
    """Never return."""
    await asyncio.Event().wait()
    return query


POOL = ct.Pool.of(search, fail, hang)
KINDS = {
    "good": (60, "search", '{"query": "rain", "count": 3}'),
    "invalid": (10, "search", '{"query": "rain", "count": "many"}'),
    "unknown": (10, "serch", '{"query": "rain", "count": 3}'),
    "raising": (10, "fail", '{"query": "rain"}'),
    "hanging": (10, "hang", '{"query": "rain"}'),
}
EXPLAINED = {"invalid": "count", "unknown": "search", "raising": "no index for rain", "hanging": "0.5"}
"""What the explanation of each kind has to name."""
STATUS = {"good": "OK", "invalid": "PARSE_ERR", "unknown": "PARSE_ERR", "raising": "EXEC_ERR", "hanging": "TIMEOUT"}


def one_turn(seed: int) -> tuple[list[str], ct.Plan]:
    """The kinds in a random order, and their calls."""
    kinds = [kind for kind, (count, _, _) in KINDS.items() for _ in range(count)]
    random.Random(seed).shuffle(kinds)
    return kinds, ct.Plan([ct.Call(KINDS[kind][1], KINDS[kind][2]) for kind in kinds])


def judge(kinds: list[str], seen: list[ct.Observation], scope: Scope) -> Counter[str]:
    """Counts of what is right, and of what was left behind."""
    counts: Counter[str] = Counter()
    for kind, observation in zip(kinds, seen, strict=True):
        counts["status"] += observation.status == STATUS[kind]
        if kind != "good" and observation.error is not None:
            text = observation.error.message
            counts["explained"] += len(text) <= 200 and EXPLAINED[kind] in text
            counts["longest"] = max(counts["longest"], len(text))
    counts["good"] = sum(kind == "good" and seen.ok for kind, seen in zip(kinds, seen, strict=True))
    counts["answers"] = len(scope.results)
    counts["orphans"] = len([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])
    return counts


async def measured(repeat: int) -> list[Row]:
    """All figures; of the counts the worst."""
    walls, counts = [], []
    async with ct.Executor() as executor:
        for seed in range(repeat):
            kinds, plan = one_turn(seed)
            scope = executor.open(POOL)
            began = time.perf_counter()
            seen = await executor.run_plan(plan, scope)
            walls.append(time.perf_counter() - began)
            counts.append(judge(kinds, seen, scope))

    def missing(name: str, wanted: int) -> float:
        return max(wanted - count[name] for count in counts)

    return [
        Row("S4", "a turn of 100 calls, 40 of them faulty", statistics.median(walls), "s", 0.52),
        Row("S4", "answers missing of 100", missing("answers", 100), "", 0.0),
        Row("S4", "good calls lost of 60", missing("good", 60), "", 0.0),
        Row("S4", "statuses wrong of 100", missing("status", 100), "", 0.0),
        Row("S4", "faults unexplained of 40", missing("explained", 40), "", 0.0),
        Row("S4", "longest explanation", max(count["longest"] for count in counts), "characters", 200.0),
        Row("S4", "tasks left running", max(count["orphans"] for count in counts), "", 0.0),
    ]


def rows(quick: bool) -> list[Row]:
    """All figures."""
    return asyncio.run(measured(2 if quick else 7))


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
