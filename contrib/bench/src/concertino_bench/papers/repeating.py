"""Running a recipe: its systems over its tasks, one results file for each data set.

The invariants: nothing is asked before all tasks are read and every system is known to fit the pool; data that is not
at hand is left out and told, never replaced; what is in a results file is not done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from concertino import Budget, Pool, Sampling, UsageError

from concertino_bench.baselines.lineup import offered, systems
from concertino_bench.environments import workflow_for
from concertino_bench.runner.evaluation import Evaluation
from concertino_bench.runner.evaluator import Outcome, Progress, check_evaluation, evaluate
from concertino_bench.runner.files import make_selection, make_system, options_of
from concertino_bench.tasks.grade import Grader
from concertino_bench.tasks.system import System
from concertino_bench.tasks.task import Task, TaskSet

from .recipe import PaperData, PaperSystem, Recipe

_ENVIRONMENTS = "environments/"


@dataclass(frozen=True)
class Wanted:
    """One data set of a recipe, as far as it is at hand.

    Attributes:
        data: of the recipe.
        evaluation: what is run; None where something is missing.
        tasks: what it is run over.
        missing: what is missing, and where it is published; empty if nothing is.
        idle: systems that this pool cannot make, and why.
    """

    data: PaperData
    evaluation: Evaluation | None = None
    tasks: Sequence[tuple[Task, TaskSet]] = ()
    missing: str = ""
    idle: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where the runs happen.

    Attributes:
        concurrency: runs at once.
        on: as that of `evaluate`.
        env_from: environment variables that worker processes are given beside harmless ones.
    """

    concurrency: int = 16
    on: str = ""
    env_from: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choices:
    """What a person may choose of a repetition.

    Attributes:
        alone: the model of the systems that ask one model; by default the pool's orchestrator.
        limit: tasks of each data set at most.
        samples: of each task; by default the paper's.
        seed: of sampling.
        max_usd: nothing more begins in a data set once so many $ are spent on it.
        skip_bad: rows of each data set that may be wrong; they are left out, each with a warning.
    """

    alone: str = "orchestrator"
    limit: int | None = None
    samples: int | None = None
    seed: int = 0
    max_usd: float | None = None
    skip_bad: int = 0


def wanted(
    recipe: Recipe, pool: Pool, folder: Path, sets: Mapping[str, TaskSet], choices: Choices | None = None
) -> list[Wanted]:
    """What of a recipe can be run with these files.

    Raises:
        UsageError: a file is wrong, a system does not fit the pool, or nothing is at hand. Nothing is asked.
    """
    chosen = choices or Choices()
    found = [_wanted(recipe, data, pool, folder, sets, chosen) for data in recipe.data]
    if all(each.evaluation is None for each in found):
        raise UsageError(f"nothing of {recipe.name} is in {folder}: " + "; ".join(each.missing for each in found))
    return found


async def repeat(
    wants: Iterable[Wanted],
    pool: Pool,
    out: Path,
    *,
    graders: Sequence[Grader],
    place: Place | None = None,
    on_progress: Callable[[str, Progress], None] | None = None,
) -> dict[str, Outcome]:
    """Run what is wanted, or continue it; by the name of the data.

    Raises:
        UsageError: as `evaluate`, for any of them, before anything is asked.
    """
    where = place or Place()
    at_hand = [(each, each.evaluation) for each in wants if each.evaluation is not None]
    for each, evaluation in at_hand:
        check_evaluation(evaluation, pool, graders=graders, tasks=each.tasks)
    found: dict[str, Outcome] = {}
    for each, evaluation in at_hand:
        name = each.data.name

        def told(progress: Progress, name: str = name) -> None:
            if on_progress is not None:
                on_progress(name, progress)

        found[name] = await evaluate(
            evaluation,
            pool,
            results_file(out, name),
            graders=graders,
            concurrency=where.concurrency,
            tasks=each.tasks,
            on=where.on,
            env_from=where.env_from,
            on_progress=told,
        )
    return found


def results_file(out: Path, name: str) -> Path:
    """Where the results of a data set are."""
    return out / f"{name.lower().replace(' ', '-')}.jsonl"


