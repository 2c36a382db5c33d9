"""Describing a pool: which models are asked which tasks, which answers are known, and the work on the rest.

A known answer is not asked again. So a new model costs its answers, a new writer costs its texts, and a new price costs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from concertino import Budget, BudgetError, ModelSpec, PoolError, Sampling, UsageError
from concertino.rollouts import check_place

from concertino_bench.tasks.installed import installed_graders
from concertino_bench.tasks.task import Task

from .answers import CardQuestion, ModelAnswer, identity, items_of
from .asked_elsewhere import asked_elsewhere
from .cache import Cache
from .collecting import ANSWERS
from .description import Described, DescriptionProgress
from .tasks import GRADERS, check_tasks, draw_tasks, grader_of, load_tasks
from .work import Work

if TYPE_CHECKING:
    from concertino import Pool
    from concertino.executor import Executor

DEFAULT_CACHE = Path(".concertino") / "descriptions"
"""Where answers and texts are kept unless another folder is named."""

_WRITER = "writer"


async def describe(
    pool: Pool,
    tasks: Sequence[Task] | str | Path | None = None,
    *,
    models: Sequence[str] = (),
    writer: str | ModelSpec | None = _WRITER,
    sample: int | None = None,
    seed: int = 0,
    repeats: int = 1,
    sampling: Sampling | None = None,
    cache: str | Path = DEFAULT_CACHE,
    refresh: bool = False,
    budget: Budget | None = None,
    concurrency: int = 8,
    executor: Executor | None = None,
    trace: str | Path | None = None,
    on: str = "",
    env_from: Sequence[str] = (),
    on_progress: Callable[[DescriptionProgress], None] | None = None,
) -> Described:
    """Describe models of a pool from how they do on tasks.

    Args:
        pool: whose models; it stays as it is.
        tasks: what they are asked, or a task file; by default the 40 included tasks.
        models: patterns of the models to describe; by default all.
        writer: who writes, a role or name in the pool, or a spec. The role `writer` counts only where it is bound;
            without a writer the text is made of the figures.
        sample: as many of the tasks, drawn so that kinds are even; by default all.
        seed: draws another sample.
        repeats: how often each task is asked.
        sampling: how the models sample; by default their servers decide.
        cache: the folder in which answers and texts are kept.
        refresh: forget the answers of these models to these tasks, and ask again. After an interruption, continue
            without it.
        budget: for everything together; a model that it does not reach stays undescribed.
        concurrency: requests to one model under way at once.
        executor: instead of one of its own.
        trace: a file or folder for a trace of all requests.
        on: where the models are asked, `local` or `local:4` (worker processes), or a place of a plugin, such as `ray`;
            in this process by default. This helps where models compute in the process that asks them.
        env_from: environment variables that worker processes are given beside harmless ones.
        on_progress: called after each answer.

    Returns:
        The pool with the new texts, and what they rest on.

    Raises:
        UsageError: nothing to describe or to ask, an unknown model or writer, a wrong number, a folder that cannot
            be used, or a budget in $ and a model of unknown price. Nothing has been asked.
        RunError: an answer cannot be kept.
    """
    elsewhere = check_place(on)
    chosen = load_tasks(tasks) if tasks is None or isinstance(tasks, (str, Path)) else check_tasks(tasks)
    chosen = chosen if sample is None else draw_tasks(chosen, sample, seed)
    for name, value in (("repeats", repeats), ("concurrency", concurrency)):
        if value < 1:
            raise UsageError(f"{name}={value}: expected a number of at least 1")
    graders = [*GRADERS.values(), *installed_graders()]
    for task in chosen:
        grader_of(task, graders)
    specs = _models(pool, models)
    author = find_writer(pool, writer)
    kept = Cache(cache)
    items = {spec.name: list(items_of(identity(spec, pool), chosen, repeats, sampling)) for spec in specs}
    known = {spec.name: {} if refresh else _known(spec, items[spec.name], kept) for spec in specs}
    budget = budget or Budget()
    # Only those: a model whose answers are known costs nothing, and may have an unknown price.
    to_ask = [spec for spec in specs if len(known[spec.name]) < len(items[spec.name])]
    _check_prices(budget, [*(model for spec in to_ask for model in pool.behind(spec.name)), *_behind(pool, author)])
    if refresh:
        # Forgotten only after every check has passed, so that a refused command loses no answer that was paid for.
        for item in (item for own in items.values() for item in own):
            kept.forget(ANSWERS, item.key)
    work = Work(specs, items, known, author, kept, graders, on_progress)
    path = None if trace is None else Path(trace)
    from concertino.executor import Executor

    async with AsyncExitStack() as stack:
        asked = pool
        if elsewhere and to_ask:
            slots = concurrency * len(specs)
            asked = await stack.enter_async_context(asked_elsewhere(pool, on, slots=slots, env_from=env_from))
        used = executor if executor is not None else await stack.enter_async_context(Executor())
        return await work.run(pool, asked, used, budget, concurrency, path)


# -- choosing ----------------------------------------------------------------------------------------------------------


def _models(pool: Pool, patterns: Sequence[str]) -> list[ModelSpec]:
    if not pool.models:
        raise PoolError("the pool has no models to describe; add some, or see `concertino models`")
    for pattern in patterns:
        if not any(_matches(spec, pattern) for spec in pool.models):
            raise PoolError(f"no model of the pool matches {pattern!r}; {_near(pattern, pool)}")
    return [s for s in pool.models if not patterns or any(_matches(s, pattern) for pattern in patterns)]


def _matches(spec: ModelSpec, pattern: str) -> bool:
    """Whether a pattern means a model: by its full name, or by its short name as it is."""
    return fnmatchcase(spec.name, pattern) or pattern == spec.short_name


def find_writer(pool: Pool, writer: str | ModelSpec | None) -> ModelSpec | None:
    """The writer's spec. No other role stands in for a name that is not there.

    Raises:
        PoolError: an unknown model or role, or the short name is ambiguous.
    """
    if writer is None or isinstance(writer, ModelSpec):
        return writer
    if writer == _WRITER and writer not in pool.roles:
        return None
    named = [spec for spec in pool.models if writer in (spec.name, spec.short_name)]
    if writer in pool.roles or len(named) == 1:
        return pool.model(writer)
    if named:
        raise PoolError(f"writer {writer!r} is ambiguous; give the full name: {' or '.join(s.name for s in named)}")
    raise PoolError(f"the pool has no model or role {writer!r} to write; {_near(writer, pool)}")


def _near(name: str, pool: Pool) -> str:
    from concertino.schema import suggestion

    known = [*(spec.name for spec in pool.models), *pool.roles]
    return suggestion(name, known)


def _behind(pool: Pool, writer: ModelSpec | None) -> Sequence[ModelSpec]:
    """The models that a request to the writer can reach."""
    if writer is None:
        return ()
    return pool.behind(writer.name) if writer.name in pool else (writer,)


def _check_prices(budget: Budget, to_ask: Sequence[ModelSpec]) -> None:
    """A budget in $ is only a limit where prices are known."""
    unpriced = sorted({spec.name for spec in to_ask if spec.prices is None})
    if budget.usd is not None and unpriced:
        raise BudgetError(
            f"a budget in usd needs prices, and the price of {', '.join(unpriced)} is unknown; give them with "
            "pool.price({name: Prices(input=..., output=...)}) or leave usd out"
        )


def _known(spec: ModelSpec, items: Sequence[CardQuestion], cache: Cache) -> dict[str, ModelAnswer]:
    """The answers that the cache holds and that still count."""
    found: dict[str, ModelAnswer] = {}
    for item in items:
        data = cache.read(ANSWERS, item.key)
        if data is None:
            continue
        try:
            answer = ModelAnswer.from_json(data)
        except (KeyError, TypeError) as error:
            cache.damaged(ANSWERS, item.key, f"it is not an answer ({type(error).__name__}: {error})")
            continue
        if answer.holds_for(spec):
            found[item.key] = answer
    return found
