"""The questions of a training, one after another: which task, over which pool, with what the user prefers.

The invariant: question number n is the same whenever it is asked for, and whoever asks: it follows from the seed and n.
So the state of the source is one number, and a resumed training asks what it would have asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import Budget, UsageError
from concertino_bench.tasks.system import COUNTERFACTUALS
from concertino_bench.tasks.unseen import changed_pool, unseen_pool

from concertino_train.config.named import make_strategy
from concertino_train.rollouts.task_stream import TaskStream

from .pools import VariedPool, asked_with, make_pool, make_shortlist, preference_of

if TYPE_CHECKING:
    from concertino_bench import Task, TaskSet
    from concertino_bench.runner import Selection

    from concertino_train.config.config import TrainConfig
    from concertino_train.config.sections import PreferenceSection, TaskSelection
    from concertino_train.rollouts.assignment import Assignment


def selections_of(selections: Sequence[TaskSelection], key: str) -> list[Selection]:
    """Selections of installed task sets.

    Args:
        key: of the settings, for errors.

    Raises:
        UsageError: there are none, or no such set or option.
    """
    from concertino_bench import installed_task_sets
    from concertino_bench.runner import make_selection

    if not selections:
        raise UsageError(f"{key}: no tasks are given; expected a list such as [{{set: practice/mixed}}]")
    sets = installed_task_sets()
    return [
        make_selection(each.model_dump(exclude_none=True), sets, f"{key}.{number}", Path())
        for number, each in enumerate(selections)
    ]


def select_tasks(selections: Sequence[TaskSelection], key: str) -> list[tuple[Task, TaskSet]]:
    """The tasks of selections, with their sets.

    Args:
        key: of the settings, for errors.

    Raises:
        UsageError: as `selections_of`; a file that cannot be read, no tasks, or two of one id.
    """
    from concertino_bench import System
    from concertino_bench.runner import Evaluation

    return Evaluation(selections_of(selections, key), [System("policy")]).tasks()


def training_tasks(config: TrainConfig) -> list[tuple[Task, TaskSet]]:
    """The tasks of `tasks.train`; with `tasks.outcomes`, those whose earlier runs came out differently.

    Raises:
        UsageError: as `select_tasks`; or none of them has mixed outcomes.
    """
    found = select_tasks(config.tasks.train, "tasks.train")
    if not config.tasks.outcomes:
        return found
    from concertino_train.data.outcomes import mixed_outcomes

    mixed = mixed_outcomes(config.tasks.outcomes, config.data.outcomes)
    kept = [(task, home) for task, home in found if task.id in mixed.ids]
    if not kept:
        raise UsageError(
            f"tasks.outcomes: {len(mixed.ids)} questions have mixed outcomes, and none of them is in tasks.train; give "
            "the results of these very tasks"
        )
    return kept


class Questions(TaskStream[Any]):
    """An endless source of assignments, shared out among ranks.

    Args:
        config: the training.
        tasks: with their sets; those of `training_tasks` by default.
        rank, ranks: which of how many this is: it takes every `ranks`-th question.
    """

    def __init__(
        self, config: TrainConfig, tasks: Sequence[tuple[Task, TaskSet]] | None = None, rank: int = 0, ranks: int = 1
    ) -> None:
        found = list(training_tasks(config) if tasks is None else tasks)
        shuffle, seed = config.tasks.order == "shuffled", config.trainer.seed
        super().__init__(found, seed=seed, shuffle=shuffle, rank=rank, ranks=ranks)
        self.rank, self.ranks = rank, ranks
        self.pool = VariedPool(config.pool, seed)
        self.strategy = make_strategy(config.rollout.strategy)
        self.budget = make_budget(config)
        self.shortlist = make_shortlist(config.pool)

    def _task(self, number: int) -> Assignment:
        return self.assignment(number)

    def numbers(self, count: int) -> list[int]:
        """The numbers of the next questions, which count as taken; none where `count` is below 1."""
        taken = list(range(self.position, self.position + max(0, count)))
        self.position += len(taken)
        return taken

    def assignment(self, number: int) -> Assignment:
        """The n-th assignment of this rank, counted from 0."""
        from concertino_train.rollouts.assignment import Assignment

        task, home = super()._task(number)
        # The number over all ranks, so that together they draw the pools that one rank would.
        pool, prefers = self.pool.draw(number * self.ranks + self.rank)
        text = asked_with(task.question, prefers)
        preference = preference_of(prefers) if prefers is not None else None
        source = "train", number
        return Assignment(
            task,
            pool,
            self.strategy,
            text,
            self.budget,
            preference,
            home.world,
            shortlist=self.shortlist,
            source=source,
        )


def evaluation_assignments(config: TrainConfig) -> list[Assignment]:
    """Every task of `tasks.eval`, over the pool as it is or with what `trainer.eval.unseen` draws at random.

    Raises:
        UsageError: as `select_tasks` and `make_pool`.
    """
    from concertino_train.rollouts.assignment import Assignment

    pool, strategy, budget = make_pool(config.pool), make_strategy(config.rollout.strategy), make_budget(config)
    drawn, seed, shortlist = config.trainer.eval.unseen, config.trainer.seed, make_shortlist(config.pool)

    def test(number: int, task: Task, home: TaskSet) -> Assignment:
        own, source = unseen_pool(pool, drawn, f"{seed} {task.id}"), ("eval", number)
        return Assignment(task, own, strategy, "", budget, None, home.world, shortlist=shortlist, source=source)

    return [test(number, *each) for number, each in enumerate(select_tasks(config.tasks.eval, "tasks.eval"))]


def asked_with_each(tests: Sequence[Assignment], preferences: Sequence[PreferenceSection]) -> list[Assignment]:
    """Every test once with each preference; as they are where there is none.

    Raises:
        UsageError: a preference without a text, or two with the same one.
    """
    texts = [each.text for each in preferences]
    if len(set(texts)) < len(texts) or not all(texts):
        raise UsageError(
            f"trainer.eval.preferences have the texts {texts}; expected one for each, and each another: runs are told "
            "apart by them"
        )
    if not preferences:
        return list(tests)
    return [
        replace(test, question=asked_with(test.task.question, each), preference=preference_of(each))
        for test in tests
        for each in preferences
    ]


def with_changes(tests: Sequence[Assignment]) -> list[Assignment]:
    """Every test as it is, over its pool in reverse order, and with the descriptions of its pool permuted."""
    found = list(tests)
    for change in COUNTERFACTUALS:
        for test in tests:
            pool, owners = changed_pool(test.pool, change, test.task.id)
            found.append(replace(test, pool=pool, change=change, owners=owners))
    return found


def measured_tests(config: TrainConfig) -> list[Assignment]:
    """What an evaluation asks: every task, with every preference, and over every changed pool where that is wanted.

    Raises:
        UsageError: as `evaluation_assignments` and `asked_with_each`.
    """
    own = config.trainer.eval
    tests = asked_with_each(evaluation_assignments(config), own.preferences)
    tests = with_changes(tests) if own.counterfactuals else tests
    return [replace(test, source=("measure", number)) for number, test in enumerate(tests)]


def make_budget(config: TrainConfig) -> Budget | None:
    """The budget of a rollout; None where nothing is limited."""
    given: dict[str, Any] = config.rollout.budget.model_dump(exclude_none=True)
    return Budget(**given) if given else None


def in_batches(assignments: Sequence[Assignment], size: int) -> Iterator[Sequence[Assignment]]:
    """Slices of at most `size`."""
    for start in range(0, len(assignments), size):
        yield assignments[start : start + size]
