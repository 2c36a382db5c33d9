"""Running an evaluation: many items at once, each written the moment it is graded.

    task, system, sample -> (world) -> Orchestrator.run -> grade -> Item -> results file

The invariants: what is in the results file is never done again, and a run that a crashed process had begun is resumed
from its trace, call by call. A system that breaks costs its own items and no others. The first item that cannot be
written stops everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import concertino as ct
from concertino.core.events import CallStarted
from concertino.core.logs import logger_of
from concertino.executor import Limits
from concertino.schema import suggestion

from concertino_bench.tasks.grade import Grade, Grader, Submission, Verdict
from concertino_bench.tasks.item import Item, Key
from concertino_bench.tasks.system import System
from concertino_bench.tasks.task import Task, TaskSet, TaskWorld

from .evaluation import Evaluation
from .results_file import ResultsFile
from .services import PoolServices, choose_graders, grading_pool

logger = logger_of("bench")


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is.

    Attributes:
        done, total: items, those of earlier processes included.
        fresh: items that this process did.
        right: by system, right and done items.
        usd: spent so far, grading included, earlier processes included; what has no price is not in it.
        unpriced: requests so far whose price is unknown.
        seconds: since this process began.
        item: the item that was done just now.
    """

    done: int
    total: int
    fresh: int
    right: dict[str, tuple[int, int]]
    usd: float
    seconds: float
    item: Item | None = None
    unpriced: int = 0

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

    Raises:
        UsageError: a task set cannot be read, tasks, systems, graders and pool do not fit together, or the file belongs
            to another evaluation. Nothing has run.
    """
    _check_redo(redo)
    tasks = evaluation.tasks() if tasks is None else tasks
    chosen = choose_graders([task for task, _ in tasks], graders, evaluation.grader)
    jury = grading_pool(pool, list({id(grader): grader for grader in chosen.values()}.values()))
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
    # One run may call several members at once; the executor must not be what limits `concurrency` runs.
    own = executor or ct.Executor(limits=Limits(calls=max(256, 4 * concurrency)))
    try:
        _check_beginnings(evaluation, pools, tasks, own)
        with ResultsFile(out, header, tuple(redo)) as file:
            runner = _Runner(evaluation, pools, jury, chosen, file, folder, own, on_progress, total=0)
            return await runner.run(tasks, concurrency)
    finally:
        if executor is None:
            await own.aclose()


def _check_beginnings(
    evaluation: Evaluation,
    pools: Mapping[str, ct.Pool],
    tasks: Sequence[tuple[Task, TaskSet]],
    executor: ct.Executor,
) -> None:
    """See that every system can begin with a task of every set, before anybody is asked.

    Raises:
        UsageError: one cannot, such as a vote without members; names it.
    """
    seen: set[tuple[str, str]] = set()
    for place, (task, home) in enumerate(tasks):
        for system in evaluation.systems_of(place):
            if (system.name, home.name) in seen:
                continue
            seen.add((system.name, home.name))
            try:
                pool, _, _ = _met(evaluation, system, pools[system.name], task, home)
                orchestrator = _orchestrator(evaluation, system, 0, executor)
                orchestrator.stepped(task.question, pool=pool, budget=evaluation.budget)
            except (ct.UsageError, ct.PoolError) as error:
                raise ct.UsageError(f"system {system.name}, task {task.id}: {error}") from error
            except Exception:
                # A fault of its code, and not of what was asked for: it costs the items of this system alone.
                logger.debug("%s broke on %s", system.name, task.id, exc_info=True)


def _met(
    evaluation: Evaluation, system: System, pool: ct.Pool, task: Task, home: TaskSet
) -> tuple[ct.Pool, dict[str, str], TaskWorld | None]:
    """The pool that a system meets in a task, whose description each member bears, and the task's world."""
    world = home.world(task) if home.world is not None else None
    if world is not None:
        pool = pool.adding(*world.members())
    return *evaluation.pool_of(system, pool, task), world


def _orchestrator(evaluation: Evaluation, system: System, sample: int, executor: ct.Executor) -> ct.Orchestrator:
    """Who leads a sample of a system."""
    sampling = system.sampling or ct.Sampling()
    seed = evaluation.seed if sampling.seed is None else sampling.seed
    return ct.Orchestrator(
        system.model,
        system.strategy,
        executor=executor,
        sampling=sampling.with_(seed=seed + sample),
        eager=system.eager,
        arrange=system.shortlist,
    )


