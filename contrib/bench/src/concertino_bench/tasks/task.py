"""A task is a question with what a right answer holds; a task set is a named source of tasks.

The invariant: a task is plain data, so it can be sent to another process, written as JSON and read back unchanged.
Nothing in it says how an answer is to be found. What a task acts in, a database or a puzzle, is its *world*: made again
for each run, from the task alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from concertino import ToolSpec


@dataclass(frozen=True)
class Task:
    """One question.

    Attributes:
        id: unique in its set, and the same for the same options; "masbench/depth-4-test-s1-17".
        question: what the solver is given.
        answers: the right answers: one for each question asked, in their order. Empty where an answer is not compared
            but tried: programs, calls, states; what they are tried with is in `metadata`.
        kind: what sort of answer it has, which says which grader fits: "masbench", "number", "math", "text", "choice".
        axis: what is varied, "depth"; empty where nothing is.
        level: how much of it, None where there is no level.
        split: "train" or "test", empty where a set has no split.
        metadata: anything else, as JSON values.
        asked: what the solver is given in place of the question, such as the question behind solved examples; empty
            where that is the question itself. Graders see the question.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    kind: str
    axis: str = ""
    level: int | None = None
    split: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    asked: str = ""

    def __post_init__(self) -> None:
        if not self.id or not self.question:
            raise ValueError(f"Task({self.id!r}): expected an id and a question, both not empty")
        if isinstance(self.answers, str):
            raise ValueError(f"Task({self.id!r}, answers={self.answers!r}): expected a tuple of texts, not one text")
        object.__setattr__(self, "answers", tuple(self.answers))

    @property
    def prompt(self) -> str:
        """What the solver is given: `asked`, or the question."""
        return self.asked or self.question

    @property
    def answer(self) -> str:
        """The only answer.

        Raises:
            ValueError: the task has none or several; use `answers`.
        """
        if len(self.answers) != 1:
            raise ValueError(f"{self.id} has {len(self.answers)} answers; use .answers")
        return self.answers[0]


class TaskWorld(Protocol):
    """What one run of a task acts in: members of its own, and a state that they change."""

    def members(self) -> Sequence[ToolSpec]:
        """Tools that only this run has; they are added to its pool."""

    def state(self) -> Any:
        """The state now, as plain JSON data: what a grader compares."""


@dataclass(frozen=True)
class TaskSet:
    """A named source of tasks, what the hook `concertino_tasks` offers.

    Attributes:
        name: "masbench/depth".
        summary: one line.
        load: gives its tasks one by one; all of its arguments are keywords, and a missing file or a wrong row is a
            `DataError`.
        world: makes the world of a task; None where tasks have none.
        file: which file it wants, as its owners call it; empty where it reads none.
        source: where its owners publish it, with the licence; empty where nobody does.
    """

    name: str
    summary: str
    load: Callable[..., Iterator[Task]]
    world: Callable[[Task], TaskWorld] | None = None
    file: str = ""
    source: str = ""


class DataError(ValueError):
    """A file of tasks cannot be read: says the file, the line, what was given, what was expected, the next step."""
