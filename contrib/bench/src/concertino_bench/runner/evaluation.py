"""An evaluation says what is run: which tasks, which systems, how often, with which budget.

The invariant: together with the pool it decides every request, so two evaluations with the same `fingerprint` may share
a results file, and what one process left unfinished another may finish.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concertino import Budget, Pool, UsageError

from concertino_bench.tasks.few_shots import with_shots
from concertino_bench.tasks.system import System
from concertino_bench.tasks.task import Task, TaskSet
from concertino_bench.tasks.unseen import Drawn, changed_pool, unseen_pool


@dataclass(frozen=True)
class Selection:
    """Some tasks of a set.

    Attributes:
        set: where they come from.
        options: keywords of its `load`.
        limit: at most so many; all by default.
        seed: draws them at random from the whole set instead of taking the first ones.
        skip_bad: rows of its files that may be wrong; they are left out, each with a warning.
        shots: solved examples before each question, drawn by `seed`, or by 0 without it; never the task itself.
        shots_from: where they are drawn from: a file or folder of the same set, or a split of the tasks' own file; all
            of that file without it.
    """

    set: TaskSet
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None
    seed: int | None = None
    skip_bad: int = 0
    shots: int = 0
    shots_from: str = ""

    def tasks(self) -> list[Task]:
        """The tasks.

        Raises:
            UsageError: the set has no such option, or cannot be read with it.
        """
        # Imported here: most sets are generated, and an evaluation of them reads no file.
        from concertino_bench.loaders import DataWarning, skip_bad_rows

        with skip_bad_rows(self.skip_bad) as skipped:
            try:
                tasks = self._with_shots(self._loaded())
            except (TypeError, ValueError) as error:
                hint = "; --skip-bad N leaves out up to N such rows" if skipped.refused else ""
                raise UsageError(f"task set {self.set.name}: {error}{hint}") from error
        for fault in skipped.errors:
            warnings.warn(f"left out of {self.set.name}: {fault}", DataWarning, stacklevel=2)
        return tasks

    def _with_shots(self, tasks: list[Task]) -> list[Task]:
        if not self.shots:
            return tasks
        options, split = dict(self.options), self.shots_from
        if self.shots_from and Path(self.shots_from).exists():
            options, split = {**options, "path": self.shots_from}, ""
        examples = [task for task in self.set.load(**options) if not split or task.split == split]
        if split and not examples:
            raise ValueError(f"shots_from={split!r}: neither a file nor a split of these tasks; name one of them")
        return with_shots(tasks, examples, self.shots, self.seed or 0)

    def _loaded(self) -> list[Task]:
        options = dict(self.options)
        if self.seed is None and self.limit is not None and "count" in inspect.signature(self.set.load).parameters:
            options.setdefault("count", self.limit)  # of a generator, which makes a hundred unless told otherwise
        loaded = self.set.load(**options)
        if self.seed is not None and self.limit is not None:
            # A hash of each id, not a shuffle: the order of a file's rows cannot change which tasks are drawn.
            return sorted(loaded, key=lambda task: _digest(f"{self.seed}:{task.id}"))[: self.limit]
        return list(itertools.islice(loaded, self.limit))


@dataclass(frozen=True)
class Evaluation:
    """Tasks, systems and conditions.

    Attributes:
        selections: the tasks.
        systems: what is compared; names are unique.
        samples: how often each system gets each task.
        seed: of sampling; sample k is asked with `seed + k`.
        budget: of each run.
        grader: name of the grader for all tasks; by default each kind has its own.
        max_usd: no further run begins once so many $ are spent, grading included.
        title: what the report is called.
        unseen: what of the pool is drawn at random for each task.
        in_turn: each task is given to one of the systems, in turn, and not to all.
    """

    selections: Sequence[Selection]
    systems: Sequence[System]
    samples: int = 1
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    grader: str = ""
    max_usd: float | None = None
    title: str = ""
    unseen: Sequence[Drawn] = ()
    in_turn: bool = False

    def __post_init__(self) -> None:
        if not self.selections or not self.systems:
            raise UsageError("an evaluation needs at least one task set and one system")
        if self.samples < 1:
            raise UsageError(f"samples={self.samples}: expected at least 1")
        names = [system.name for system in self.systems]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UsageError(f"two systems are called {twice[0]!r}; each needs a name of its own")

    def tasks(self) -> list[tuple[Task, TaskSet]]:
        """All tasks with their sets.

        Raises:
            UsageError: there are none, or two have the same id.
        """
        found = [(task, selection.set) for selection in self.selections for task in selection.tasks()]
        seen: set[str] = set()
        for task, home in found:
            if task.id in seen:
                raise UsageError(
                    f"two tasks have the id {task.id!r} (in {home.name}); ids must be unique in a results file"
                )
            seen.add(task.id)
        if not found:
            raise UsageError(f"no tasks in {', '.join(selection.set.name for selection in self.selections)}")
        return found

    def to_json(self) -> dict[str, Any]:
        """The evaluation as the header of a results file holds it."""
        return {
            "title": self.title,
            "sets": [
                {
                    "name": s.set.name,
                    "summary": s.set.summary,
                    "options": _plain(s.options),
                    "limit": s.limit,
                    "seed": s.seed,
                    **({"skip_bad": s.skip_bad} if s.skip_bad else {}),
                    **({"shots": s.shots, "shots_from": s.shots_from} if s.shots else {}),
                }
                for s in self.selections
            ],
            "systems": [system.to_json() for system in self.systems],
            "samples": self.samples,
            "seed": self.seed,
            "budget": self.budget.to_json(),
            "grader": self.grader,
            **({"unseen": list(self.unseen)} if self.unseen else {}),
            **({"in_turn": True} if self.in_turn else {}),
        }

    def systems_of(self, place: int) -> Sequence[System]:
        """Who gets the task at a place of the list, counted from 0."""
        return [self.systems[place % len(self.systems)]] if self.in_turn else self.systems

    def pool_of(self, system: System, pool: Pool, task: Task) -> tuple[Pool, dict[str, str]]:
        """The pool that a system meets in a task, and whose description each member bears where they are permuted.

        Args:
            pool: of the system.
        """
        key = f"{self.seed} {task.id}"
        pool = unseen_pool(pool, self.unseen, key)
        return changed_pool(pool, system.change, key) if system.change else (pool, {})

    def fingerprint(self, pools: Mapping[str, Pool], tasks: Sequence[Task]) -> str:
        """The same for two evaluations that ask the same of the same pools; `max_usd` and `title` do not count.

        Args:
            pools: of each system.
            tasks: all of them: a file of tasks may have changed.
        """
        # `to_json` names the sets but not their rows: without this, a changed file would pass for the same evaluation.
        asked = _digest("\0".join(f"{task.id}\1{task.prompt}\1{task.answers}" for task in tasks))
        data = {
            **self.to_json(),
            # A new title asks nothing else, and must not refuse the file.
            "title": "",
            "pools": {name: pool.id for name, pool in pools.items()},
            "asked": asked,
        }
        return _digest(json.dumps(data, sort_keys=True, default=str))[:16]


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: str(value) if isinstance(value, Path) else value for key, value in options.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
