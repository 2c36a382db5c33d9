"""A teacher's trajectories, and the set that is made of them.

    run_collection(config)      out/collected/results.jsonl + traces, and out/set

The invariant: it continues where it was interrupted, and the set is rebuilt from all that was collected.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import Model, Pool, Strategy, UsageError
from concertino_bench import System
from concertino_bench.runner import Evaluation, EvaluationOrigin

from concertino_train.config.config import load_config
from concertino_train.config.named import make_named, make_strategy
from concertino_train.data.building import DataSet, SetSettings, make_set
from concertino_train.data.collecting import RESULTS, collect, evaluation_of
from concertino_train.factories.pools import VariedPool, asked_with, draw_preference, make_pool, make_shortlist
from concertino_train.factories.questions import make_budget, select_tasks, selections_of
from concertino_train.running.progress import Reporter

if TYPE_CHECKING:
    from concertino_bench import Item, Task
    from concertino_bench.runner import Progress, Selection

    from concertino_train.config.config import TrainConfig
    from concertino_train.data.trajectories import PoolOf

EXPERTS: Mapping[str, str] = {"practice": "concertino_toy.practice.experts:practice_expert"}
"""Functions that make a teacher of a pool and a strategy, by the names that settings files use."""
TEACHER = "teacher"
VARIED_POOLS = 200
"""Of a pool that varies, unless the settings say how many."""
"""What results files call it; `teacher-0`, `teacher-1` and so on where it works with several pools."""


@dataclass(frozen=True)
class CollectionResult:
    """What a teacher made.

    Attributes:
        results: the results file.
        runs, right, missing: how many; missing ones are done by the same call again.
        set: folder of the set; None where nothing could be taken.
        examples: in it.
        left_out: by reason.
        seconds: of this process.
    """

    results: Path
    runs: int
    right: int
    missing: int
    set: Path | None
    examples: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}


def run_collection(
    config: TrainConfig,
    *,
    output: str | Path | None = None,
    on: str = "",
    env_from: Sequence[str] = (),
    reporter: Reporter | None = None,
) -> CollectionResult:
    """Have the teacher work on tasks, and make a set of what it did.

    Args:
        config: the training.
        output: folder; that of the settings by default. `collected` and `set` are made in it.
        on: where the runs happen: `local`, `local:4` (worker processes), or a place of a plugin, such as `ray`.
        env_from: environment variables that worker processes are given beside harmless ones.
        reporter: what people see.

    Raises:
        UsageError: teacher, tasks and pool do not fit together, or nothing that was collected can be learnt.
    """
    began, told = time.monotonic(), reporter or Reporter()
    home = Path(output or config.trainer.output)
    section, pool = config.data.collect, make_pool(config.pool)

    def progress(seen: Progress) -> None:
        if told.total and seen.item is None:
            return  # nothing but where the runs happen can be new
        if not told.total:
            told.begin("collect", seen.total, seen.done - seen.fresh, time.monotonic() - began)
        right, done = (sum(counts) for counts in zip(*seen.right.values(), strict=True))
        figures = {"success": right / done if done else 0.0, **_usd(seen)}
        told.step(seen.done, figures, show=seen.done == seen.total or seen.done % max(1, seen.total // 20) == 0)

    done = asyncio.run(
        collect(
            _teachers(config, pool),
            _tasks(config),
            pool,
            home / "collected",
            **_conditions(config),
            concurrency=section.concurrency,
            on=on,
            env_from=env_from,
            origin=EvaluationOrigin.of(made_again, settings=config.resolved()),
            on_progress=progress,
        )
    )
    told.end()
    made = build_set(config, home, pool=pool)
    left: dict[str, int] = {}
    for each in made.left_out:
        left[each.reason] = left.get(each.reason, 0) + 1
    runs = len(done.outcome.items)
    seconds = round(time.monotonic() - began, 3)
    return CollectionResult(
        done.results, runs, done.right, done.missing, made.folder, len(made.examples), left, seconds
    )


def made_again(settings: Mapping[str, Any]) -> tuple[Evaluation, Pool]:
    """The evaluation that a collection is, and its pool, in a worker process.

    Args:
        settings: as `TrainConfig.resolved` gives them; who asked for the collection trusts them.
    """
    config = load_config(settings, check=False, trusted=True)
    pool = make_pool(config.pool)
    return evaluation_of(_teachers(config, pool), _tasks(config), **_conditions(config)), pool


def build_set(config: TrainConfig, home: Path, *, pool: Pool | None = None) -> DataSet:
    """The set of what was collected, as the section `data` says.

    Args:
        config: the training.
        home: with `collected` in it; `set` is made.
        pool: of the runs; that of the settings by default.

    Raises:
        UsageError: nothing is left.
    """
    data = config.data
    results = [Path(each) for each in data.results] or [home / "collected" / RESULTS]
    exclude: Iterable[str] = ()
    if data.exclude_rl:
        kept = select_tasks(config.tasks.train, "tasks.train")
        # By text as well: another set may ask the same question under another id.
        exclude = [text for task, _ in kept for text in (task.id, task.question)]
    settings = SetSettings(
        selection=data.select,
        exclude=frozenset(exclude),
        seed=config.trainer.seed,
        roles=tuple(data.roles),
        exact=data.exact,
        rewrite=data.rewrite,
        keep_serial=data.keep_serial,
        gap=data.gap,
        title=f"{config.name}: conversations to learn from",
    )
    return make_set(results, home / "set", settings, pool=_pool_of(config, pool))


def pool_count(config: TrainConfig) -> int:
    """Varied pools that the teacher works with; 0 for the pool as it is."""
    count = config.data.collect.pools
    return (VARIED_POOLS if config.pool.variation.varies else 0) if count is None else count


def in_turn(config: TrainConfig) -> bool:
    """Whether each task is done over one of the pools, and not over every one."""
    return config.data.collect.in_turn or (config.data.collect.pools is None and pool_count(config) > 1)


def pools_of(config: TrainConfig, pool: Pool | None = None) -> dict[str, Pool]:
    """The pools that the teacher works with, by what results files call it then.

    Args:
        config: the training.
        pool: that of the settings by default.

    Raises:
        UsageError: several pools are asked for, and nothing varies.
    """
    count = pool_count(config)
    if not count:
        return {TEACHER: make_pool(config.pool) if pool is None else pool}
    if not config.pool.variation.varies:
        raise UsageError(
            f"data.collect.pools={count}: all would be the same; say in pool.variation what differs (keep, rename, "
            "prices, costs, make), or leave it out"
        )
    varied = VariedPool(config.pool, config.trainer.seed)
    return {f"{TEACHER}-{number}": varied.draw(number)[0] for number in range(count)}


def _tasks(config: TrainConfig) -> list[Selection]:
    given = selections_of(config.data.collect.tasks or config.tasks.train, "data.collect.tasks")
    return [_asked_for_users(each, config) for each in given]


def _teachers(config: TrainConfig, pool: Pool) -> list[System]:
    strategy = make_strategy(config.data.collect.strategy or config.rollout.strategy)
    return [
        System(
            name,
            strategy,
            _leader(config, own, strategy),
            shortlist=make_shortlist(config.pool),
            prepare=functools.partial(_instead, own=own),
        )
        for name, own in pools_of(config, pool).items()
    ]


def _conditions(config: TrainConfig) -> dict[str, Any]:
    section = config.data.collect
    return {
        "samples": section.samples,
        "in_turn": in_turn(config),
        "temperatures": section.temperatures,
        "seed": config.trainer.seed,
        "budget": make_budget(config),
        "max_usd": section.max_usd,
    }


def _instead(pool: Pool, own: Pool) -> Pool:
    return own


def _pool_of(config: TrainConfig, pool: Pool | None) -> Pool | PoolOf:
    """The pool of every run: that of its teacher, with the members of its world where tasks have worlds."""
    tasks = select_tasks(config.data.collect.tasks or config.tasks.train, "data.collect.tasks")
    worlds = {task.id: (task, home.world) for task, home in tasks if home.world is not None}
    pools = pools_of(config, pool)
    plain = make_pool(config.pool) if pool is None else pool
    if not worlds and list(pools) == [TEACHER]:
        return plain

    def pool_of(item: Item) -> Pool:
        own = pools.get(item.key.system.partition("@")[0], plain)
        task, world = worlds.get(item.key.task, (None, None))
        return own if task is None or world is None else own.adding(*world(task).members())

    return pool_of


def _leader(config: TrainConfig, pool: Pool, strategy: Strategy) -> str | Model:
    """The teacher: a name of the pool, or a model that a function makes."""
    teacher = config.data.collect.teacher
    if isinstance(teacher, str):
        # Raises for a name that the pool lacks, before any run is paid for.
        pool.model(teacher)
        return teacher
    shortlist = make_shortlist(config.pool)
    # Only where there is one: teachers of one's own need not know the argument.
    seen = {"shortlist": shortlist} if shortlist is not None else {}
    made = make_named(teacher, EXPERTS, "data.collect.teacher", pool=pool, strategy=strategy, **seen)
    if not isinstance(made, Model):
        raise UsageError(f"data.collect.teacher: {teacher.name} gave a {type(made).__name__}; expected a Model")
    return made


def _asked_for_users(selection: Selection, config: TrainConfig) -> Selection:
    """A selection whose questions say what a user prefers, as those of reinforcement learning do."""
    varied, load = config.pool.variation, selection.set.load
    if not varied.preferences:
        return selection

    @functools.wraps(load)
    def asking(**options: Any) -> Iterator[Task]:
        for number, task in enumerate(load(**options)):
            prefers = draw_preference(varied, config.trainer.seed, number)
            yield replace(task, question=asked_with(task.question, prefers))

    return replace(selection, set=replace(selection.set, load=asking))


def _usd(seen: Progress) -> dict[str, float]:
    return {"usd": seen.usd} if seen.usd and not seen.unpriced else {}
