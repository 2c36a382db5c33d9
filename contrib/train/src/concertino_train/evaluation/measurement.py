"""A checkpoint, measured: rollouts over tasks with known answers, and the metrics of concertino-bench.

It writes a results file, so `concertino bench report` and `compare` read it beside any other system. The pool
may be another one than that of the training: nothing else changes, and both are recorded.

The invariant: nothing is learnt here, and nothing is drawn: every task is asked as it stands, or once with each of the
preferences that are to be compared, over the pool as it is.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import ConcertinoError, Pool, UsageError
from concertino_bench import Item, Key
from concertino_bench.metrics import METRICS, intervals
from concertino_bench.metrics.counterfactuals import followed
from concertino_bench.reports import read_results

from concertino_train.config.named import make_reward
from concertino_train.elsewhere import check_elsewhere, make_place
from concertino_train.factories.learners import make_engine, make_learner
from concertino_train.factories.models import beginning_of, load_model
from concertino_train.factories.pools import make_pool
from concertino_train.factories.questions import in_batches, measured_tests
from concertino_train.rewards.term import UnpricedError
from concertino_train.rollouts.assignment import Assignment
from concertino_train.rollouts.engine import RolloutEngine
from concertino_train.rollouts.rollout import Rollout, score_rollouts
from concertino_train.running.figures import episode_figures
from concertino_train.running.folder import clean_folder
from concertino_train.running.progress import Reporter
from concertino_train.running.quiet import quietly

from .preferences import preference_figures, wish_of

if TYPE_CHECKING:
    from concertino_train.config.config import TrainConfig

SHOWN = (
    "accuracy",
    "format_rate",
    "ok_rate",
    "recovery_rate",
    "rounds",
    "calls",
    "units",
    "usd",
    "output_tokens",
    "critical_path",
    "unique_tools",
    "tool_entropy",
)
"""Metrics of concertino-bench that an evaluation reports."""

_FIGURES = {"order reversed": "stays", "cards permuted": "follows"}
"""Names of the figures of counterfactuals."""


@dataclass(frozen=True)
class EvalResult:
    """What was measured.

    Attributes:
        results: the results file.
        system: what the policy is called in it.
        tasks, rollouts: how many.
        metrics: values with their intervals, by name.
        figures: of the rollouts, what no metric says: success, clean form, tokens; where preferences are compared, how
            they are obeyed.
        reward: its mean over all rollouts; None where it cannot be worked out, such as a preference that nobody has.
        pool, trained_pool: ids of the pool used here, and of that of the training.
        seconds: of this process.
    """

    results: Path
    system: str
    tasks: int
    rollouts: int
    metrics: Mapping[str, Mapping[str, Any]]
    figures: Mapping[str, float]
    reward: float | None
    pool: str
    trained_pool: str
    seconds: float = 0.0
    traces: Path | None = field(default=None)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: str(value) if isinstance(value, Path) else value for name, value in data.items()}

    def lines(self) -> list[str]:
        """For people."""
        found = [f"{self.system}: {self.tasks} tasks, {self.rollouts} rollouts, pool {self.pool}"]
        if self.pool != self.trained_pool:
            found[0] += f" (trained with {self.trained_pool})"
        for name, value in self.metrics.items():
            if value["value"] is None:
                continue
            ends = f"  [{value['low']:.4g}, {value['high']:.4g}]" if value["low"] is not None else ""
            number = value["value"] if isinstance(value["value"], str) else f"{value['value']:.4g}"
            found.append(f"{METRICS[name].title:<24}{number}{ends}")
        for figure, title in (("stays", "choice stays, reversed"), ("follows", "choice follows card")):
            if figure in self.figures:
                found.append(f"{title:<24}{self.figures[figure]:.4g}")
        if "obedience" in self.figures:
            found.append(f"{'preferences obeyed':<24}{self.figures['obedience']:.4g}")
        if self.reward is not None:
            found.append(f"{'mean reward':<24}{self.reward:.4g}")
        return found


def run_eval(
    config: TrainConfig,
    *,
    output: str | Path | None = None,
    system: str = "",
    pool: str | Path | None = None,
    traces: int = 0,
    reporter: Reporter | None = None,
) -> EvalResult:
    """Measure the policy of `model.path` on `tasks.eval`.

    Args:
        config: says what is measured, and how.
        output: folder of the results; `eval` in that of the settings by default. Results of the same system there are
            replaced.
        system: what the policy is called; the folder of its weights by default.
        pool: a pool file, instead of the pool of the settings.
        traces: so many rollouts are written as trace files.
        reporter: what people see; nothing by default.

    Raises:
        UsageError: there are no weights or no tasks, or they do not fit together.
    """
    began, told = time.monotonic(), reporter or Reporter()
    check_elsewhere(config)
    if not config.model.path and config.model.new is None:
        raise UsageError("model.path is empty; name the checkpoint to evaluate")
    if config.model.prices is None and any(each.usd for each in config.trainer.eval.preferences):
        raise UsageError("trainer.eval.preferences weigh $, and the policy has no price; give model.prices")
    if config.trainer.threads is not None:
        import torch

        torch.set_num_threads(config.trainer.threads)
    trained = _trained_pool(config)
    used = config if pool is None else with_pool(config, pool)
    name = system or (Path(config.model.path).name if config.model.path else config.name)
    if Path(name).name != name:
        raise UsageError(f"system={name!r}: expected a name that can be that of a file, without /")
    folder = Path(output or Path(config.trainer.output) / "eval")
    # Before any rollout is paid for.
    _refuse_other_pool(folder / f"{name}.jsonl", make_pool(used.pool).id)
    tests = measured_tests(used)
    with quietly():
        loaded = load_model(used, [test.text for test in tests])
        learner = make_learner(used, loaded)
    place = make_place(used, learner.codec, ["measure"], beside=folder)
    engine = make_engine(used, learner.policies, beginning_of(loaded), place)
    told.begin("eval", len(tests))
    try:
        # A server has no weights of this policy before it is given them.
        learner.refresh(1)
        found = _rolled_out(used, engine, tests, told)
        # Traces of runs elsewhere go with the engine.
        written = _write_traces(folder, name, found[:traces]) if traces else {}
    finally:
        told.end()
        engine.close()
        learner.close()
    items = [_item(rollout, name, written.get(rollout.id, "")) for rollout in found]
    results = _write(folder, name, used, tests, items, trained)
    unchanged = [(rollout, item) for rollout, item in zip(found, items, strict=True) if not rollout.assignment.change]
    figures = episode_figures([rollout.episode for rollout, _ in unchanged])
    figures |= preference_figures([(rollout.assignment, item) for rollout, item in unchanged])
    figures |= {_FIGURES[each.change]: each.same / each.items for each in followed(items) if each.system == name}
    values = intervals([item for _, item in unchanged], [METRICS[each] for each in SHOWN])
    return EvalResult(
        results,
        name,
        _tasks(used, tests),
        len(unchanged),
        {value.metric: value.to_json() for value in values},
        {each: value for each, value in figures.items() if each not in METRICS},
        _reward(used, [rollout for rollout, _ in unchanged], told),
        make_pool(used.pool).id,
        trained,
        round(time.monotonic() - began, 3),
        folder / f"{name}.traces" if written else None,
    )


def _refuse_other_pool(path: Path, pool: str) -> None:
    """Results of the same name over another pool are another result.

    Raises:
        UsageError: the file holds such.
    """
    if path.is_file() and (held := read_results(path).header.get("pool")) != pool:
        raise UsageError(
            f"{path} holds results over another pool ({held}, this is {pool}); give these another name (--system), or "
            "another folder (--output)"
        )


def _tasks(config: TrainConfig, tests: Sequence[Assignment]) -> int:
    """How many tasks; each is asked once with every preference and every change."""
    return len({test.task.id for test in tests})


def with_pool(config: TrainConfig, file: str | Path) -> TrainConfig:
    """The settings with the pool of a file; nothing else of them changes."""
    from concertino_train.config.config import load_config

    data = config.resolved()
    data["pool"] = {"file": str(file)}
    return load_config(data)


def _trained_pool(config: TrainConfig) -> str:
    """The id of the pool that the policy was trained with, as far as that is written beside it."""
    from concertino.core.document_dangers import document_dangers

    from concertino_train.export import settings_of

    own = settings_of(Path(config.model.path)) if config.model.path else None
    # What a folder of weights says of itself may be a stranger's, and a pool may be made by code.
    if own is not None and own.pool != config.pool and document_dangers(own.pool.model_dump(), Path()):
        return ""
    try:
        pool: Pool = make_pool((own or config).pool)
    except ConcertinoError:  # it is not on this machine; the pool of the evaluation says so where it is that one
        return ""
    return pool.id


def _rolled_out(
    config: TrainConfig, engine: RolloutEngine, tests: Sequence[Assignment], told: Reporter
) -> list[Rollout]:
    from concertino_train.rl.steps import measured_rollouts

    found: list[Rollout] = []
    done = 0
    for number, part in enumerate(in_batches(tests, config.trainer.eval.batch)):
        rollouts = measured_rollouts(config, engine, part, number)
        for rollout in rollouts:
            # Ids and groups count within a batch, and several batches go into one file.
            rollout.id = f"{number}-{rollout.id}"
            rollout.episode = replace(rollout.episode, group=f"{number}-{rollout.group}")
        found += rollouts
        done += len(part)
        told.step(done, episode_figures([rollout.episode for rollout in found]))
    return found


def _item(rollout: Rollout, system: str, trace: str) -> Item:
    wish = wish_of(rollout.assignment) if rollout.assignment.preference is not None else ""
    key = Key(_system(system, wish, rollout.assignment.change), rollout.assignment.task.id, rollout.sample)
    return rollout.item_of(key, trace)


def _system(name: str, wish: str, change: str = "") -> str:
    """What results call the policy; with a preference or over a changed pool, it is another system."""
    name = f"{name}, asked: {wish}" if wish else name
    return f"{name}, {change}" if change else name


def _write_traces(folder: Path, name: str, rollouts: Sequence[Rollout]) -> dict[str, str]:
    """Trace files by id of the rollout, relative to the results."""
    home = clean_folder(folder / f"{name}.traces")
    paths = {rollout.id: rollout.write_trace(home / f"{rollout.id}.trace.jsonl") for rollout in rollouts}
    return {id_: path.relative_to(folder).as_posix() for id_, path in paths.items()}


def _write(
    folder: Path, name: str, config: TrainConfig, tests: Sequence[Assignment], items: Sequence[Item], trained: str
) -> Path:
    """The results file, whole or not at all."""
    from concertino_bench.runner import ResultsFile

    pool, own = make_pool(config.pool), config.trainer.eval
    names = list(dict.fromkeys(_system(name, wish_of(test), test.change) for test in tests))
    asked = hashlib.sha256("\0".join(test.task.id for test in tests).encode()).hexdigest()
    header = {
        "title": f"evaluation of {config.name}",
        "sets": [each.model_dump() for each in config.tasks.eval],
        "systems": [
            {
                "name": each,
                "strategy": tests[0].strategy.to_json(),
                "model": config.model.path,
                "sampling": {"temperature": own.temperature},
                "summary": config.about,
            }
            for each in names
        ],
        "samples": own.samples,
        "seed": config.trainer.seed,
        "grader": "",
        "budget": config.rollout.budget.model_dump(exclude_none=True),
        "pool": pool.id,
        "pools": dict.fromkeys(names, pool.id),
        "trained_pool": trained,
        "settings": config.id,
        "tasks": _tasks(config, tests),
        "fingerprint": f"{config.id}-{asked[:16]}",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {each: version(each) for each in ("concertino", "concertino-bench", "concertino-train")},
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    # Hidden until it is whole, or a report could read half of it.
    unfinished = folder / f".{name}.jsonl"
    unfinished.unlink(missing_ok=True)
    with ResultsFile(unfinished, header) as file:
        for item in items:
            file.append(item)
    unfinished.replace(path)
    return path


def _reward(config: TrainConfig, rollouts: Sequence[Rollout], told: Reporter) -> float | None:
    try:
        scored = score_rollouts(rollouts, make_reward(config.reward))
    except (UnpricedError, UsageError) as error:
        told.say(f"no reward: {error}", "warning")
        return None
    return sum(each.total for each in scored) / len(scored)
