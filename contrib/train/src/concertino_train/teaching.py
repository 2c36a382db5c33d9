"""Supervised learning from settings: a teacher's trajectories, the set that is made of them, a policy that learns it.

    run_collecting(config)      out/collected/results.jsonl + traces, and out/set
    run_teaching(config)        out/sft/model

The invariant: both go on where they were interrupted, and a set is made anew of whatever was collected.
"""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import Model, Pool, Strategy, UsageError
from concertino_bench.systems import System

from concertino_train.assembling import (
    Loaded,
    asked_with,
    draw_preference,
    evaluation_assignments,
    in_batches,
    load_model,
    lora_config,
    make_budget,
    make_engine,
    make_learner,
    make_named,
    make_pool,
    make_strategy,
    select_tasks,
    selections_of,
)
from concertino_train.collecting import measured_rollouts
from concertino_train.data import (
    Conversation,
    DataSet,
    GapSettings,
    SelectionSettings,
    SetSettings,
    collect,
    make_set,
    read_conversations,
)
from concertino_train.data.collecting import RESULTS
from concertino_train.rl import QUIET
from concertino_train.running import (
    GracefulStop,
    MetricsFile,
    Reporter,
    TrainingFolder,
    can_plot,
    check_sinks,
    episode_figures,
    open_sinks,
    plot,
    quietly,
    read_metrics,
    this_rank,
)
from concertino_train.sft import SftProgress, SftSettings, latest_checkpoint, run_sft

if TYPE_CHECKING:
    from concertino_bench.items import Item
    from concertino_bench.runner import Progress, Selection
    from concertino_bench.tasks import Task

    from concertino_train.config import SftTrainer, TrainConfig
    from concertino_train.data.trajectories import PoolOf
    from concertino_train.rollouts import Assignment, Rollout

EXPERTS: Mapping[str, str] = {"practice": "concertino_train.teaching:practice_expert"}
"""Functions that make a teacher of a pool and a strategy, by the names that settings files use."""


@dataclass(frozen=True)
class Collected:
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


@dataclass(frozen=True)
class Taught:
    """What was learnt.

    Attributes:
        folder: of the record.
        model: folder of the weights; None where it was stopped.
        step, steps: done, and to be done.
        stopped: why it ended before; empty if it did not.
        rows: conversations that were learnt from.
        dropped: those that were not, by reason.
        figures: of the last step, with `eval/...` where there are tests.
        seconds: of this process.
    """

    folder: Path
    model: Path | None
    step: int
    steps: int
    stopped: str = ""
    rows: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}


# -- collecting --------------------------------------------------------------------------------------------------------


