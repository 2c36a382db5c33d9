"""Collecting trajectories: a teacher works on tasks, several times each, and every run is kept as a trace.

It is an evaluation of concertino-bench, so it is resumable, bounded in $, and each of its runs is graded. A teacher is
a system; at several temperatures it is several systems, `teacher@0.7` and so on.

The invariant: the same call continues where the last one stopped, and repeats no finished run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from concertino import Budget, Executor, Pool, Sampling, UsageError
from concertino_bench import System
from concertino_bench.runner import Evaluation, EvaluationOrigin, Outcome, Progress, Selection, evaluate

if TYPE_CHECKING:
    from concertino_bench import Grader

RESULTS = "results.jsonl"
"""What the results file is called in the folder of a collection; its traces stand beside it."""


@dataclass(frozen=True)
class Collection:
    """What was collected.

    Attributes:
        folder: where.
        results: the results file.
        outcome: of the evaluation.
    """

    folder: Path
    results: Path
    outcome: Outcome

    @property
    def right(self) -> int:
        """Runs with a right answer."""
        return sum(item.right for item in self.outcome.items)

    @property
    def missing(self) -> int:
        """Runs that are still to be done: the same call does them."""
        return self.outcome.missing


async def collect(
    teachers: System | Sequence[System],
    tasks: Selection | Sequence[Selection],
    pool: Pool,
    folder: str | Path,
    *,
    samples: int = 8,
    in_turn: bool = False,
    temperatures: Sequence[float] = (),
    seed: int = 0,
    budget: Budget | None = None,
    graders: Sequence[Grader] | None = None,
    grader: str = "",
    concurrency: int = 16,
    max_usd: float | None = None,
    executor: Executor | None = None,
    on: str = "",
    env_from: Sequence[str] = (),
    origin: EvaluationOrigin | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Collection:
    """Have teachers work on tasks, and keep traces and results.

    Args:
        teachers: who works: a strategy and who leads it.
        tasks: on what.
        pool: with whom.
        folder: for the results file and the traces; one that is there is continued.
        samples: runs of each task, with each teacher and temperature.
        in_turn: each task is done by one teacher, in turn, and not by all.
        temperatures: each teacher leads at each of these; by default as it is set.
        seed: of sampling; sample k is asked with `seed + k`.
        budget: of each run.
        graders: who may grade; by default those that are installed.
        grader: name of the grader for all tasks.
        concurrency: runs at once.
        max_usd: no further run begins once this many $ are spent.
        executor: shared with others.
        on, env_from, origin: where the runs happen, as for `concertino_bench.runner.evaluate`.
        on_progress: told after every run.

    Raises:
        UsageError: tasks, teachers, graders and pool do not fit together, or the folder belongs to other ones.
    """
    from concertino_bench import installed_graders

    evaluation = evaluation_of(
        teachers,
        tasks,
        samples=samples,
        in_turn=in_turn,
        temperatures=temperatures,
        seed=seed,
        budget=budget,
        grader=grader,
        max_usd=max_usd,
    )
    target = Path(folder)
    outcome = await evaluate(
        evaluation,
        pool,
        target / RESULTS,
        graders=installed_graders() if graders is None else graders,
        concurrency=concurrency,
        executor=executor,
        on=on,
        env_from=env_from,
        origin=origin,
        on_progress=on_progress,
    )
    return Collection(target, target / RESULTS, outcome)


def evaluation_of(
    teachers: System | Sequence[System],
    tasks: Selection | Sequence[Selection],
    *,
    samples: int = 8,
    in_turn: bool = False,
    temperatures: Sequence[float] = (),
    seed: int = 0,
    budget: Budget | None = None,
    grader: str = "",
    max_usd: float | None = None,
) -> Evaluation:
    """The evaluation that a collection is; arguments and errors as for `collect`."""
    systems = [teachers] if isinstance(teachers, System) else list(teachers)
    if len(set(temperatures)) < len(temperatures):
        raise UsageError(f"temperatures={list(temperatures)}: one is there twice; take more samples instead")
    if temperatures:
        systems = [_at(system, temperature) for system in systems for temperature in temperatures]
    selections = [tasks] if isinstance(tasks, Selection) else list(tasks)
    return Evaluation(
        selections,
        systems,
        samples=samples,
        in_turn=in_turn,
        seed=seed,
        budget=budget or Budget(),
        grader=grader,
        max_usd=max_usd,
        title="collected trajectories",
    )


def _at(system: System, temperature: float) -> System:
    """A teacher at a temperature."""
    sampling = (system.sampling or Sampling()).with_(temperature=temperature)
    # As part of the name, so that an interrupted collection finds its runs again.
    return replace(system, name=f"{system.name}@{temperature:g}", sampling=sampling)
