"""Running an evaluation: many items at once, each written the moment it is graded.

    task, system, sample -> order -> (item_work, anywhere) -> Item -> results file

The invariants: nothing here knows where the runs happen; what is in the results file is never done again, and a run
that a crashed process had begun is resumed from its trace, call by call. A system that breaks costs its own items and
no others. The first item that cannot be written stops everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import concertino as ct
from concertino.rollouts import NodeHealth, Rollouts, RunOrder, check_place, open_rollouts
from concertino.schema import suggestion

from concertino_bench.tasks.grade import Grader, Verdict
from concertino_bench.tasks.item import Item, Key
from concertino_bench.tasks.system import System
from concertino_bench.tasks.task import Task, TaskSet

from .evaluation import Evaluation
from .evaluation_origin import EvaluationOrigin
from .item_work import ItemWork, item_of, order_of
from .results_file import ResultsFile
from .services import choose_graders, grading_pool

_LOOK = 1.0
"""Seconds between two looks at the nodes."""


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is.

    Attributes:
        done, total: items, those of earlier processes included.
        fresh: items that this process did.
        right: by system, right and done items.
        usd: spent so far, grading included, earlier processes included; what has no price is not in it.
        seconds: since this process began.
        item: the item that was done just now.
        unpriced: requests so far whose price is unknown.
        nodes: what is seen of the worker processes or nodes that the runs happen on; none in this process.
    """

    done: int
    total: int
    fresh: int
    right: dict[str, tuple[int, int]]
    usd: float
    seconds: float
    item: Item | None = None
    unpriced: int = 0
    nodes: Sequence[NodeHealth] = ()

    @property
    def eta(self) -> float | None:
        """Seconds that the rest will take at the pace so far; None before the first item."""
        return self.seconds / self.fresh * (self.total - self.done) if self.fresh else None


@dataclass(frozen=True)
class Outcome:
    """The outcome of an evaluation.

    Attributes:
        path: the results file.
        items: all items in it.
        total: items that the evaluation has.
        stopped: why it ended before all items were done; empty if it did not.
    """

    path: Path
    items: Sequence[Item]
    total: int
    stopped: str = ""

    @property
    def missing(self) -> int:
        """Items that are not done."""
        return self.total - len(self.items)