def _wanted(
    recipe: Recipe,
    data: PaperData,
    pool: Pool,
    folder: Path,
    sets: Mapping[str, TaskSet],
    choices: Choices,
) -> Wanted:
    if data.set not in sets:
        return Wanted(data, missing=f"{data.name} needs the task set {data.set}, which is not installed")
    paths: dict[str, Path] = {}
    for option, patterns in data.files.items():
        found = _file(data, folder, patterns)
        if found is None:
            home = sets[data.set]
            published = f"; {home.file} from {home.source}" if home.source else ""
            return Wanted(data, missing=f"{data.name} needs {folder / patterns[0]}{published}")
        paths[option] = found.absolute()
    known = options_of(sets[data.set])
    given = {**data.options, **{key: value for key, value in data.optional.items() if key in known}}
    entry = {"set": data.set, "options": {**given, **{key: str(path) for key, path in paths.items()}}}
    selection = make_selection(entry, sets, f"{recipe.name}, {data.name}", Path())
    selection = replace(selection, options={**given, **paths}, limit=choices.limit, skip_bad=choices.skip_bad)
    made: list[System] = []
    idle: dict[str, str] = {}
    for each in recipe.systems:
        try:
            made += _systems(recipe, each, data, pool, choices)
        except _CannotWork as error:
            idle[each.name] = str(error)
    if not made:
        return Wanted(data, missing=f"{data.name}: no system can work on it", idle=idle)
    evaluation = Evaluation(
        [selection],
        made,
        samples=choices.samples or recipe.samples,
        seed=choices.seed,
        budget=Budget(**recipe.budget),
        grader=data.grader,
        max_usd=choices.max_usd,
        title=f"{recipe.source}: {data.name}",
    )
    return Wanted(data, evaluation, evaluation.tasks(), idle=idle)


def _file(data: PaperData, folder: Path, patterns: Sequence[str]) -> Path | None:
    """The file of the first pattern that has one.

    Raises:
        UsageError: a pattern has two.
    """
    for pattern in patterns:
        there = sorted(folder.glob(pattern))
        if len(there) > 1:
            names = ", ".join(each.name for each in there)
            raise UsageError(f"{data.name}: {len(there)} files are {folder / pattern}: {names}; leave one")
        if there:
            return there[0]
    return None


class _CannotWork(Exception):
    """A system lacks something in this pool."""


def _systems(recipe: Recipe, wanted: PaperSystem, data: PaperData, pool: Pool, choices: Choices) -> list[System]:
    """The system for this data; none where a workflow has nothing to act in."""
    given = dict(wanted.given)
    where = f"{recipe.name}, {wanted.name}"
    if given.get("workflow"):
        if not data.set.startswith(_ENVIRONMENTS):
            return []
        python = "python" if "python" in pool else "code/python"
        made = System(wanted.name, workflow_for(data.set.removeprefix(_ENVIRONMENTS), python=python))
    elif "baseline" in given:
        made = _baseline(given["baseline"], pool, choices)
        if given.get("options"):
            made = replace(made, strategy=replace(cast("Any", made.strategy), **given["options"]))
    else:
        entry = {"name": wanted.name, **{key: value for key, value in given.items() if key != "offer"}}
        made = make_system(entry, where)
        if given.get("offer"):
            made = replace(made, prepare=_others_offered)
    sampling = Sampling(**recipe.sampling) if recipe.sampling else None
    return [replace(made, name=wanted.name, sampling=sampling)]


def _baseline(name: str, pool: Pool, choices: Choices) -> System:
    leader = pool.model(choices.alone).name
    try:
        made = systems(pool, [name], leader=leader)
    except UsageError as error:
        raise _CannotWork(str(error)) from error
    # `single-model` makes a system of each model.
    return next((each for each in made if each.model == leader), made[0])


def _others_offered(pool: Pool) -> Pool:
    """A pool whose models, but the leader, may be called as agents."""
    leader = pool.model("orchestrator").name
    return offered(pool, [model.name for model in pool.models if model.name != leader])
