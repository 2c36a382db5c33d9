"""Few-shot prompts: solved tasks that stand before a task's question.

The invariants: a task is never among its own examples, nor is another with its question; the same seed draws the same
examples, whatever the order of the file; and graders see the question without them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from .task import Task


def with_shots(tasks: Iterable[Task], examples: Iterable[Task], count: int, seed: int = 0) -> list[Task]:
    """The tasks, each with so many examples before its question, drawn for each anew.

    Args:
        tasks: what is asked.
        examples: where they are drawn from; those without an answer are left out.
        count: of them, at least 1.
        seed: of the draw.

    Raises:
        ValueError: fewer examples are left for a task.
    """
    if count < 1:
        raise ValueError(f"shots={count}: expected at least 1")
    solved = sorted((task for task in examples if _solution(task)), key=lambda task: (task.id, task.question))
    return [_shown(task, _drawn(task, solved, count, seed)) for task in tasks]


def _drawn(task: Task, solved: Sequence[Task], count: int, seed: int) -> list[Task]:
    digest = hashlib.sha256(f"{seed}:{task.id}".encode()).digest()
    own = _words(task.question)
    found: list[Task] = []
    # Walked through in a drawn order until there are enough: the task itself may be met on the way, and is skipped.
    for place in _order(len(solved), Random(digest)):
        one = solved[place]
        if one.id != task.id and _words(one.question) != own:
            found.append(one)
            if len(found) == count:
                return found
    raise ValueError(
        f"{len(found)} solved examples for {task.id}, expected {count}: name a larger file or split, or fewer shots"
    )


def _order(count: int, random: Random) -> Iterable[int]:
    """The numbers below `count` in a drawn order, one by one, so that few of many cost little."""
    moved: dict[int, int] = {}
    for left in range(count, 0, -1):
        place = random.randrange(left)
        yield moved.get(place, place)
        moved[place] = moved.get(left - 1, left - 1)


def _words(text: str) -> str:
    return " ".join(text.casefold().split())


def _solution(task: Task) -> str:
    """How a task is solved: its worked solution, and its answer where that does not hold it."""
    worked, answer = str(task.metadata.get("solution") or "").strip(), "; ".join(task.answers)
    if not worked or not answer or answer in worked:
        return worked or answer
    return f"{worked}\nThe answer is {answer}."


def _shown(task: Task, examples: Sequence[Task]) -> Task:
    parts = [f"Question: {one.question}\n\nAnswer: {_solution(one)}" for one in examples]
    asked = "\n\n".join([*parts, f"Question: {task.question}\n\nAnswer:"])
    return replace(task, asked=asked, metadata={**task.metadata, "shots": [one.id for one in examples]})
