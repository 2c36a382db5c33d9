"""Baselines on recorded models: six real models, 400 questions of GSM8K, every answer as it was recorded.

    python benchmarks/baselines.py                 the table in docs/reference/baselines.md
    python benchmarks/baselines.py --seeds 2 --json

Each system is a run of the orchestrator over one pool. Answers are graded as numbers. Routers are fitted to one half of
the questions; every row is the mean over the other halves of some seeds, so all rows are of the same questions. The
column "by lot" is what drawing between two single models gives at the same cost: a router that is no better has learnt
nothing.

Tokens were not recorded with these outputs: they are estimated from the texts. Prices are assumptions, see PRICES; what
the two `verification` models spent on the samples that their verifiers chose from is not in them.

The data are looked for in CONCERTINO_TEST_DATA, by default `../shared/data` from the root of the tree.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import concertino as ct
import concertino_replay
from concertino.core.events import Asked
from concertino.runs.orchestrator import Arrange
from concertino_bench import System, Task, Verdict
from concertino_bench.baselines import Cascade, KnnRouter, MajorityVote, RouterProfile, systems
from concertino_bench.baselines.lineup import experts, visible
from concertino_bench.graders import Numeric

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CONCERTINO_TEST_DATA", ROOT.parent / "shared" / "data")) / "replay_pool_gsm8k"
PRICES = {
    "gpt3-6b_finetuning": ct.Prices(2.0, 2.0),
    "gpt3-6b_verification": ct.Prices(2.0, 2.0),
    "Mixtral-8x7B-Instruct-v0.1": ct.Prices(0.6, 0.6),
    "gpt3-175b_finetuning": ct.Prices(20.0, 20.0),
    "gpt3-175b_verification": ct.Prices(20.0, 20.0),
    "gpt-4-1106-preview": ct.Prices(10.0, 30.0),
}
"""Assumed, in $ per million tokens: what such models were sold for when the outputs were made."""
STRONG, MIXTRAL = "gpt-4-1106-preview", "Mixtral-8x7B-Instruct-v0.1"
THIRD, SMALL = "gpt3-175b_verification", "gpt3-6b_verification"


@dataclass(frozen=True)
class Outcome:
    """What one system did with one question."""

    right: bool
    usd: float
    calls: int


@dataclass(frozen=True)
class Line:
    """One row of the table: means over seeds, with their standard deviation for the accuracy."""

    system: str
    accuracy: float
    deviation: float
    usd: float
    calls: float


def by_lot(usd: float, lines: Sequence[Line]) -> float:
    """The accuracy of drawing between two single models so that a question costs this much; of the best pair."""
    points = sorted((each.usd, each.accuracy) for each in lines)
    cheaper, dearer = [p for p in points if p[0] <= usd], [p for p in points if p[0] > usd]
    best = max((accuracy for _, accuracy in cheaper), default=0.0)
    for low, start in cheaper:
        for high, end in dearer:
            best = max(best, start + (end - start) * (usd - low) / (high - low))
    return best


async def outcomes(
    system: System, pool: ct.Pool, tasks: Sequence[Task], arrange: Arrange | None = None
) -> dict[str, Outcome]:
    """Run a system over some tasks; `arrange` gives the pool that a question meets."""
    seen, grader = system.pool(pool), Numeric()
    found = {}
    async with ct.Executor() as executor:
        leader = ct.Orchestrator(system.model, system.strategy, executor=executor, arrange=arrange)
        for task in tasks:
            run = await leader.run(task.question, pool=seen)
            grade = grader.judge(task, run.answer or "")
            calls = sum(isinstance(event, Asked) or getattr(event, "kind", "") == "model" for event in run.events)
            found[task.id] = Outcome(grade.verdict is Verdict.RIGHT, run.usage.usd, calls)
    return found


def fixed(pool: ct.Pool) -> list[System]:
    """The systems that learn nothing."""
    found = systems(pool, ["majority-vote", "cascade"], answers="number", leader=STRONG)
    three = visible(pool, [STRONG, MIXTRAL, THIRD])
    votes = MajorityVote(members=tuple(three), answers="number")
    cascade = Cascade(members=tuple(visible(pool, [MIXTRAL, SMALL, STRONG])), answers="number")
    return [
        *found,
        System("vote of the best three", votes, STRONG, offer=("*",)),
        System("cascade: mixtral and 6b-ver, then gpt-4", cascade, STRONG, offer=("*",)),
    ]


def routers(pool: ct.Pool, profile: RouterProfile, k: int) -> list[System]:
    """The router at several prices of accuracy."""
    names = [model.name for model in pool.models]
    return [
        System(
            f"knn-router, k={k}, {weight:g} a $",
            KnnRouter(fitted=profile, k=k, cost_weight=weight),
            STRONG,
            prepare=lambda given: experts(given, names),
        )
        for weight in (0.0, 20.0, 50.0, 100.0)
    ]


def line(system: str, samples: list[list[Outcome]]) -> Line:
    """The row of a system whose outcomes of each seed are given."""
    accuracy = [statistics.fmean(o.right for o in seed) for seed in samples]
    return Line(
        system,
        statistics.fmean(accuracy),
        statistics.stdev(accuracy) if len(accuracy) > 1 else 0.0,
        statistics.fmean(o.usd for seed in samples for o in seed),
        statistics.fmean(o.calls for seed in samples for o in seed),
    )


async def measure(seeds: int, k: int) -> tuple[list[Line], int]:
    """All rows, and how many of the recorded verdicts the grader repeats."""
    recording = concertino_replay.read(DATA)
    pool = ct.Pool(concertino_replay.models(DATA, prices=PRICES))
    tasks = [Task(q.id, q.text, (q.gold,), "number") for q in recording.questions.values()]
    agreed, singles, rows = await _singles(recording, pool, tasks)
    done = {**singles, **{system.name: await outcomes(system, pool, tasks) for system in fixed(pool)}}
    routed: dict[str, list[list[Outcome]]] = {}
    halves = []
    for seed in range(seeds):
        shuffled = Random(seed).sample(tasks, len(tasks))
        known, asked = shuffled[: len(tasks) // 2], shuffled[len(tasks) // 2 :]
        halves.append(asked)
        wanted = {task.id for task in known}
        profile = RouterProfile.fit(row for row in rows if row["id"] in wanted)
        for system in routers(pool, profile, k):
            found = await outcomes(system, pool, asked)
            routed.setdefault(system.name, []).append([found[task.id] for task in asked])
    table = [line(name, [[of[task.id] for task in half] for half in halves]) for name, of in done.items()]
    table += [line(name, samples) for name, samples in routed.items()]
    ideal = [[_oracle(singles, task.id) for task in half] for half in halves]
    return [*table, line("oracle: the cheapest model that is right", ideal)], agreed


async def _singles(
    recording: concertino_replay.Recording, pool: ct.Pool, tasks: list[Task]
) -> tuple[int, dict[str, dict[str, Outcome]], list[dict[str, Any]]]:
    """Every model alone: its outcomes, and rows to fit a router to. The grader has to say what the file says."""
    flags = {(row["model"].rpartition("/")[2], row["id"]): row["correct"] for row in recording.rows("numeric_correct")}
    found, rows, agreed = {}, [], 0
    for system in systems(pool, ["single-model"]):
        model = system.name.partition(":")[2]
        found[system.name] = await outcomes(system, pool, tasks)
        for task in tasks:
            outcome = found[system.name][task.id]
            agreed += outcome.right is flags[model, task.id]
            row = {"id": task.id, "question": task.question, "model": model}
            rows.append({**row, "correct": outcome.right, "usd": outcome.usd})
    return agreed, found, rows


def _oracle(singles: dict[str, dict[str, Outcome]], task: str) -> Outcome:
    """What knowing the answers beforehand would do."""
    every = [of[task] for of in singles.values()]
    return min([o for o in every if o.right] or every, key=lambda outcome: outcome.usd)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="halvings of the questions")
    parser.add_argument("--k", type=int, default=40, help="neighbours that a router looks at")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"{DATA} is not there; point CONCERTINO_TEST_DATA at the folder of data samples")
    lines, agreed = asyncio.run(measure(options.seeds, options.k))
    if options.json:
        rows = [vars(each) for each in lines]
        print(json.dumps({"agreed": agreed, "seeds": options.seeds, "k": options.k, "rows": rows}, indent=1))
        return
    print(
        f"the grader repeats {agreed} of 2400 recorded verdicts; means over {options.seeds} halves of 200 questions\n"
    )
    print(f"{'system':<46}{'right':>8}{'+-':>7}{'by lot':>8}{'$ per 1000':>12}{'models asked':>14}")
    singles = [each for each in lines if each.system.startswith("single-model:")]
    for each in lines:
        lot = by_lot(each.usd, singles)
        figures = f"{each.accuracy:>8.1%}{each.deviation:>7.1%}{lot:>8.1%}{each.usd * 1000:>12.3f}{each.calls:>14.2f}"
        print(f"{each.system:<46}{figures}")


if __name__ == "__main__":
    main()
