"""All five strategies on the same questions: accuracy, calls, time and budget, without and with failing calls.

    python benchmarks/strategies.py [--quick] [--json] [--only AXIS] [--count N] [--faults SHARE] [--at-once N]

The pool is concertino-toy's: a fixed policy conducts simulated solvers, so accuracy says whether a paradigm's machinery
gets a right answer out of a pool that can give it, and nothing about real models. Questions are those of
concertino-bench, N per axis (200), levels 2, 4, 6 and 8 in turn; where that is not installed, of concertino-toy's own
writer. Each call of a model takes the time that `PACES` says. The budget of every run is `BUDGET`; a run is inside it
if it ends with an answer before the budget is spent.

With faults, a hook at the call boundary fails a share of the calls (20 %, seeded by question): half raise, half pass
their deadline. `RoleWorkflow` is the shipped reasoner and programmer; its scripts run in the sandbox of concertino-code
and it is left out, with the reason, where there is none.

The bar: agent graphs and dependency plans take at most 1.1 times their critical path, as a sum over each axis.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import random
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import concertino as ct
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.role_workflow import reasoner_programmer
from concertino.strategies.serial_calls import SerialCalls
from concertino_toy.leader import ScriptedLeader
from concertino_toy.problems.writer import make_question
from concertino_toy.simulated.models import SAGE, STEADY, SWIFT, model_spec
from concertino_toy.simulated.skills import Pace
from measure import machine, number

Axis = Literal["depth", "horizon", "breadth", "parallel", "robustness"]
AXES: tuple[Axis, ...] = ("depth", "horizon", "breadth", "parallel", "robustness")
LEVELS = (2, 4, 6, 8)
COUNT, QUICK = 200, 10
SHARE = 0.2
AT_ONCE = 4
BUDGET = ct.Budget(calls=80, units=80, usd=1.0, seconds=20)
PACES = {"swift": 0.02, "steady": 0.03, "sage": 0.05, "leader": 0.02}
"""Seconds that each model takes for a reply."""
ENDS = ("answered", "rounds")
"""How a run ends that was not ended by its budget: by itself, or asked for its answer after the last turn."""
BAR = 1.1
JUDGED = ("AgentGraph", "DependencyPlan")

STRATEGIES: dict[str, Callable[[], ct.Strategy]] = {
    "ParallelRounds": ct.ParallelRounds,
    "AgentGraph": AgentGraph,
    "DependencyPlan": lambda: DependencyPlan(tools={"solve": "toy/solve"}),
    "SerialCalls": SerialCalls,
    "RoleWorkflow": reasoner_programmer,
}


@dataclass(frozen=True, slots=True)
class Question:
    """A text with its answers, in order."""

    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy on the questions of one axis.

    Attributes:
        faults: share of the calls that fail.
        right: share of runs with exactly the right answers, %.
        inside: share of runs that ended with an answer before the budget was spent, %.
        calls, rounds: mean per run.
        wall, path: mean seconds per run, and of its critical path.
    """

    axis: str
    strategy: str
    faults: float
    runs: int
    right: float
    inside: float
    calls: float
    rounds: float
    wall: float
    path: float

    @property
    def ratio(self) -> float:
        """Wall time over critical path."""
        return self.wall / self.path

    @property
    def met(self) -> bool | None:
        """Whether the bar is met; None where there is none."""
        return self.ratio <= BAR if self.strategy in JUDGED else None


def questions(axis: Axis, count: int) -> list[Question]:
    """The questions of an axis, the same in every process."""
    if importlib.util.find_spec("concertino_bench") is None:
        return [_written(axis, LEVELS[index % len(LEVELS)], index) for index in range(count)]
    from concertino_bench.masbench import make_task

    tasks = [make_task(axis, LEVELS[index % len(LEVELS)], index) for index in range(count)]
    return [Question(task.question, tuple(task.answers)) for task in tasks]


