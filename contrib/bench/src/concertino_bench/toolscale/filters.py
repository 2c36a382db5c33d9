"""The three filters of ToolScale: what is taken out because it would teach or measure nothing.

1. The golden calls report an error. 2. No model solves it in pass@8. 3. It is solved without any action.
(ToolOrchestra, arXiv 2511.21689, appendix "Data Synthesis".)

The invariant: a filter judges with the same three criteria as the grader does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from concertino import Budget, Orchestrator, Pool, Strategy, Usage
from concertino.strategies import DEFAULT_STRATEGY

from concertino_bench.toolkits.criteria import Verification, verify
from concertino_bench.toolkits.replaying import Operated, ReplayedCalls
from concertino_bench.toolkits.toolkit import Toolkit

from .rows import TaskRow, question


@dataclass(frozen=True)
class SolverAttempt:
    """One attempt of the solver.

    Attributes:
        verification: the three criteria.
        answer: what it answered.
        stop: why its run ended.
        usage: what it consumed.
    """

    verification: Verification
    answer: str
    stop: str
    usage: Usage


def golden_error(done: ReplayedCalls) -> str:
    """Filter 1: why the golden calls cannot be used; empty if they can."""
    return "; ".join(done.faults)


def without_action(row: TaskRow, done: ReplayedCalls, text: str = "") -> bool:
    """Filter 3: whether doing nothing, and saying a text, solves a task.

    With the empty text all three criteria count. With a text that a model wrote without tools, the first two do: that
    it looked nothing up is given, and whether it had to is the question.
    """
    nothing = verify(done.digest, done.operated, row.required, found_digest=done.initial, found=Operated(), text=text)
    # A solver without tools looked nothing up; the third criterion would fail it for that alone.
    return nothing.passed if not text else nothing.execution.passed and nothing.fidelity.passed


async def attempt(
    row: TaskRow,
    done: ReplayedCalls,
    toolkit: Toolkit,
    pool: Pool,
    *,
    strategy: Strategy | str = DEFAULT_STRATEGY,
    budget: Budget | None = None,
) -> SolverAttempt:
    """Filter 2: one attempt of a model with the tools of the domain and nothing else.

    Args:
        row, done: the task, and its golden calls carried out.
        toolkit: of the domain; the attempt acts in a fresh one.
        pool: has the solver.
        strategy: how it works.
        budget: what the attempt may use.
    """
    own = toolkit.fresh()
    # No other tool of the pool: a search engine could tell what only the domain's tools should.
    seen = Pool((*pool.models, *own.tools()), roles=pool.roles)
    run = await Orchestrator("solver", strategy).run(question(own.instructions, row.request), pool=seen, budget=budget)
    answer = run.answer or ""
    verified = verify(
        done.digest,
        done.operated,
        row.required,
        found_digest=own.digest(),
        found=Operated.by(own.outcomes),
        text=answer,
        changed=own.changes(),
    )
    return SolverAttempt(verified, answer, run.stop, run.usage)


def same_task(one: Mapping[str, Any] | TaskRow, other: Mapping[str, Any] | TaskRow) -> bool:
    """Whether two tasks have the same golden calls and the same facts."""

    def key(task: Mapping[str, Any] | TaskRow) -> tuple[Any, Any]:
        data = task.to_json() if isinstance(task, TaskRow) else task
        return data["golden"], sorted(map(str, data["required"]))

    return key(one) == key(other)
