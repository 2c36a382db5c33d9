"""What is done for one item, wherever that is: the task's world, the run, the grade.

    order -> (world) -> Orchestrator.run -> grade -> Item, as the data of the result

The invariants: an exception in here is the failure of one item; a run that was begun before is continued, or read if it
has ended, so that nothing of it is paid for twice; and the work made again in another process gives the same items, or
is refused there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, cast

import concertino as ct
from concertino.core.events import CallStarted
from concertino.core.logs import logger_of
from concertino.executor import Limits
from concertino.rollouts import PoolReference, RunOrder, RunResult, Work, run_once
from concertino.traces.fence import JournalFenced

from concertino_bench.tasks.grade import Grade, Grader, Submission, Verdict
from concertino_bench.tasks.installed import installed_graders, installed_task_sets
from concertino_bench.tasks.item import Item, Key
from concertino_bench.tasks.named_change import change_from_json, change_to_json
from concertino_bench.tasks.system import System
from concertino_bench.tasks.task import Task, TaskSet, TaskWorld

from .evaluation import Evaluation, Selection
from .evaluation_origin import EvaluationOrigin
from .services import PoolServices, choose_graders, grading_pool

logger = logger_of("bench")


def order_of(run_id: str, key: Key, task: Task, home: TaskSet, seed: int) -> RunOrder:
    """The order of an item."""
    data = {each.name: getattr(task, each.name) for each in fields(Task)}
    return RunOrder(
        task={"set": home.name, "system": key.system, "task": data}, sample=key.sample, seed=seed, id=run_id
    )


def item_of(result: RunResult) -> Item | None:
    """The item of a result; None where the order has failed as a whole."""
    return Item.from_json(result.data) if result.status == "done" else None


class ItemWork(Work):
    """Makes items.

    Args:
        evaluation: whose systems, budget and drawings count.
        pool: that of the evaluation.
        pools: of each system.
        graders: who may grade.
        jury: the pool that graders use.
        sets: the homes of the tasks, by name.
        folder: of the traces; None keeps none.
        home: the folder of the results file.
        executor: shared with others; by default the work has its own.
        concurrency: runs at once.
        chosen: by task id, who grades it, where that is known already.
        origin: how another process makes evaluation and pool again; by default they are written down.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        pool: ct.Pool,
        pools: Mapping[str, ct.Pool],
        graders: Sequence[Grader],
        jury: ct.Pool,
        sets: Mapping[str, TaskSet],
        folder: Path | None,
        home: Path,
        executor: ct.Executor | None = None,
        concurrency: int = 16,
        chosen: Mapping[str, Grader] | None = None,
        origin: EvaluationOrigin | None = None,
    ) -> None:
        self.evaluation, self.pool, self.pools = evaluation, pool, pools
        self.graders, self.jury, self.sets = graders, jury, sets
        self.folder, self.home, self.concurrency = folder, home, concurrency
        # As items name it, wherever traces are written meanwhile; relative where possible, so that both can be moved.
        relative = folder is not None and folder.is_relative_to(home)
        self._named = folder.relative_to(home) if folder is not None and relative else folder
        self._chosen, self._origin = chosen or {}, origin
        self.systems = {system.name: system for system in evaluation.systems}
        # One run may call several members at once; the executor must not be what limits `concurrency` runs.
        self._own = None if executor else ct.Executor(limits=Limits(calls=max(256, 4 * concurrency)))
        self.executor = cast("ct.Executor", executor or self._own)
        self._written: TemporaryDirectory[str] | None = None

    async def perform(self, order: RunOrder) -> RunResult:
        """Run and grade one item."""
        task = Task(**order.task["task"])
        key = Key(order.task["system"], task.id, order.sample)
        item = await self._item(order, key, task, self.sets.get(order.task["set"]))
        return RunResult(order.id, answer=item.answer, stop=item.stop, usage=item.usage, data=item.to_json())

    def check_beginnings(self, tasks: Sequence[tuple[Task, TaskSet]]) -> None:
        """See that every system can begin with a task of every set, before anybody is asked.

        Raises:
            UsageError: one cannot, such as a vote without members; names it.
        """
        seen: set[tuple[str, str]] = set()
        for place, (task, home) in enumerate(tasks):
            for system in self.evaluation.systems_of(place):
                if (system.name, home.name) in seen:
                    continue
                seen.add((system.name, home.name))
                try:
                    pool, _, _ = self._met(system, task, home)
                    self._leader(system, 0).stepped(task.prompt, pool=pool, budget=self.evaluation.budget)
                except (ct.UsageError, ct.PoolError) as error:
                    raise ct.UsageError(f"system {system.name}, task {task.id}: {error}") from error
                except Exception:
                    # A fault of its code, and not of what was asked for: it costs the items of this system alone.
                    logger.debug("%s broke on %s", system.name, task.id, exc_info=True)

    async def aclose(self) -> None:
        """Close its own executor."""
        if self._own is not None:
            await self._own.aclose()
        if self._written is not None:
            self._written.cleanup()

    # -- one item ------------------------------------------------------------------------------------------------------

    async def _item(self, order: RunOrder, key: Key, task: Task, home: TaskSet | None) -> Item:
        system = self.systems[key.system]
        try:
            pool, owners, world = self._met(system, task, home)
            run, record = await self._run(order, system, task, pool, world is None)
            async with PoolServices(self.executor, self.jury, f"grading-{order.id}") as desk:
                grade = await self._grade(task, run, record, world, desk)
                trace = str(self._named / run.path.name) if self._named is not None and run.path is not None else ""
                return Item.of_run(
                    key, task, grade, run, pool, graded=desk.usage, trace=trace, record=record, owners=owners
                )
        except JournalFenced:
            raise  # another worker has this run
        except Exception as error:
            logger.debug("%s broke on %s", system.name, task.id, exc_info=True)
            return Item.of_failure(key, task, f"{type(error).__name__}: {error}")

    async def _run(
        self, order: RunOrder, system: System, task: Task, pool: ct.Pool, resumable: bool
    ) -> tuple[ct.Run, ct.Trace | None]:
        """A run, and its whole trace if an earlier process had begun it."""
        leader = self._leader(system, order.sample)
        path = None if self.folder is None else self.folder / f"{order.id}.trace.jsonl"
        if path is not None and not resumable:
            # A world's state is not in the trace: replayed observations would meet a world in which nothing was done.
            path.unlink(missing_ok=True)
        budget = self.evaluation.budget
        try:
            run, known = await run_once(leader, task.prompt, pool, path, run_id=order.id, budget=budget)
        except JournalFenced:
            raise  # another worker has this run
        except ct.TraceError:
            # What is damaged at its head, or of another set-up, is begun anew.
            if path is None or not path.exists():
                raise
            path.unlink(missing_ok=True)
            run, known = await run_once(leader, task.prompt, pool, path, run_id=order.id, budget=budget)
        return run, ct.Trace.load(path) if known and path is not None else None

    def _met(
        self, system: System, task: Task, home: TaskSet | None
    ) -> tuple[ct.Pool, dict[str, str], TaskWorld | None]:
        """The pool that a system meets in a task, whose description each member bears, and the task's world."""
        world = home.world(task) if home is not None and home.world is not None else None
        pool = self.pools[system.name]
        if world is not None:
            members = world.members()
            pool = pool.adding(*members)
            # A model that a world asks, such as a simulated user, would else be missed in the middle of a paid run.
            for role in (name for each in members if isinstance(each, ct.AgentSpec) for name in each.models):
                pool.model(role)
        return *self.evaluation.pool_of(system, pool, task), world

    def _leader(self, system: System, sample: int) -> ct.Orchestrator:
        """Who leads a sample of a system."""
        sampling = system.sampling or ct.Sampling()
        seed = self.evaluation.seed if sampling.seed is None else sampling.seed
        return ct.Orchestrator(
            system.model,
            system.strategy,
            executor=self.executor,
            sampling=sampling.with_(seed=seed + sample),
            eager=system.eager,
            arrange=system.shortlist,
        )

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
            grader = self._chosen.get(task.id)
            if grader is None:
                grader = choose_graders([task], self.graders, self.evaluation.grader)[task.id]
            return await grader.grade(task, submission, desk)
        except Exception as error:
            # The run is paid for and kept; `redo=["unparsable"]` has it done again once the grader is mended.
            logger.exception("grading %s", task.id)
            return Grade(Verdict.UNPARSABLE, f"the grader failed: {type(error).__name__}: {error}", task.answers)

    # -- in another process --------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """What the same work is made of elsewhere.

        Raises:
            UsageError: a system, grader, set or pool is an object of this program, which cannot be named.
        """
        self._refuse_own_objects()
        made = {"origin": self._origin.to_json()} if self._origin is not None else self._written_down()
        return {
            **made,
            "pools": {name: pool.id for name, pool in self.pools.items()},
            "graders": [grader.name for grader in self.graders],
            "sets": [name for name, home in self.sets.items() if home.world is not None],
            "folder": None if self.folder is None else str(self.folder),
            "home": str(self.home),
            "concurrency": self.concurrency,
        }

    def _written_down(self) -> dict[str, Any]:
        if self._written is None:
            self._written = TemporaryDirectory(prefix="concertino-pools-")
        of = self.evaluation
        return {
            "systems": [system.to_json() for system in of.systems],
            "changes": {s.name: change_to_json(s.prepare) for s in of.systems if s.prepare is not None},
            "seed": of.seed,
            "budget": of.budget.to_json(),
            "grader": of.grader,
            "unseen": list(of.unseen),
            "pool": PoolReference.of(self.pool, Path(self._written.name)).to_json(),
        }

    def _refuse_own_objects(self) -> None:
        named = {grader.name: type(grader) for grader in installed_graders()}
        own = [f"the grader {g.name}" for g in self.graders if named.get(g.name) is not type(g)]
        if self._origin is None:
            own += self._own_tasks_and_systems()
        if own:
            raise ct.UsageError(
                f"{own[0]} is an object of this program, which worker processes cannot load by name; publish it in a "
                "plugin, or run in this process (on='local')"
            )

    def _own_tasks_and_systems(self) -> list[str]:
        sets = installed_task_sets()
        worlds = [home for home in self.sets.values() if home.world is not None]
        own = [f"the task set {home.name}" for home in worlds if home.name not in sets]
        return own + [f"the {what} of the system {s.name}" for s in self.evaluation.systems for what in s.own_objects()]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The same work in another process.

        Raises:
            PoolError: the pool is another one here.
            UsageError: something is not installed here.
        """
        if "origin" in data:
            evaluation, pool = EvaluationOrigin.from_json(data["origin"]).make()
            sets = {each.set.name: each.set for each in evaluation.selections}
        else:
            evaluation, pool = _read(data)
            sets = installed_task_sets() if data["sets"] else {}
        graders = [each for each in installed_graders() if each.name in data["graders"]]
        missing = {*data["graders"], *data["sets"]} - {*sets, *(grader.name for grader in graders)}
        if missing:
            raise ct.UsageError(f"not installed here: {', '.join(sorted(missing))}; install the same distributions")
        pools = {system.name: system.pool(pool) for system in evaluation.systems}
        for name, known_id in data["pools"].items():
            if name not in pools or pools[name].id != known_id:
                raise ct.PoolError(f"the pool of the system {name} is another one here; install the same distributions")
        folder = None if data["folder"] is None else Path(data["folder"])
        known = {name: sets[name] for name in data["sets"]}
        jury = grading_pool(pool, graders)
        return cls(
            evaluation, pool, pools, graders, jury, known, folder, Path(data["home"]), concurrency=data["concurrency"]
        )


def _read(data: Mapping[str, Any]) -> tuple[Evaluation, ct.Pool]:
    """What was written down."""
    pool = PoolReference.from_json(data["pool"]).load()
    changes = {name: change_from_json(each) for name, each in data["changes"].items()}
    systems = [
        replace(each, prepare=changes.get(each.name)) for each in (System.from_json(each) for each in data["systems"])
    ]
    nowhere = Selection(TaskSet("ordered", "Tasks that come with their orders.", lambda: iter(())))
    evaluation = Evaluation(
        [nowhere],
        systems,
        seed=data["seed"],
        budget=ct.Budget(**data["budget"]),
        grader=data["grader"],
        unseen=tuple(data["unseen"]),
    )
    return evaluation, pool


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