@dataclass
class _Runner:
    evaluation: Evaluation
    pools: dict[str, ct.Pool]
    jury: ct.Pool
    graders: dict[str, Grader]
    file: ResultsFile
    folder: Path | None
    executor: ct.Executor
    on_progress: Callable[[Progress], None] | None
    total: int
    stopped: str = ""
    usd: float = 0.0
    unpriced: int = 0
    fresh: int = 0
    began: float = 0.0

    async def run(self, tasks: Sequence[tuple[Task, TaskSet]], concurrency: int) -> Outcome:
        self.began = time.monotonic()
        of = self.evaluation
        self.total = sum(len(of.systems_of(place)) for place in range(len(tasks))) * of.samples
        self.right = {system.name: [0, 0] for system in self.evaluation.systems}
        for item in self.file.items.values():
            self._count(item)
        self._tell(None)
        todo = self._todo(tasks)
        async with asyncio.TaskGroup() as group:
            # The workers share one iterator: nothing awaits inside it, so no item is taken twice.
            for _ in range(min(concurrency, max(1, self.total - len(self.file.items)))):
                group.create_task(self._work(todo))
        return Outcome(self.file.path, list(self.file.items.values()), self.total, self.stopped)

    def _todo(self, tasks: Sequence[tuple[Task, TaskSet]]) -> Iterator[tuple[Key, System, Task, TaskSet]]:
        """The items that are left, in the order in which they are done."""
        # Task by task and not system by system, so that an unfinished file compares systems on the same tasks.
        for sample in range(self.evaluation.samples):
            for place, (task, home) in enumerate(tasks):
                for system in self.evaluation.systems_of(place):
                    key = Key(system.name, task.id, sample)
                    if key not in self.file.items:
                        yield key, system, task, home

    async def _work(self, todo: Iterator[tuple[Key, System, Task, TaskSet]]) -> None:
        for key, system, task, home in todo:
            limit = self.evaluation.max_usd
            if limit is not None and self.usd >= limit:
                self.stopped = f"{self.usd:.4f} $ are spent, of max_usd={limit:g}"
                return
            item = await self._item(key, system, task, home)
            # Not caught: what cannot be written would be paid for and lost, so the task group ends all work.
            self.file.append(item)
            self.fresh += 1
            self._count(item)
            self._tell(item)

    async def _item(self, key: Key, system: System, task: Task, home: TaskSet) -> Item:
        """Run and grade one item. An exception in here is the failure of this item alone."""
        run_id = run_id_of(key, self.file.nonce)
        try:
            pool, owners, world = _met(self.evaluation, system, self.pools[system.name], task, home)
            run, record = await self._run(run_id, key, system, task, pool, world is None)
            async with PoolServices(self.executor, self.jury, f"grading-{run_id}") as desk:
                grade = await self._grade(task, run, record, world, desk)
                trace = self._shown(run.path)
                return Item.of_run(
                    key, task, grade, run, pool, graded=desk.usage, trace=trace, record=record, owners=owners
                )
        except Exception as error:
            logger.debug("%s broke on %s", system.name, task.id, exc_info=True)
            return Item.of_failure(key, task, f"{type(error).__name__}: {error}")

    async def _run(
        self, run_id: str, key: Key, system: System, task: Task, pool: ct.Pool, resumable: bool
    ) -> tuple[ct.Run, ct.Trace | None]:
        """A run, and its whole trace if an earlier process had begun it."""
        orchestrator = _orchestrator(self.evaluation, system, key.sample, self.executor)
        path = None if self.folder is None else self.folder / f"{run_id}.trace.jsonl"
        if path is not None and path.exists():
            # A world's state is not in the trace: replayed observations would meet a world in which nothing was done.
            if resumable:
                with contextlib.suppress(ct.TraceError, ct.UsageError):
                    # "recall": the run may be finished and only its grade lost; then nothing is asked again.
                    return await orchestrator.resume(path, pool=pool, finished="recall"), ct.Trace.load(path)
            # A new run refuses to write to a path that is taken.
            path.unlink(missing_ok=True)
        budget = self.evaluation.budget
        return await orchestrator.run(task.question, pool=pool, budget=budget, trace=path, run_id=run_id), None

    def _shown(self, path: Path | None) -> str:
        """The path of a trace, relative to the folder of the results file where possible, so that both can be moved."""
        if path is None or self.folder is None:
            return ""
        home = self.file.path.parent
        return str(path.relative_to(home) if path.is_relative_to(home) else path)

    async def _grade(
        self, task: Task, run: ct.Run, record: ct.Trace | None, world: TaskWorld | None, desk: PoolServices
    ) -> Grade:
        # With a world the state decides, and it may be right though nothing was said.
        if run.answer is None and world is None:
            detail = f" ({run.detail})" if run.detail else ""
            return Grade(Verdict.UNPARSABLE, f"no answer: {run.stop}{detail}", task.answers)
        state = world.state() if world is not None else None
        submission = Submission(run.answer or "", calls_of(run, record), state, run.stop)
        try:
            return await self.graders[task.id].grade(task, submission, desk)
        except Exception as error:
            # The run is paid for and kept; `redo=["unparsable"]` has it done again once the grader is mended.
            logger.exception("grading %s", task.id)
            return Grade(Verdict.UNPARSABLE, f"the grader failed: {type(error).__name__}: {error}", task.answers)

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
            self.on_progress(Progress(done, self.total, self.fresh, right, self.usd, seconds, item, self.unpriced))


def calls_of(run: ct.Run, record: ct.Trace | None = None) -> list[dict[str, Any]]:
    """The calls of a run's plans in order, with the arguments that they ran with.

    Args:
        record: the trace of a resumed run, whose events leave out how finished calls had begun.
    """
    ran = {event.call_id: event.arguments for event in run.events if isinstance(event, CallStarted)}
    if record is not None:
        # A resumed run tells only results for the calls that were finished, so their arguments come from the trace.
        ran |= {each["id"]: each["arguments"] for each in record.of_kind("intent")}
    return [
        {
            "name": call.name,
            "arguments": ran.get(seen.call_id, call.to_json()["arguments"]),
            "status": seen.status.value,
        }
        for round_ in run.rounds
        for call, seen in zip(round_.plan.calls, round_.observations, strict=True)
    ]


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