async def evaluate(
    evaluation: Evaluation,
    pool: ct.Pool,
    out: str | Path,
    *,
    graders: Sequence[Grader],
    concurrency: int = 16,
    traces: str | Path | None = "",
    redo: Sequence[str] = (),
    executor: ct.Executor | None = None,
    tasks: Sequence[tuple[Task, TaskSet]] | None = None,
    on: str = "",
    env_from: Sequence[str] = (),
    origin: EvaluationOrigin | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Run an evaluation, or continue it.

    Args:
        out: the results file; if it is there, its items are kept and the missing ones are done.
        graders: who may grade; `concertino_bench.installed_graders()` gives those of all distributions.
        concurrency: runs at once.
        traces: folder of the traces, by default next to the results file; None keeps none, so an interrupted run starts
            from the beginning.
        redo: which finished items are done again: a stop reason such as `model`, a verdict, or `error`.
        tasks: those of the evaluation, if they are loaded already.
        executor: shared with others; by default the evaluation has its own.
        on: where the runs happen, `local` or `local:4` (worker processes), or a place of a plugin, such as `ray`; in
            this process by default.
        env_from: environment variables that worker processes are given beside harmless ones.
        origin: how worker processes make evaluation and pool again, where these hold objects that have no name.
        on_progress: told after every item; and every second where runs happen elsewhere, then without an item.

    Raises:
        UsageError: a task set cannot be read, tasks, systems, graders and pool do not fit together, or the file belongs
            to another evaluation, or a worker process cannot get what the runs need. Nothing has run.
    """
    _check_redo(redo)
    check_place(on)
    tasks = evaluation.tasks() if tasks is None else tasks
    chosen = choose_graders([task for task, _ in tasks], graders, evaluation.grader)
    used = {grader.name: grader for grader in chosen.values()}
    jury = grading_pool(pool, list(used.values()))
    sets = {home.name: home for _, home in tasks}
    pools = {system.name: _pool_of(system, pool) for system in evaluation.systems}
    if evaluation.max_usd is not None:
        # An unpriced request counts as 0 $, so the limit would never be reached.
        _refuse_unpriced(pools)
    header = {
        **evaluation.to_json(),
        "fingerprint": evaluation.fingerprint(pools, [task for task, _ in tasks]),
        "pool": pool.id,
        "pools": {name: each.id for name, each in pools.items()},
        "prices": {spec.name: _price(spec) for each in pools.values() for spec in each.models},
        "tasks": len(tasks),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in ("concertino", "concertino-bench")},
    }
    folder = None if traces is None else Path(traces or Path(out).with_suffix(".traces"))
    if executor is not None and check_place(on):
        raise ct.UsageError(f"executor: it cannot be shared with other processes; leave it out, or on={on!r}")
    work = ItemWork(
        evaluation,
        pool,
        pools,
        list(used.values()),
        jury,
        sets,
        folder,
        Path(out).parent,
        executor,
        concurrency,
        chosen,
        origin,
    )
    async with open_rollouts(on, work, slots=concurrency, env_from=env_from) as rollouts:
        work.check_beginnings(tasks)
        with ResultsFile(out, header, tuple(redo)) as file:
            return await _Runner(evaluation, file, rollouts, on_progress).run(tasks)


def check_evaluation(
    evaluation: Evaluation, pool: ct.Pool, *, graders: Sequence[Grader], tasks: Sequence[tuple[Task, TaskSet]]
) -> None:
    """See that tasks, systems, graders and pool fit together; nobody is asked.

    Raises:
        UsageError: they do not; says what is missing.
    """
    chosen = choose_graders([task for task, _ in tasks], graders, evaluation.grader)
    used = list({grader.name: grader for grader in chosen.values()}.values())
    pools = {system.name: _pool_of(system, pool) for system in evaluation.systems}
    if evaluation.max_usd is not None:
        _refuse_unpriced(pools)
    jury, sets = grading_pool(pool, used), {home.name: home for _, home in tasks}
    ItemWork(evaluation, pool, pools, used, jury, sets, None, Path(), chosen=chosen).check_beginnings(tasks)


@dataclass
class _Runner:
    evaluation: Evaluation
    file: ResultsFile
    rollouts: Rollouts
    on_progress: Callable[[Progress], None] | None
    total: int = 0
    stopped: str = ""
    usd: float = 0.0
    unpriced: int = 0
    fresh: int = 0
    began: float = 0.0

    async def run(self, tasks: Sequence[tuple[Task, TaskSet]]) -> Outcome:
        self.began = time.monotonic()
        of = self.evaluation
        self.total = sum(len(of.systems_of(place)) for place in range(len(tasks))) * of.samples
        self.right = {system.name: [0, 0] for system in self.evaluation.systems}
        self.ordered: dict[str, tuple[Key, Task]] = {}
        for item in self.file.items.values():
            self._count(item)
        self._tell(None)
        async with self._watched(), contextlib.aclosing(self.rollouts.submit(self._orders(tasks))) as results:
            async for result in results:
                key, task = self.ordered.pop(result.id)
                item = item_of(result) or Item.of_failure(key, task, result.detail)
                # Not caught: what cannot be written would be paid for and lost, so it ends all work.
                self.file.append(item, result.data if result.status == "done" else None)
                self.fresh += 1
                self._count(item)
                self._tell(item)
        return Outcome(self.file.path, list(self.file.items.values()), self.total, self.stopped)

    @contextlib.asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Tell how far it is also while no item ends, for nodes come and go."""

        async def watch() -> None:
            while True:
                await asyncio.sleep(_LOOK)
                if self.rollouts.health():
                    self._tell(None)

        watching = asyncio.ensure_future(watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def _orders(self, tasks: Sequence[tuple[Task, TaskSet]]) -> Iterator[RunOrder]:
        """The items that are left, in the order in which they are begun, until the money is spent."""
        limit = self.evaluation.max_usd
        for key, task, home in self._todo(tasks):
            if limit is not None and self.usd >= limit:
                self.stopped = f"{self.usd:.4f} $ are spent, of max_usd={limit:g}"
                return
            order = order_of(run_id_of(key, self.file.nonce), key, task, home, self.evaluation.seed)
            self.ordered[order.id] = key, task
            yield order

    def _todo(self, tasks: Sequence[tuple[Task, TaskSet]]) -> Iterator[tuple[Key, Task, TaskSet]]:
        # Task by task and not system by system, so that an unfinished file compares systems on the same tasks.
        for sample in range(self.evaluation.samples):
            for place, (task, home) in enumerate(tasks):
                for system in self.evaluation.systems_of(place):
                    key = Key(system.name, task.id, sample)
                    if key not in self.file.items:
                        yield key, task, home

    def _count(self, item: Item) -> None:
        self.usd += item.usage.usd + item.graded.usd
        self.unpriced += item.usage.unpriced + item.graded.unpriced
        counts = self.right[item.key.system]
        counts[0] += item.right
        counts[1] += 1

    def _tell(self, item: Item | None) -> None:
        if self.on_progress is not None:
            right = {name: (counts[0], counts[1]) for name, counts in self.right.items()}
            seconds = time.monotonic() - self.began
            done = len(self.file.items)
            nodes = self.rollouts.health()
            self.on_progress(
                Progress(done, self.total, self.fresh, right, self.usd, seconds, item, self.unpriced, nodes)
            )


def run_id_of(key: Key, nonce: str) -> str:
    """The id of an item's run, the same in every process that works on one results file, and safe as a file's name."""
    # Names of systems and tasks may hold slashes, and 60 characters stay far below a file system's limit of 255 bytes.
    readable = re.sub(r"[^\w-]+", "-", f"{key.system}-{key.task}")[:60].strip("-")
    # Names that differ only in replaced signs or behind the cut would otherwise share one trace.
    digest = hashlib.sha256("\0".join([*map(str, key), nonce]).encode()).hexdigest()[:10]
    return f"{readable}-{key.sample}-{digest}"


def _pool_of(system: System, pool: ct.Pool) -> ct.Pool:
    """The pool of a system; makes sure that its leader is in it."""
    try:
        own = system.pool(pool)
        if isinstance(system.model, str):
            own.model(system.model)
    except ct.PoolError as error:
        hint = "name its model, model=PROVIDER/NAME, or bind the role in a pool file, [roles]"
        known = ", ".join(spec.name for spec in pool.models[:12])
        if isinstance(system.model, str) and f"role {system.model!r}" in str(error):
            missing = f"the pool has no model or role {system.model!r}"
            raise ct.UsageError(f"system {system.name}: {missing}; {hint}; there are {known or 'none'}") from error
        raise ct.UsageError(f"system {system.name}: {error}") from error
    return own


def _check_redo(redo: Sequence[str]) -> None:
    known = [*sorted(ct.STOP_REASONS), *Verdict, "error"]
    for word in redo:
        if word not in known:
            hint = suggestion(word, known)
            raise ct.UsageError(f"redo={word!r}: no stop reason and no verdict; {hint}")


def _price(spec: ct.ModelSpec) -> str:
    """A model's price as a report shows it: $ per million tokens in and out, and the date of the table."""
    prices = spec.prices
    if prices is None:
        return "unknown"
    return f"{prices.input:g} / {prices.output:g} $ per million tokens" + (f", {prices.as_of}" if prices.as_of else "")


def _refuse_unpriced(pools: dict[str, ct.Pool]) -> None:
    unpriced = sorted({spec.name for pool in pools.values() for spec in pool.models if spec.prices is None})
    if unpriced:
        raise ct.UsageError(
            f"max_usd needs prices, and the price of {', '.join(unpriced[:5])} is unknown; give them in the pool file, "
            "[prices], or leave max_usd out"
        )
