"""The five environments by name: how their tasks are made, and what a task acts in.

The invariants: a task is plain data and holds its whole instance, so its environment and its world are made from it
alone, in any process; the question holds nothing that only the oracle knows; the two splits share no instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from concertino_bench.tasks.task import Task, TaskSet

from . import code, maths, plan_path, problems, programs, sokoban, sudoku
from .acting import ActingEnvironment, Runner
from .splits import SPLITS, Split, distinct, draw_one
from .workflows import MEMBERS
from .world import EnvironmentWorld

_MOVES_ACTION = 'An action is a list of steps: ["U", "R", "D", "L"].'


@dataclass(frozen=True)
class Domain:
    """One kind of environment.

    Attributes:
        name: "plan-path".
        summary: one line.
        action: what an action is, in words.
        levels: what a level may be; `level` is the default.
        draw: an instance at random, as plain data; None if these draws gave none.
        canonical: a text that copies of an instance share.
        question: the task in words.
        oracle: a solution, worked out from the instance.
        make: the environment of an instance.
        scripted: actions are judged by running scripts.
    """

    name: str
    summary: str
    action: str
    levels: Sequence[int]
    level: int
    draw: Callable[..., dict[str, Any] | None]
    canonical: Callable[[Mapping[str, Any]], str]
    question: Callable[[Mapping[str, Any]], str]
    oracle: Callable[[Mapping[str, Any]], dict[str, Any]]
    make: Callable[..., ActingEnvironment]
    scripted: bool = False

    def task(self, index: int, level: int, seed: int, split: Split, **options: Any) -> Task:
        """The task of an index."""
        chosen = "".join(f" {name}={value}" for name, value in sorted(options.items()))
        # Every option is in the key: another option is another stream, not the same instances cut otherwise.
        key = f"environments 1 {self.name} {level} {split} {seed} {index}{chosen}"

        def draw(rng: Random) -> dict[str, Any] | None:
            return self.draw(rng, level, **options)

        instance = draw_one(key, split, draw, self.canonical)
        return Task(
            id=f"environments/{self.name}-{level}-{split}-s{seed}-{index}",
            question=self.question(instance),
            answers=(),
            kind="environment",
            axis=self.name,
            level=level,
            split=split,
            metadata={"environment": self.name, "seed": seed, "index": index, "instance": instance},
        )


DOMAINS: Mapping[str, Domain] = {
    domain.name: domain
    for domain in (
        Domain(
            "plan-path",
            "Ways through grids with walls; the level is the side of the grid.",
            _MOVES_ACTION,
            plan_path.SIDES,
            10,
            plan_path.draw,
            plan_path.canonical,
            plan_path.question,
            plan_path.oracle,
            lambda instance, **_: plan_path.PlanPath(
                instance["rows"], instance.get("at_once"), instance.get("view", "grid")
            ),
        ),
        Domain(
            "sudoku",
            "Sudoku with one solution; the level is the number of rows, 4, 9 or 16.",
            "An action is a list of [row, column, number], counted from 1, or the whole grid as a list of rows.",
            sudoku.SIZES,
            4,
            sudoku.draw,
            sudoku.canonical,
            sudoku.question,
            sudoku.oracle,
            lambda instance, **_: sudoku.Sudoku(instance["puzzle"]),
        ),
        Domain(
            "sokoban",
            "Sokoban levels of 6 rows, made by playing backwards; the level is the number of boxes.",
            _MOVES_ACTION,
            sokoban.BOXES,
            1,
            sokoban.draw,
            sokoban.canonical,
            sokoban.question,
            sokoban.oracle,
            lambda instance, **_: sokoban.Sokoban(instance["rows"]),
        ),
        Domain(
            "code",
            "Programs on lists of numbers, with hidden tests; the level is the number of steps.",
            "An action is a whole Python program, as a text.",
            programs.LEVELS,
            2,
            programs.draw,
            programs.canonical,
            programs.question,
            code.oracle,
            code.CodeTests,
            scripted=True,
        ),
        Domain(
            "maths",
            "Problems with exact answers, and a script tool; the level is the number of parts.",
            'An action is {"code": "..."} to run a Python script and see what it prints, or {"answer": "..."} to hand '
            "in an answer.",
            problems.LEVELS,
            2,
            problems.draw,
            problems.canonical,
            problems.question,
            maths.oracle,
            lambda instance, **runner: maths.Maths(instance["answer"], **runner),
            scripted=True,
        ),
    )
}
"""By name."""


def tasks(
    environment: str,
    count: int | None = 100,
    *,
    seed: int = 0,
    split: Split = "test",
    level: int | None = None,
    start: int = 0,
    **options: Any,
) -> Iterator[Task]:
    """Generate tasks one by one, no instance twice.

    Args:
        environment: one of `DOMAINS`.
        count: how many; None for no end.
        seed: another seed, other instances.
        split: "train" or "test"; they share no instance, whatever the seeds.
        level: by default the paper's size, where it has one.
        start: the index to begin with.
        options: of the environment: `walls`, `at_once` (moves of an action) and `view` (`grid`, `words` or `both`) of
            plan-path, `blanks` of sudoku, `side` of sokoban, `style` of code.

    Raises:
        ValueError: an option is out of range, before anything is generated; or fewer instances differ than were asked.
    """
    domain = _domain(environment)
    chosen = domain.level if level is None else level
    if chosen not in domain.levels:
        raise ValueError(f"level={level!r}: {environment} has the levels {', '.join(map(str, domain.levels))}")
    if split not in SPLITS:
        raise ValueError(f"split={split!r}: expected one of {', '.join(SPLITS)}")
    if count is not None and count < 0:
        raise ValueError(f"count={count}: expected 0 or more, or None for no end")
    domain.draw(Random(0), chosen, **options)  # an option out of range raises here

    def one(index: int) -> Task:
        return domain.task(index, chosen, seed, split, **options)

    def name(task: Task) -> str:
        return domain.canonical(task.metadata["instance"])

    return (task for _, task in distinct(one, name, count, start))


def environment_of(task: Task, run: Runner | None = None) -> ActingEnvironment:
    """The environment of a task.

    Args:
        task: of one of `DOMAINS`.
        run: what runs scripts, for code and maths; worlds use the pool's tool instead.

    Raises:
        ValueError: it is not such a task.
    """
    domain = _domain(task.metadata.get("environment", ""))
    return domain.make(task.metadata["instance"], **({"run": run} if domain.scripted else {}))


def oracle_of(task: Task) -> dict[str, Any]:
    """A solution of a task, worked out from its instance; never shown to a solver."""
    return _domain(task.metadata.get("environment", "")).oracle(task.metadata["instance"])


def world_of(task: Task, *, python: str = "python") -> EnvironmentWorld:
    """The world of a task, for one run.

    Args:
        task: of one of `DOMAINS`.
        python: the pool's member that runs scripts.
    """
    domain = _domain(task.metadata.get("environment", ""))
    # Each call makes a new environment; shared verdicts keep a program from being run again each time.
    shared = {"verdicts": code.Verdicts()} if domain.name == "code" else {}

    def make() -> ActingEnvironment:
        return domain.make(task.metadata["instance"], **shared)

    return EnvironmentWorld(make, MEMBERS[domain.name], domain.action, scripted=domain.scripted, python=python)


def task_sets() -> list[TaskSet]:
    """One task set per environment: `environments/plan-path` and so on."""

    def of(domain: Domain) -> TaskSet:
        def load(
            level: int | None = None,
            count: int | None = 100,
            *,
            seed: int = 0,
            split: Split = "test",
            start: int = 0,
            **options: Any,
        ) -> Iterator[Task]:
            return tasks(domain.name, count, seed=seed, split=split, level=level, start=start, **options)

        return TaskSet(f"environments/{domain.name}", domain.summary, load, world_of)

    return [of(domain) for domain in DOMAINS.values()]


def _domain(name: str) -> Domain:
    if name not in DOMAINS:
        raise ValueError(f"environment={name!r}: expected one of {', '.join(DOMAINS)}")
    return DOMAINS[name]
