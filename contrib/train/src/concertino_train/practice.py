"""The practice domain of concertino-toy as tasks and workflows of concertino-bench.

The task sets are `practice/facts`, `practice/chain`, `practice/fork` and `practice/mixed`; the workflows are Plan-Path
and Sudoku with prompts that a tiny model can read.

The invariants: a task follows from its options and its index alone; the splits share no place that a question names and
no template; answers are numbers of two digits, graded by the grader of several answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Literal, get_args

from concertino import UsageError
from concertino.strategies.role_workflow import RoleWorkflow
from concertino_bench import Task, TaskSet
from concertino_bench.environments import workflow_for
from concertino_toy.practice import ROLE_PROMPTS, STEP_PROMPT, TOPICS, Split, draw_question

PracticeEnvironment = Literal["plan-path", "sudoku"]

LEVELS: dict[str, tuple[int, ...]] = {"facts": (1, 2, 3), "chain": (2, 3), "fork": (3,)}
"""Parts that questions of a kind may have."""
_SUMMARIES = {
    "facts": "Numbers of made-up places, one to three that do not need each other; the level is how many.",
    "chain": "A number of the twin of a place, or of its twin; the level is the number of steps.",
    "fork": "Two numbers of the twin of a place.",
    "mixed": "Facts, chains and forks of all levels.",
}


def tasks(
    kind: str = "mixed",
    count: int | None = 100,
    *,
    seed: int = 0,
    split: Split = "test",
    level: int | None = None,
    start: int = 0,
    topics: Sequence[str] = TOPICS[:4],
) -> Iterator[Task]:
    """Generate tasks one by one.

    Args:
        kind: "facts", "chain", "fork", or "mixed" for all of them.
        count: how many; None for no end.
        seed: another seed, other tasks.
        split: "train" or "test".
        level: parts of each question; by default all levels of the kind in turn.
        start: the index to begin with.
        topics: that are asked; the pool must know them.

    Raises:
        ValueError: an option is out of range, before anything is generated.
    """
    if kind not in (*LEVELS, "mixed"):
        raise ValueError(f"kind={kind!r}: expected {', '.join(LEVELS)} or mixed")
    cases = [(name, each) for name, levels in LEVELS.items() if kind in (name, "mixed") for each in levels]
    cases = [case for case in cases if level in (None, case[1])]
    if not cases:
        raise ValueError(f"level={level!r}: practice/{kind} has no such level")
    if split not in get_args(Split):
        raise ValueError(f"split={split!r}: expected one of {', '.join(get_args(Split))}")
    if (count is not None and count < 0) or start < 0:
        raise ValueError(f"count={count}, start={start}: expected 0 or more")
    topics = [topics] if isinstance(topics, str) else list(topics)
    # A question of three parts asks three different topics.
    if len(set(topics) & set(TOPICS)) < max(3, len(topics)):
        raise ValueError(f"topics={topics!r}: expected at least 3 different ones of {', '.join(TOPICS)}")
    return _generate(kind, cases, count, seed, split, start, topics)


def _generate(
    kind: str, cases: list[tuple[str, int]], count: int | None, seed: int, split: Split, start: int, topics: list[str]
) -> Iterator[Task]:
    index = start
    while count is None or index < start + count:
        rng = Random(f"practice 1 {kind} {split} {seed} {index} {' '.join(topics)}")
        name, parts_wanted = cases[index % len(cases)]
        question, answers = draw_question(rng, name, parts_wanted, split, topics)
        yield Task(
            id=f"practice/{kind}-{parts_wanted}-{split}-s{seed}-{index}",
            question=question,
            answers=answers,
            kind="answers",
            axis=name,
            level=parts_wanted,
            split=split,
            metadata={"seed": seed, "index": index},
        )
        index += 1


def task_sets() -> list[TaskSet]:
    """One task set per kind, and one of all."""
    return [TaskSet(f"practice/{kind}", summary, partial(tasks, kind)) for kind, summary in _SUMMARIES.items()]


def practice_workflow(
    environment: PracticeEnvironment = "plan-path", *, stepwise: bool = False, **settings: Any
) -> RoleWorkflow:
    """The workflow of an environment, with brief prompts.

    Args:
        environment: "plan-path" or "sudoku".
        stepwise: the planner works alone, and is asked for one action a turn.
        settings: other settings of `RoleWorkflow`, such as `turns`.

    Raises:
        UsageError: the environment does not exist here.
    """
    if environment not in ("plan-path", "sudoku"):
        raise UsageError(f"practice_workflow({environment!r}): expected 'plan-path' or 'sudoku'")
    full = workflow_for(environment, **{"turns": 2, **settings})
    if stepwise:
        planner = next(role for role in full.roles if role.name == "planner")
        return replace(full, roles=(replace(planner, system="", prompt=STEP_PROMPT, again=""),))
    roles = tuple(replace(role, system="", prompt=ROLE_PROMPTS[role.name], again="") for role in full.roles)
    return replace(full, roles=roles)