def run_collecting(
    config: TrainConfig, *, output: str | Path | None = None, reporter: Reporter | None = None
) -> Collected:  # fmt: skip
    """Have the teacher work on tasks, and make a set of what it did.

    Args:
        config: the training.
        output: folder; that of the settings by default. `collected` and `set` are made in it.
        reporter: what people see.

    Raises:
        UsageError: teacher, tasks and pool do not fit together, or nothing that was collected can be learnt.
    """
    began, told = time.monotonic(), reporter or Reporter()
    home = Path(output or config.trainer.output)
    section, pool = config.data.collect, make_pool(config.pool)
    strategy = make_strategy(config, section.strategy)
    given = selections_of(section.tasks or config.tasks.train, "data.collect.tasks")
    tasks = [_asked_for_users(each, config) for each in given]

    def progress(seen: Progress) -> None:
        if not told.total:
            told.begin("collect", seen.total, seen.done - seen.fresh)
        right, done = (sum(counts) for counts in zip(*seen.right.values(), strict=True))
        figures = {"success": right / done if done else 0.0, **_usd(seen)}
        told.step(seen.done, figures, show=seen.done == seen.total or seen.done % max(1, seen.total // 20) == 0)

    system = System("teacher", strategy, _teacher(config, pool, strategy))
    done = asyncio.run(
        collect(
            system, tasks, pool, home / "collected", samples=section.samples, temperatures=section.temperatures,
            seed=config.trainer.seed, budget=make_budget(config), concurrency=section.concurrency,
            max_usd=section.max_usd, on_progress=progress,
        )
    )  # fmt: skip
    told.end()
    made = build_set(config, home, pool=pool)
    left: dict[str, int] = {}
    for each in made.left_out:
        left[each.reason] = left.get(each.reason, 0) + 1
    runs = len(done.outcome.items)
    seconds = round(time.monotonic() - began, 3)
    return Collected(done.results, runs, done.right, done.missing, made.folder, len(made.examples), left, seconds)


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
        exclude = [text for task, _ in kept for text in (task.id, task.question)]
    settings = SetSettings(
        selection=SelectionSettings(
            **data.select.model_dump(), exclude=frozenset(exclude), seed=config.trainer.seed
        ),
        roles=tuple(data.roles), exact=data.exact, rewrite=data.rewrite, keep_serial=data.keep_serial,
        gap=_gap(config), title=f"{config.name}: conversations to learn from",
    )  # fmt: skip
    return make_set(results, home / "set", settings, pool=_pool_of(config, pool or make_pool(config.pool)))


def _pool_of(config: TrainConfig, pool: Pool) -> Pool | PoolOf:
    """The pool of every run; with the members of its world, where tasks have worlds."""
    tasks = select_tasks(config.data.collect.tasks or config.tasks.train, "data.collect.tasks")
    worlds = {task.id: (task, home.world) for task, home in tasks if home.world is not None}
    if not worlds:
        return pool

    def pool_of(item: Item) -> Pool:
        task, world = worlds.get(item.key.task, (None, None))
        return pool if task is None or world is None else pool.adding(*world(task).members())

    return pool_of


def _gap(config: TrainConfig) -> GapSettings | None:
    section = config.data.gap
    if section is None:
        return None
    given = section.model_dump()
    return GapSettings(**{**given, "searches": tuple(given["searches"])}, seed=config.trainer.seed)


def _teacher(config: TrainConfig, pool: Pool, strategy: Strategy) -> str | Model:
    """Who leads: a name of the pool, or a model that a function makes."""
    teacher = config.data.collect.teacher
    if isinstance(teacher, str):
        pool.model(teacher)
        return teacher
    made = make_named(teacher, EXPERTS, "data.collect.teacher", pool=pool, strategy=strategy)
    if not isinstance(made, Model):
        raise UsageError(f"data.collect.teacher: {teacher.name} gave a {type(made).__name__}; expected a Model")
    return made


def practice_expert(pool: Pool, strategy: Strategy, **habits: Any) -> Model:
    """The scripted expert of the practice domain that writes in a strategy's format.

    Args:
        pool: whose members it asks.
        strategy: whose format it writes.
        habits: of `concertino_train.practice.experts.Habits`.

    Raises:
        UsageError: there is no expert for the strategy.
    """
    from concertino_train.practice.experts import (
        GraphExpert,
        Habits,
        PlanExpert,
        RoleExpert,
        RoundsExpert,
        SerialExpert,
    )

    if strategy.name == "role-workflow":
        return RoleExpert(Habits(**habits))
    known: dict[str, type[Any]] = {
        "parallel-rounds": RoundsExpert,
        "serial-calls": SerialExpert,
        "dependency-plan": PlanExpert,
        "agent-graph": GraphExpert,
    }
    if strategy.name not in known:
        named = ", ".join([*known, "role-workflow"])
        raise UsageError(f"there is no practice expert for the strategy {strategy.name!r}; there are {named}")
    made: Model = known[strategy.name](pool, Habits(**habits))
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


# -- teaching ----------------------------------------------------------------------------------------------------------


def run_teaching(
    config: TrainConfig, *, output: str | Path | None = None, sets: Iterable[str | Path] = (), resume: bool = False,
    force: bool = False, reporter: Reporter | None = None,
) -> Taught:  # fmt: skip
    """Teach the policy what good trajectories wrote.

    Roles that get adapters of their own later share the weights that are taught here.

    Args:
        config: the training.
        output: folder of the record; `sft` in that of the settings by default.
        sets: folders to learn from; `data.sets` by default, or `set` in the folder of the settings.
        resume: go on from the newest checkpoint.
        force: begin anew in a folder that is in use, or go on with other settings.
        reporter: what people see; nothing by default.

    Raises:
        UsageError: there is nothing to learn from, or something does not fit.
        KeyboardInterrupt: a second signal.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    began, told, rank = time.monotonic(), reporter or Reporter(), this_rank()
    check_sinks(config.logging.sinks)
    if config.trainer.threads is not None:
        import torch

        torch.set_num_threads(config.trainer.threads)
    folder = Path(output or Path(config.trainer.output) / "sft")
    chosen = [Path(each) for each in sets] or [Path(each) for each in config.data.sets]
    conversations = _conversations(chosen or [Path(config.trainer.output) / "set"])
    with ExitStack() as stack:
        stack.enter_context(quietly())
        home = TrainingFolder(folder, config, resume=resume, force=force, leader=rank.leads)
        stack.enter_context(home)
        loaded = _loaded(config, conversations, home.path)
        settings = sft_settings(config, home.path, resume=home.resumes)
        stop = stack.enter_context(GracefulStop(told.say if rank.leads else None))
        record = stack.enter_context(_Record(config, home, told, settings, leads=rank.leads))
        tests = evaluation_assignments(config) if config.tasks.eval else []
        measure = _Measure(config, loaded, tests)
        stack.callback(measure.close)
        adapter = lora_config(config) if config.model.adapter and config.roles.policies == "shared" else None
        fresh = adapter if not hasattr(loaded.model, "peft_config") else None
        found = run_sft(
            settings, loaded.model, loaded.codec, conversations, adapter=fresh,
            evaluate=measure if tests else None, on_progress=record, stop=_anywhere(stop, rank.ranks),
        )  # fmt: skip
        stopped = stop.reason if found.step < found.steps else ""
        figures = record.finish(found.evaluations, stopped)
        if rank.leads:
            (found.model / "training.yaml").write_text(config.text(), encoding="utf-8")
        return Taught(
            home.path, None if stopped else found.model, found.step, found.steps, stopped, found.rows,
            dict(found.dropped), figures, round(time.monotonic() - began, 3),
        )  # fmt: skip


def sft_settings(config: TrainConfig, folder: Path, *, resume: bool = False) -> SftSettings:
    """The settings of supervised learning, by an explicit table."""
    own: SftTrainer = config.trainer.sft
    every = config.logging.every
    return SftSettings(
        out=folder, steps=own.steps, epochs=own.epochs, batch=own.batch, micro_batch=own.micro_batch,
        learning_rate=own.learning_rate, schedule=own.schedule, warmup=own.warmup, weight_decay=own.weight_decay,
        max_grad_norm=own.max_grad_norm, max_tokens=own.max_tokens, too_long=own.too_long,
        group_by_length=own.group_by_length, loss=own.loss, precision=config.trainer.precision,
        device=config.trainer.device, activation_checkpointing=config.trainer.gradient_checkpointing,
        seed=config.trainer.seed, save_every=own.save_every, keep=config.trainer.keep, log_every=every,
        evaluate_every=own.eval_every or 0, resume=resume,
    )  # fmt: skip


def _conversations(sets: list[Path]) -> list[Conversation]:
    missing = [each for each in sets if not each.exists()]
    if missing:
        raise UsageError(
            f"{missing[0]}: there is no set of conversations; make one (concertino train collect), or name others in "
            "data.sets"
        )
    return [each for place in sets for each in read_conversations(place)]


def _loaded(config: TrainConfig, conversations: list[Conversation], home: Path) -> Loaded:
    """The model to teach; a new one reads and writes the words of the conversations."""
    texts = (message.text for each in conversations for message in each.messages)
    loaded = load_model(config, texts)
    if loaded.made and config.model.adapter is not None:
        loaded.model.save_pretrained(str(home / "base"))
        loaded.codec.save(home / "base")
        loaded.model.name_or_path = str((home / "base").resolve())
    return loaded


def _anywhere(stop: GracefulStop, ranks: int) -> Callable[[], bool]:
    """Whether any process was asked to stop."""
    if ranks == 1:
        return lambda: stop.asked

    def asked() -> bool:
        from accelerate.utils import gather_object  # type: ignore[import-untyped]

        if any(gather_object([stop.asked])):
            stop.ask("another process")
        return stop.asked

    return asked


class _Measure:
    """Rollouts of tests in the midst of teaching, as `run_sft` wants them."""

    def __init__(self, config: TrainConfig, loaded: Loaded, tests: list[Assignment]) -> None:
        self._config, self._tests = config, tests
        self._stack = ExitStack()
        if tests:
            plain = config.model_copy(update={"roles": config.roles.model_copy(update={"policies": "shared"})})
            bare = plain.model_copy(update={"model": plain.model.model_copy(update={"adapter": None})})
            learner = make_learner(bare, loaded)
            self._engine = make_engine(bare, learner.policies)
            self._stack.callback(learner.close)
            self._stack.callback(self._engine.close)

    def __call__(self, step: int) -> dict[str, float]:
        found: list[Rollout] = []
        for number, part in enumerate(in_batches(self._tests, self._config.trainer.eval.batch)):
            found += measured_rollouts(self._config, self._engine, part, number)
        figures = episode_figures([rollout.episode for rollout in found])
        return {f"eval/{name}": figures[name] for name in ("success", "format", "rounds", "calls", "tokens")}

    def close(self) -> None:
        self._stack.close()


class _Record:
    """Figures of every report to file, sinks and people; one that takes nothing on ranks that do not lead."""

    def __init__(
        self, config: TrainConfig, home: TrainingFolder, told: Reporter, settings: SftSettings, *, leads: bool
    ) -> None:
        self._config, self._home, self._told, self._leads = config, home, told, leads
        known = latest_checkpoint(settings) if settings.resume else None
        self._after = int(known.name.rpartition("-")[2]) if known is not None else 0
        self._stack = ExitStack()
        self._begun = False
        self._last: dict[str, Any] = {}
        self._sinks: list[Any] = []

    def __enter__(self) -> _Record:
        if self._leads:
            own, home = self._config.logging, self._home
            after = self._after if home.resumes else None
            self._metrics = self._stack.enter_context(MetricsFile(home.metrics, after))
            self._sinks = open_sinks(
                own.sinks, home.path, project=own.project, run=own.run or self._config.name,
                settings=self._config.resolved(),
            )  # fmt: skip
            for sink in self._sinks:
                self._stack.callback(sink.close)
        return self

    def __exit__(self, *error: object) -> None:
        self._told.end()
        self._stack.close()

    def __call__(self, progress: SftProgress) -> None:
        if not self._leads:
            return
        if not self._begun:
            self._told.begin("sft", progress.steps, self._after)
            self._begun = True
        figures = {
            "loss": progress.loss, "accuracy": progress.accuracy, "learning_rate": progress.learning_rate,
            "grad_norm": progress.grad_norm, "epoch": progress.epoch, "seconds": round(progress.seconds, 3),
            "tokens_per_second": progress.tokens / progress.seconds if progress.seconds else 0.0,
        }  # fmt: skip
        self._last = {"step": progress.step, **figures}
        if progress.step > self._metrics.last:
            self._metrics.write(progress.step, figures)
            for sink in self._sinks:
                sink.take(progress.step, figures)
        self._told.step(progress.step, figures)

    def finish(self, evaluations: Mapping[int, Mapping[str, float]], stopped: str) -> dict[str, Any]:
        """The figures of the last step; evaluations are told and drawn."""
        if not self._leads:
            return {}
        for step, figures in sorted(evaluations.items()):
            told = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
            self._told.say(f"after step {step}: {told}")
        latest = dict(evaluations[max(evaluations)]) if evaluations else {}
        if stopped:
            self._told.say(f"stopped by {stopped}; the same command with --resume goes on")
        if can_plot():
            lines = list(read_metrics(self._home.metrics))
            by_step = {line["step"]: line for line in lines}
            for step, figures in evaluations.items():
                by_step.setdefault(step, {"step": step}).update(figures)
            plot([by_step[step] for step in sorted(by_step)], self._home.plot, self._config.name)
        return {**self._last, **latest}
