"""SFT of a policy on sets of conversations, as settings say.

    run_sft(config)        out/sft/model

The invariant: it resumes where it was interrupted, with the state that it had.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import UsageError

from concertino_train.config.learning import ComputeSection, SftSteps
from concertino_train.data.conversations import RoleConversation
from concertino_train.data.files import read_conversations
from concertino_train.factories.learners import SETTINGS, lora_config, make_engine, make_learner
from concertino_train.factories.models import LoadedPolicy, beginning_of, load_model, precision_of, save_base
from concertino_train.factories.questions import evaluation_assignments
from concertino_train.rl.steps import figures_of_tests
from concertino_train.running.checkpoints import latest_checkpoint, step_of
from concertino_train.running.folder import TrainingFolder
from concertino_train.running.progress import Reporter
from concertino_train.running.quiet import quietly, set_quiet_environment
from concertino_train.running.ranks import anywhere, this_rank
from concertino_train.running.record import TrainingRecord
from concertino_train.running.signals import GracefulStop
from concertino_train.running.trackers import check_trackers

from .fine_tuning import fine_tune
from .progress import Evaluate, SftProgress
from .settings import SftSettings

if TYPE_CHECKING:
    from concertino_train.config.config import TrainConfig
    from concertino_train.rollouts.assignment import Assignment


@dataclass(frozen=True)
class SftResult:
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


def run_sft(
    config: TrainConfig,
    *,
    output: str | Path | None = None,
    sets: Iterable[str | Path] = (),
    resume: bool = False,
    restart: bool = False,
    force: bool = False,
    reporter: Reporter | None = None,
) -> SftResult:
    """Train the policy on what good trajectories wrote.

    Roles that get adapters of their own later share the weights that are trained here.

    Args:
        config: the training.
        output: folder of the record; `sft` in that of the settings by default.
        sets: folders to learn from; `data.sets` by default, or `set` in the folder of the settings.
        resume: continue from the newest checkpoint.
        restart: start over where a training has begun; its results are removed.
        force: resume although the settings differ.
        reporter: what people see; nothing by default.

    Raises:
        UsageError: there is nothing to learn from, or something does not fit.
        KeyboardInterrupt: a second signal.
    """
    set_quiet_environment()
    began, told, rank = time.monotonic(), reporter or Reporter(), this_rank()
    check_trackers(config.logging.trackers)
    if config.trainer.threads is not None:
        import torch

        torch.set_num_threads(config.trainer.threads)
    folder = Path(output or Path(config.trainer.output) / "sft")
    chosen = [Path(each) for each in sets] or [Path(each) for each in config.data.sets]
    conversations = _conversations(chosen or [Path(config.trainer.output) / "set"])
    with ExitStack() as stack:
        stack.enter_context(quietly())
        # Before the model is loaded: the lock of the folder is what keeps two trainings apart.
        home = TrainingFolder(folder, config, resume=resume, restart=restart, force=force, leader=rank.leads)
        stack.enter_context(home)
        loaded = _loaded(config, conversations, home.path)
        settings = sft_settings(config, home.path, resume=home.resumes, force=force)
        stop = stack.enter_context(GracefulStop(told.say if rank.leads else None))
        known = latest_checkpoint(home.checkpoints) if settings.resume else None
        after = step_of(known) if known is not None else 0
        record = stack.enter_context(TrainingRecord(config, home, told, after=after, leads=rank.leads))
        report = _Report(record, after, config.logging.every)
        tests = evaluation_assignments(config) if config.tasks.eval else []
        measure = _Measure(config, loaded, tests)
        stack.callback(measure.close)
        adapter = lora_config(config) if config.model.adapter and config.roles.policies == "shared" else None
        # A folder that holds an adapter is trained further with that one.
        fresh = adapter if not hasattr(loaded.model, "peft_config") else None
        found = fine_tune(
            settings,
            loaded.model,
            loaded.codec,
            conversations,
            adapter=fresh,
            evaluate=report.keeping(measure) if tests else None,
            on_progress=report,
            stop=_stopping(stop, rank.ranks),
            files={SETTINGS: config.text()},
        )
        stopped = stop.reason if found.step < found.steps else ""
        figures = report.finish(found.evaluations, stopped)
        result = SftResult(
            home.path,
            found.model,
            found.step,
            found.steps,
            stopped,
            found.rows,
            dict(found.dropped),
            figures,
            round(time.monotonic() - began, 3),
        )
        if rank.leads:
            home.write_result(result.to_json())
        return result


def sft_settings(config: TrainConfig, folder: Path, *, resume: bool = False, force: bool = False) -> SftSettings:
    """The settings of SFT, from those of the training."""
    trainer = config.trainer
    shared = ((SftSteps, trainer.sft), (ComputeSection, trainer))
    given = {name: getattr(section, name) for kind, section in shared for name in kind.model_fields}
    return SftSettings(
        **{**given, "precision": precision_of(config)},
        out=folder,
        save_every=trainer.sft.save_every,
        keep=trainer.keep,
        log_every=config.logging.every,
        evaluate_every=trainer.sft.eval_every or 0,
        resume=resume,
        force=force,
    )


def _conversations(sets: list[Path]) -> list[RoleConversation]:
    missing = [each for each in sets if not each.exists()]
    if missing:
        raise UsageError(
            f"{missing[0]}: there is no set of conversations; make one (concertino train collect), or name others in "
            "data.sets"
        )
    return [each for place in sets for each in read_conversations(place)]


def _loaded(config: TrainConfig, conversations: list[RoleConversation], home: Path) -> LoadedPolicy:
    """The model to train; a new one has the words of the conversations."""
    texts = (message.text for each in conversations for message in each.messages)
    loaded = load_model(config, texts)
    if loaded.made and config.model.adapter is not None:
        save_base(loaded, home)
    return loaded


def _stopping(stop: GracefulStop, ranks: int) -> Callable[[], bool]:
    """Whether any process was asked to stop."""
    everyone = anywhere(ranks)

    def asked() -> bool:
        if everyone(stop.asked):
            stop.ask("another process")
        return stop.asked

    return asked


class _Measure:
    """Rollouts of tests during SFT, as `fine_tune` wants them."""

    def __init__(self, config: TrainConfig, loaded: LoadedPolicy, tests: list[Assignment]) -> None:
        self._config, self._tests = config, tests
        self._stack = ExitStack()
        if tests:
            shared = config.roles.model_copy(update={"policies": "shared"})
            # SFT trains one set of weights, so the tests are rolled out with one policy and no adapter besides.
            plain = config.model.model_copy(update={"adapter": None})
            here = config.rollout.model_copy(update={"backend": "transformers"})  # the weights that are being trained
            bare = config.model_copy(update={"roles": shared, "model": plain, "rollout": here})
            learner = make_learner(bare, loaded)
            self._engine = make_engine(bare, learner.policies, beginning_of(loaded))
            self._stack.callback(learner.close)
            self._stack.callback(self._engine.close)

    def __call__(self, step: int) -> dict[str, float]:
        figures = figures_of_tests(self._config, self._engine, self._tests, f"{step}")
        return {f"eval/{name}": figures[name] for name in ("success", "format", "rounds", "calls", "tokens")}

    def close(self) -> None:
        self._stack.close()


class _Report:
    """Writes the figures of a fine-tuning to the record, those of evaluations among them."""

    def __init__(self, record: TrainingRecord, after: int, every: int) -> None:
        self._record, self._after, self._every = record, after, every
        self._begun = False
        self._last: dict[str, Any] = {}
        self._measured: dict[int, dict[str, float]] = {}

    def __call__(self, progress: SftProgress) -> None:
        if not self._begun:
            self._record.reporter.begin("sft", progress.steps, self._after, progress.seconds)
            self._begun = True
        figures = {
            "loss": progress.loss,
            "accuracy": progress.accuracy,
            "learning_rate": progress.learning_rate,
            "grad_norm": progress.grad_norm,
            "epoch": progress.epoch,
            "elapsed": round(progress.seconds, 3),
            "tokens_per_second": progress.tokens / progress.seconds if progress.seconds else 0.0,
        }
        self._last = {"step": progress.step, **figures}
        self._record.write(progress.step, figures | self._measured.pop(progress.step, {}))
        self._record.reporter.step(progress.step, figures)

    def keeping(self, measure: Evaluate) -> Evaluate:
        """A measure whose figures are also recorded: in the line of the step, or in a line of their own."""

        def measured(step: int) -> Mapping[str, float] | float:
            found = measure(step)
            figures = dict(found) if isinstance(found, Mapping) else {"eval": found}
            told = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
            self._record.say(f"after step {step}: {told}")
            # The figures of that step are written together with its loss, which is logged after this.
            if step % self._every == 0:
                self._measured[step] = figures
            else:
                self._record.write(step, figures)
            return found

        return measured

    def finish(self, evaluations: Mapping[int, Mapping[str, float]], stopped: str) -> dict[str, Any]:
        """The figures of the last step, with those of the last evaluation; all are drawn."""
        if stopped:
            self._record.say(f"stopped by {stopped}; the same command with --resume continues")
        self._record.draw()
        return {**self._last, **(evaluations[max(evaluations)] if evaluations else {})}
