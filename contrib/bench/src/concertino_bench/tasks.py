"""A task is a question with what a right answer holds; a task set is a named source of tasks.

The invariant: a task is plain data, so it can be sent to another process, written as JSON and read back unchanged.
Nothing in it says how an answer is to be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    """One question.

    Attributes:
        id: unique in its set, and the same for the same options; "masbench/depth-4-test-s1-17".
        question: what the solver is given.
        answers: the right answers, in the order of the questions; one in most sets.
        kind: the set's family, which says which grader fits; "masbench".
        axis: what is varied, "depth"; empty where nothing is.
        level: how much of it, None where there is no level.
        split: "train" or "test", empty where a set has no split.
        metadata: anything else, as JSON values.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    kind: str
    axis: str = ""
    level: int | None = None
    split: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.id or not self.question:
            raise ValueError(f"Task({self.id!r}): expected an id and a question, both not empty")
        if isinstance(self.answers, str) or not self.answers:
            raise ValueError(f"Task({self.id!r}, answers={self.answers!r}): expected at least one answer, in a tuple")

    @property
    def answer(self) -> str:
        """The only answer.

        Raises:
            ValueError: the task has several; use `answers`.
        """
        if len(self.answers) != 1:
            raise ValueError(f"{self.id} has {len(self.answers)} answers; use .answers")
        return self.answers[0]


@dataclass(frozen=True)
class TaskSet:
    """A named source of tasks, what the hook `concertino_tasks` offers.

    Attributes:
        name: "masbench/depth".
        summary: one line.
        load: gives its tasks one by one; all of its arguments are keywords with defaults.
    """

    name: str
    summary: str
    load: Callable[..., Iterator[Task]]
