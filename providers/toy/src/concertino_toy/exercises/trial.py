"""How well a model leads: runs of exercises that it never saw, and their figures."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from concertino import Budget, Executor, Model, Orchestrator, Run, Sampling, Status
from concertino.text import boxed

from .exercise import Exercise, draw_exercise


@dataclass(frozen=True)
class TrialFigures:
    """The figures of a number of runs.

    Attributes:
        runs: how many.
        right: share with all answers right, in order.
        clean: share without a malformed or refused call, and with an answer.
        recovered: share of right runs among those in which a call failed.
        failed: runs in which a call failed.
        rounds: mean of rounds with calls.
    """

    runs: int
    right: float
    clean: float
    recovered: float
    failed: int
    rounds: float

    def line(self) -> str:
        """The figures in words."""
        return (
            f"{self.runs} runs: right {self.right:.1%}, clean {self.clean:.1%}, right after a failed call "
            f"{self.recovered:.1%} of {self.failed}, {self.rounds:.2f} rounds"
        )


def boxes(run: Run) -> tuple[str, ...]:
    """The answers of a run, numbers without the commas of thousands."""
    return tuple(text.replace(",", "") for text in boxed(run.answer or ""))


def is_clean(run: Run) -> bool:
    """No malformed text, no refused call, an answer."""
    refused = any(seen.status is Status.PARSE_ERR for seen in run.observations)
    return run.stop == "answered" and not refused and not any(each.issues for each in run.rounds)


def try_out(model: Model, numbers: Iterable[int], *, seed: int = 1, fault_rate: float = 0.2) -> TrialFigures:
    """Let a model lead, greedily, over exercises."""

    async def run_all() -> list[tuple[Exercise, Run]]:
        found: list[tuple[Exercise, Run]] = []
        async with Executor() as executor:
            for number in numbers:
                exercise = draw_exercise(number, seed=seed, fault_rate=fault_rate)
                leader = Orchestrator(model, exercise.strategy, executor=executor, sampling=Sampling(temperature=0.0))
                budget = Budget(rounds=exercise.strategy.max_rounds, calls=40, seconds=60)
                shown = budget if exercise.strategy.show_budget else None
                found.append((exercise, await leader.run(exercise.question, pool=exercise.pool, budget=shown)))
        return found

    return figures_of(asyncio.run(run_all()))


def figures_of(runs: list[tuple[Exercise, Run]]) -> TrialFigures:
    """The figures of finished runs."""
    right = [boxes(run) == exercise.answers for exercise, run in runs]
    failed = [any(not seen.ok for seen in run.observations) for _, run in runs]
    both = [good for good, bad in zip(right, failed, strict=True) if bad]
    count = max(1, len(runs))
    return TrialFigures(
        len(runs),
        sum(right) / count,
        sum(is_clean(run) for _, run in runs) / count,
        sum(both) / max(1, len(both)),
        len(both),
        sum(len(run.rounds) for _, run in runs) / count,
    )
