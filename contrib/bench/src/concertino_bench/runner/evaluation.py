"""An evaluation says what is run: which tasks, which systems, how often, with which budget.

The invariant: together with the pool it decides every request, so two evaluations with the same `fingerprint` may share
a results file, and what one process left unfinished another may finish.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from concertino import Budget, BudgetError, Pool, Sampling, UsageError
from concertino.schema import near_names

from concertino_bench.systems import System
from concertino_bench.tasks import Task, TaskSet


@dataclass(frozen=True)
class Selection:
    """Some tasks of a set.

    Attributes:
        set: where they come from.
        options: keywords of its `load`.
        limit: at most so many; all by default.
        seed: draws them at random from the whole set instead of taking the first ones.
    """

    set: TaskSet
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None
    seed: int | None = None

    def tasks(self) -> Iterator[Task]:
        """The tasks.

        Raises:
            DataError: the set cannot be read.
            UsageError: it has no such option.
        """
        options = dict(self.options)
        if self.seed is None and self.limit is not None and "count" in inspect.signature(self.set.load).parameters:
            options.setdefault("count", self.limit)  # of a generator, which makes a hundred unless told otherwise
        try:
            loaded = self.set.load(**options)
        except TypeError as error:
            raise UsageError(f"task set {self.set.name}, options {dict(self.options)}: {error}") from error
        if self.seed is not None and self.limit is not None:
            drawn = sorted(loaded, key=lambda task: _digest(f"{self.seed}:{task.id}"))
            return iter(drawn[: self.limit])
        return itertools.islice(loaded, self.limit)


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
    """

    selections: Sequence[Selection]
    systems: Sequence[System]
    samples: int = 1
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    grader: str = ""
    max_usd: float | None = None
    title: str = ""

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
        """What a results file says of it."""
        return {
            "title": self.title,
            "sets": [
                {
                    "name": s.set.name,
                    "summary": s.set.summary,
                    "options": _plain(s.options),
                    "limit": s.limit,
                    "seed": s.seed,
                }
                for s in self.selections
            ],
            "systems": [system.to_json() for system in self.systems],
            "samples": self.samples,
            "seed": self.seed,
            "budget": self.budget.to_json(),
            "grader": self.grader,
        }

    def fingerprint(self, pools: Mapping[str, Pool], tasks: Sequence[Task]) -> str:
        """The same for two evaluations that ask the same of the same pools; `max_usd` and `title` do not count.

        Args:
            pools: of each system.
            tasks: all of them: a file of tasks may have changed.
        """
        asked = _digest("\0".join(f"{task.id}\1{task.question}\1{task.answers}" for task in tasks))
        data = {
            **self.to_json(),
            "title": "",
            "pools": {name: pool.id for name, pool in pools.items()},
            "asked": asked,
        }
        return _digest(json.dumps(data, sort_keys=True, default=str))[:16]


# -- files -----------------------------------------------------------------------------------------------------------

_TOP = ("title", "pool", "samples", "seed", "grader", "max_usd", "budget", "tasks", "systems", "concurrency")


@dataclass(frozen=True)
class EvaluationFile:
    """What a TOML file of an evaluation says, beside the evaluation itself.

    Attributes:
        pool: the pool file, None where there is none.
        concurrency: runs at once, None where it is not said.
    """

    evaluation: Evaluation
    pool: Path | None
    concurrency: int | None


def load_evaluation(path: str | Path, sets: Mapping[str, TaskSet]) -> EvaluationFile:
    """Read an evaluation from TOML.

    Args:
        sets: the task sets that are there, by name.

    Raises:
        UsageError: the file cannot be read, or says something that is not known; names near ones.
    """
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML file: {error}") from error
    _refuse_unknown(data, _TOP, str(path))
    selections = [_selection(entry, sets, path, number) for number, entry in enumerate(_tables(data, "tasks", path), 1)]
    systems = [_system(entry, path, number) for number, entry in enumerate(_tables(data, "systems", path), 1)]
    try:
        budget = Budget(**data.get("budget", {}))
    except (TypeError, BudgetError) as error:
        raise UsageError(f"{path}, [budget]: {error}") from error
    plain = {key: data[key] for key in ("title", "samples", "seed", "grader", "max_usd") if key in data}
    pool = path.parent / data["pool"] if "pool" in data else None
    return EvaluationFile(Evaluation(selections, systems, budget=budget, **plain), pool, data.get("concurrency"))


def find_set(name: str, sets: Mapping[str, TaskSet], where: str = "") -> TaskSet:
    """A task set by its name.

    Raises:
        UsageError: there is none; names near ones.
    """
    if name in sets:
        return sets[name]
    near = near_names(name, list(sets), limit=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "concertino bench tasks lists them"
    raise UsageError(f"{where + ': ' if where else ''}no task set {name!r}; {hint}")


def _selection(entry: Mapping[str, Any], sets: Mapping[str, TaskSet], path: Path, number: int) -> Selection:
    where = f"{path}, [[tasks]] {number}"
    _refuse_unknown(entry, ("set", "options", "limit", "seed"), where)
    if "set" not in entry:
        raise UsageError(f'{where}: expected set = "NAME"')
    options = dict(entry.get("options", {}))
    if isinstance(options.get("path"), str):
        options["path"] = path.parent / options["path"]
    return Selection(find_set(entry["set"], sets, where), options, entry.get("limit"), entry.get("seed"))


def _system(entry: Mapping[str, Any], path: Path, number: int) -> System:
    where = f"{path}, [[systems]] {number}"
    known = [each.name for each in fields(System) if each.name != "prepare"]
    _refuse_unknown(entry, (*known, "options"), where)
    return make_system(entry, where)


def make_system(entry: Mapping[str, Any], where: str) -> System:
    """A system from a table: the fields of `System`, and `options` of its strategy.

    Raises:
        UsageError: no name, no such strategy, or no such option of it.
    """
    from concertino.strategies import strategy_by_name

    name = str(entry.get("strategy", "parallel-rounds"))
    if not entry.get("name"):
        raise UsageError(f'{where}: expected name = "…", what reports call it')
    given = dict(entry.get("options", {}))
    kind = strategy_by_name(name, installed_strategies())
    known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    _refuse_unknown(given, known, f"{where}: options of {name}")
    plain = {key: value for key, value in entry.items() if key not in ("options", "strategy", "sampling")}
    sampling = Sampling(**entry["sampling"]) if "sampling" in entry else None
    return System(**plain, strategy=kind.from_json({"name": name, **given}), sampling=sampling)


def installed_strategies() -> dict[str, Any]:
    """The strategies that distributions declare, by name."""
    from concertino.plugins import default_manager

    return dict(default_manager().strategies())


def _tables(data: Mapping[str, Any], key: str, path: Path) -> list[Mapping[str, Any]]:
    found = data.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise UsageError(f"{path}: expected at least one table [[{key}]]")
    return found


def _refuse_unknown(data: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in data:
        if key not in known:
            near = near_names(str(key), list(known), limit=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise UsageError(f"{where}: no key {key!r}; {hint}")


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: str(value) if isinstance(value, Path) else value for key, value in options.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
