"""A grader that needs the text alone: no pool, no calls, no state."""

from __future__ import annotations

from abc import abstractmethod

from concertino_bench.grading import Bench, Grade, Grader, Submission
from concertino_bench.tasks import Task


class TextGrader(Grader):
    """Grades a text. `judge` is a plain function, so it can be used without an event loop too."""

    @abstractmethod
    def judge(self, task: Task, text: str) -> Grade:
        """Grade what a solver said.

        Raises:
            ValueError: the task lacks what this grader compares with.
        """

    def check(self, task: Task) -> None:
        """See that a task has what this grader compares with: grade silence.

        Raises:
            ValueError: it has not; says what is missing.
        """
        self.judge(task, "")

    async def grade(self, task: Task, submission: Submission, bench: Bench) -> Grade:
        """Grade the submission's text."""
        return self.judge(task, submission.text)


def golds(task: Task) -> tuple[str, ...]:
    """The accepted texts of a task with one answer: the answer, then `metadata["aliases"]`.

    Raises:
        ValueError: the task has no answer or several, or its aliases are no list of texts.
    """
    aliases = task.metadata.get("aliases", ())
    if isinstance(aliases, str) or not all(isinstance(alias, str) for alias in aliases):
        raise ValueError(f"{task.id}: metadata['aliases'] is {aliases!r}; expected a list of texts")
    return (task.answer, *aliases)


def shown(text: str, limit: int = 120) -> str:
    """A text for a reason: one line, its end cut off if it is long."""
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit and len(text) <= 4 * limit else f"{line[: limit - 1]}…"