def _written(axis: str, level: int, index: int) -> Question:
    """A question of concertino-toy's writer that resembles one of an axis."""
    shapes: dict[str, dict[str, int | bool]] = {
        "depth": {"parts": 1, "depth": level},
        "horizon": {"parts": level, "chained": True},
        "breadth": {"parts": 1, "breadth": level},
        "parallel": {"parts": level},
        "robustness": {"parts": level // 2, "depth": 4, "lure": True, "needle": True},
    }
    text, found = make_question(random.Random(index), **shapes[axis])  # type: ignore[arg-type]
    return Question(text, tuple(map(str, found)))


def members() -> list[ct.ToolSpec | ct.AgentSpec | ct.ModelSpec]:
    """The published members of concertino-toy, with `PACES`."""
    skills = {"swift": SWIFT, "steady": STEADY, "sage": SAGE}
    paced = {f"toy/{name}": model_spec(name, replace(skill, pace=Pace(PACES[name]))) for name, skill in skills.items()}
    found = []
    for member in ct.Pool.installed("toy/*").members:
        if member.name == "toy/leader":
            found.append(member.with_(factory=lambda: ScriptedLeader(pace=Pace(PACES["leader"]))))
        elif member.name in paced:
            found.append(paced[member.name].with_(name=member.name))
        else:
            found.append(member)
    return found


def failing(share: float, seed: str) -> Callable[..., ct.Observation | None]:
    """A hook that fails a share of the calls."""
    chance = random.Random(seed)

    def before(spec: ct.ToolSpec, arguments: dict[str, object], call_id: str) -> ct.Observation | None:
        drawn = chance.random()
        if drawn >= share:
            return None
        status, code = (ct.Status.EXEC_ERR, "raised") if drawn < share / 2 else (ct.Status.TIMEOUT, "deadline")
        return ct.Observation(call_id, spec.name, status, error=ct.ErrorInfo(code, "it was made to fail"))

    return before


def said(answer: str | None) -> tuple[str, ...]:
    """The values of an answer: in boxes, or listed, as a plan (`7 | 9`) and a role (`7, 9`) give them."""
    text = answer or ""
    return tuple(re.findall(r"\\boxed\{([^{}]*)\}", text) or re.split(r" \| |, ", text.strip()))


async def measured(
    axis: Axis, name: str, share: float, asked: Sequence[Question], pool: ct.Pool, at_once: int
) -> Row:  # fmt: skip
    """Run one strategy on all questions of an axis."""
    gate = asyncio.Semaphore(at_once)

    async def one(index: int, question: Question) -> ct.Run:
        before = [failing(share, f"{axis} {index}")] if share else []
        async with gate:
            orchestrator = ct.Orchestrator("toy/leader", STRATEGIES[name](), before=before)
            return await orchestrator.run(question.text, pool=pool, budget=BUDGET)

    runs = await asyncio.gather(*(one(index, question) for index, question in enumerate(asked)))
    right = [said(run.answer) == question.answers for run, question in zip(runs, asked, strict=True)]
    inside = [run.ok and run.stop in ENDS for run in runs]
    return Row(
        axis, name, share, len(runs), 100 * statistics.mean(right), 100 * statistics.mean(inside),
        statistics.mean(len(run.observations) for run in runs), statistics.mean(len(run.rounds) for run in runs),
        statistics.mean(run.seconds for run in runs), statistics.mean(run.critical_path() for run in runs),
    )  # fmt: skip


async def sandboxed() -> str:
    """Why scripts cannot run here; empty if they can."""
    if importlib.util.find_spec("concertino_code") is None:
        return "concertino-code is not installed"
    async with ct.Executor() as executor:
        (seen,) = await executor.run(
            ct.Plan([ct.Call("python", {"code": "print(7)"})]), ct.Pool.installed("code/python")
        )
    return "" if seen.ok else f"its sandbox does not work here: {seen.error}"


async def rows(axes: Sequence[Axis], count: int, share: float, at_once: int) -> list[Row]:
    """All figures; progress goes to stderr."""
    found = []
    tools = ct.Pool.installed("code/python").members if not await sandboxed() else []
    pool = ct.Pool([*members(), *tools])
    without = ct.Pool(members())
    for axis in axes:
        asked = questions(axis, count)
        for name in STRATEGIES:
            if name == "RoleWorkflow" and not tools:
                continue
            for faults in (0.0, share):
                used = pool if name == "RoleWorkflow" else without
                found.append(await measured(axis, name, faults, asked, used, at_once))
                print(f"  {axis} {name} {faults:.0%}", file=sys.stderr, flush=True)
    return found


def together(found: Sequence[Row]) -> Iterator[Row]:
    """The means over all axes, by strategy and share of faults."""
    for key in dict.fromkeys((row.strategy, row.faults) for row in found):
        same = [row for row in found if (row.strategy, row.faults) == key]
        means = {name: statistics.mean(getattr(row, name) for row in same) for name in _MEANS}
        yield Row("all", *key, sum(row.runs for row in same), **means)


_MEANS = ("right", "inside", "calls", "rounds", "wall", "path")


def table(found: Sequence[Row]) -> str:
    """The rows as text."""
    head = f"{'axis':11}{'strategy':16}{'failing':>8}{'runs':>6}{'right':>8}{'inside':>8}{'calls':>7}{'rounds':>8}"
    lines = [f"{head}{'wall':>9}{'path':>9}{'ratio':>7}"]
    for row in found:
        verdict = {None: "", True: "  pass", False: "  MISS"}[row.met]
        line = f"{row.axis:11}{row.strategy:16}{row.faults:>8.0%}{row.runs:>6}{row.right:>7.1f}%{row.inside:>7.1f}%"
        line += f"{number(row.calls):>7}{number(row.rounds):>8}{1000 * row.wall:>6.0f} ms{1000 * row.path:>6.0f} ms"
        lines.append(f"{line}{row.ratio:>7.3f}{verdict}")
    return "\n".join(lines)


def main() -> int:
    """Run and print; the exit status is 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} questions per axis: shows that it works")
    parser.add_argument("--count", type=int, default=COUNT, help=f"questions per axis (default: {COUNT})")
    parser.add_argument("--only", action="append", choices=AXES, help="one axis; may be repeated")
    parser.add_argument("--faults", type=float, default=SHARE, help=f"share of calls that fail (default: {SHARE})")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help=f"runs at a time (default: {AT_ONCE})")
    options = parser.parse_args()
    count = QUICK if options.quick else options.count
    found = asyncio.run(rows(options.only or AXES, count, options.faults, options.at_once))
    found += together(found)
    source = "concertino-bench" if importlib.util.find_spec("concertino_bench") else "the writer of concertino-toy"
    absent = [name for name in STRATEGIES if name not in {row.strategy for row in found}]
    reason = asyncio.run(sandboxed()) if absent else ""
    if options.json:
        figures = [{**asdict(row), "ratio": row.ratio, "met": row.met} for row in found]
        print(json.dumps({"machine": machine(), "questions": source, "left_out": reason, "rows": figures}))
    else:
        print(f"questions: {source}, levels {', '.join(map(str, LEVELS))}; budget: {BUDGET}")
        print(table(found))
        print(f"RoleWorkflow is left out: {reason}" if absent else "", end="\n" if absent else "")
    return 0 if all(row.met is not False for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
