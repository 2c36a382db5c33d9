"""A benchmark as a plugin: a task set that makes its questions, and the grader of their kind."""

import re
from collections.abc import Iterator

import concertino as ct
from concertino_bench import Grade, Grader, Task, TaskSet, Verdict, text_grader


def load(*, count: int = 100) -> Iterator[Task]:
    """Tasks of the kind "rounded"."""
    for number in range(2, count + 2):
        answer = f"{number**0.5:.2f}"
        yield Task(f"roots/{number}", f"What is the square root of {number}, to two decimals?", (answer,), "rounded")


@text_grader("rounded", "rounded")
def grade(task: Task, text: str) -> Grade:
    """Right if the last number of the text is the answer, or off by one in its last place."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?", text)
    if not numbers:
        return Grade(Verdict.UNPARSABLE, "no number was found", task.answers)
    near = abs(float(numbers[-1]) - float(task.answer)) < 0.0101
    verdict = Verdict.RIGHT if near else Verdict.WRONG
    return Grade(verdict, f"{numbers[-1]} against {task.answer}", task.answers, (numbers[-1],))


@ct.hookimpl
def concertino_tasks() -> list[TaskSet]:
    return [TaskSet("roots", "Square roots to two decimals.", load)]


@ct.hookimpl
def concertino_graders() -> list[Grader]:
    return [grade.grader]
