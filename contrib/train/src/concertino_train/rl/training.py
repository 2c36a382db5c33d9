"""Reinforcement learning, put together: settings in, a trained model and its record out.

    result = run_rl(load_config("paramanager/toy", ["model.path=out/sft/model"]))

Pool, tasks and strategy make questions; the engine rolls them out with the policy; rewards and groups make batches; the
trainer updates the weights; `running` keeps the record. The invariants: whatever can be known to be wrong is said
before a weight is loaded; the first batch is audited before the first update; and a training that was stopped, or that
crashed after a checkpoint, resumes as if nothing had happened.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import UsageError

from concertino_train.audit.batch import AuditRow
from concertino_train.audit.checks import audit
from concertino_train.config.named import make_reward
from concertino_train.elsewhere import check_elsewhere, make_place
from concertino_train.factories.learners import check_server, make_engine, make_learner, without_dropout
from concertino_train.factories.models import beginning_of, first_texts, load_model, precision_of
from concertino_train.factories.questions import Questions, evaluation_assignments
from concertino_train.rewards.reward import Reward
from concertino_train.rewards.term import UnpricedError
from concertino_train.running.figures import over_ranks
from concertino_train.running.folder import TrainingFolder
from concertino_train.running.metrics import read_metrics
from concertino_train.running.monitors import Monitors
from concertino_train.running.progress import Reporter
from concertino_train.running.quiet import quietly, set_quiet_environment
from concertino_train.running.ranks import Rank, anywhere, gathered, this_rank
from concertino_train.running.record import TrainingRecord
from concertino_train.running.signals import GracefulStop
from concertino_train.running.traces import TraceWriter
from concertino_train.running.trackers import check_trackers
from concertino_train.weight_storage import room_on

if TYPE_CHECKING:
    from concertino_train.config.config import TrainConfig
    from concertino_train.factories.learners import Learner
    from concertino_train.rollouts.batches import Batch
    from concertino_train.running.callback import RecordCallback
    from concertino_train.trainer.algorithm import Algorithm

    from .steps import Compared, StepCollector

_AUDITED = 100
"""Groups of the first batch that are looked at."""


@dataclass(frozen=True)
class RlResult:
    """The result of a training.

    Attributes:
        folder: of its record.
        model: folder of the weights, the tokenizer and what is needed to use them; None where it was stopped.
        checkpoint: the newest one; None where there is none, or one for each role.
        step: the last that is over.
        steps: that there were to be.
        stopped: why it ended before; empty if it did not.
        figures: of the last step; with `eval/...` of the trained weights, where there are tests.
        warnings: of the monitors.
        seconds: of this process, since it was called.
        cpu_seconds: likewise, on the processors of this machine.
    """

    folder: Path
    model: Path | None
    checkpoint: Path | None
    step: int
    steps: int
    stopped: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {**asdict(self), "warnings": list(self.warnings)}
        return {name: str(value) if isinstance(value, Path) else value for name, value in data.items()}


def run_rl(
    config: TrainConfig,
    *,
    output: str | Path | None = None,
    resume: bool = False,
    restart: bool = False,
    force: bool = False,
    reporter: Reporter | None = None,
) -> RlResult:
    """Train a policy by reinforcement learning.

    Args:
        config: the training.
        output: folder; that of the settings by default.
        resume: continue from the newest checkpoint of the folder; without one, begin.
        restart: start over where a training has begun; its results are removed.
        force: train although the audit fails, or resume although the settings differ.
        reporter: what people see; nothing by default.

    Returns:
        The result, also of a training that was asked to stop.

    Raises:
        UsageError: something is wrong with the settings or the folder; nothing was trained.
        AuditFailed: the first batch should not be trained on; nothing was trained.
        KeyboardInterrupt: a second signal.
    """
    set_quiet_environment()
    began, told, rank = (time.monotonic(), time.process_time()), reporter or Reporter(), this_rank()
    check_rl(config)
    questions = Questions(config, rank=rank.rank, ranks=rank.ranks)
    reward = make_reward(config.reward)
    with ExitStack() as stack:
        stack.enter_context(quietly())
        home = TrainingFolder(
            output or config.trainer.output, config, resume=resume, restart=restart, force=force, leader=rank.leads
        )
        stack.enter_context(home)
        work = _RlTraining(config, home, rank, told, resume=resume, force=force)
        # Registered before anything is loaded, so that an error while loading closes what there is.
        stack.callback(work.close)
        stop = stack.enter_context(GracefulStop(told.say if rank.leads else None))
        stack.enter_context(room_on(home.path, "continue: the same command with --resume"))
        work.prepare(questions, reward, stop)
        stack.callback(told.end)
        work.train()
        return work.finish(time.monotonic() - began[0], time.process_time() - began[1])


def check_rl(config: TrainConfig) -> None:
    """See what can be known to be wrong before anything is loaded.

    Raises:
        UsageError: a tracker is missing; groups are too small, or all rollouts of one would be the same; or no server
            can sample for so many processes.
    """
    check_trackers(config.logging.trackers)
    check_elsewhere(config)
    check_server(config, this_rank().ranks)
    if config.rollout.group_size < 2:
        raise UsageError(
            f"rollout.group_size={config.rollout.group_size}: a group of one has nothing to compare with; "
            "expected 2 or more"
        )
    if not config.rollout.temperature:
        raise UsageError("rollout.temperature=0: all rollouts of a question would be the same; expected above 0")
    if config.algorithm.advantages.std == "batch" and this_rank().ranks > 1:
        raise UsageError(
            "algorithm.advantages.std=batch with several processes: each sees its own part of the batch only; take "
            "group or none, or train in one process"
        )
    if config.trainer.rl.max_staleness and config.algorithm.sampling.enabled:
        raise UsageError(
            "trainer.rl.max_staleness with algorithm.sampling.enabled: dynamic sampling decides within a step what "
            "else is asked, so nothing can be asked ahead; leave one out"
        )
    if config.trainer.rl.max_staleness and config.rollout.server.sleep:
        raise UsageError(
            "trainer.rl.max_staleness with rollout.server.sleep: the server samples while the model is updated, so it "
            "cannot sleep then; leave one out"
        )
    if config.trainer.rl.eval_every is not None and not config.tasks.eval:
        raise UsageError("trainer.rl.eval_every is given, and tasks.eval has no tasks")


def algorithm_of(config: TrainConfig) -> Algorithm:
    """The settings of the trainer, from those of the training."""
    from concertino_train.config.learning import ComputeSection, PolicyUpdate, RlSteps
    from concertino_train.trainer.algorithm import Algorithm

    shared = ((PolicyUpdate, config.algorithm), (RlSteps, config.trainer.rl), (ComputeSection, config.trainer))
    given = {name: getattr(section, name) for kind, section in shared for name in kind.model_fields}
    given["precision"] = precision_of(config)
    differs = config.rollout.backend == "vllm" or config.trainer.rl.max_staleness > 0
    if given["correction"] == "auto" and differs and given["old"] == "recomputed":
        given["correction"] = "token_truncate"
    return Algorithm(**given, temperature=config.rollout.temperature, group_size=config.rollout.group_size)


class _RlTraining:
    """One process of a training, from its folder to its result."""

    def __init__(
        self, config: TrainConfig, home: TrainingFolder, rank: Rank, told: Reporter, *, resume: bool, force: bool
    ) -> None:
        self.config, self.home, self.rank, self.told = config, home, rank, told
        self.resume, self.force = resume, force
        self.algorithm = algorithm_of(config)
        self.everyone: Callable[[bool], bool] = bool
        self._closing = ExitStack()

    def prepare(self, questions: Questions, reward: Reward, stop: GracefulStop) -> None:
        """Load the policy, and make engine, collector and trainer."""
        from .steps import StepCollector

        config = self.config
        if config.trainer.threads is not None:
            import torch

            torch.set_num_threads(config.trainer.threads)
        everybodys = Questions(config, questions.tasks)  # a new tokenizer is the same on all ranks
        texts = first_texts(everybodys) if not config.model.path else ()
        loaded = load_model(config, texts)
        self.beginning = beginning_of(loaded)
        self.learner: Learner = make_learner(config, loaded, self.home.path)
        # Ratios of new to old probabilities would be noise; SFT may have trained the same adapters with dropout.
        without_dropout(self.learner.model)
        journals = self.home.journals / f"rank-{self.rank.rank}"
        if not config.trainer.rl.max_staleness:
            # What a process had begun that is gone is asked again, by the weights of now.
            shutil.rmtree(journals, ignore_errors=True)
        place = make_place(config, self.learner.codec, ["train", *(["eval"] if config.tasks.eval else [])], journals)
        self.engine = make_engine(config, self.learner.policies, self.beginning, place)
        self._closing.callback(self.learner.close)
        self._closing.callback(self.engine.close)
        # A checkpoint may lie within the updates of a step; that step is then the one that is resumed.
        self.after = self._newest() // self.algorithm.updates if self.resume else 0
        self._say_what_it_begins_with()
        # Each rank measures its share, and figures are put together over ranks.
        tests = evaluation_assignments(config)[self.rank.rank :: self.rank.ranks] if config.tasks.eval else []
        traces = TraceWriter(self.home.traces, config.logging.traces) if self.rank.leads else None
        self.collector: StepCollector = StepCollector(
            config,
            self.engine,
            questions,
            reward,
            traces=traces,
            tests=tests,
            journals=journals,
            before=self.learner.refresh,
            # A resumed training was audited at its beginning, and its first batch now is a later one.
            first=None if self.after else self._audit,
        )
        self.watch = self._make_callback(stop)
        self.trainer = self._make_trainer()

    def _say_what_it_begins_with(self) -> None:
        if not self.rank.leads:
            return
        if self.after:
            self.told.say(f"resumes from {self.home.checkpoints} after step {self.after}")
            return
        if self.home.resumes:
            self.told.say(f"{self.home.checkpoints} has no complete checkpoint: the training starts over", "warning")
        if not self.config.model.path:
            unfinished = self.home.path.parent / "sft" / "checkpoints"
            hint = "finish it (concertino train sft --resume)" if unfinished.is_dir() else "concertino train sft"
            self.told.say(f"starts with untrained weights; run SFT first: {hint}", "warning")

    def _make_callback(self, stop: GracefulStop) -> RecordCallback:
        from concertino_train.running.callback import RecordCallback

        config = self.config
        self.record = TrainingRecord(config, self.home, self.told, after=self.after, leads=self.rank.leads)
        self._closing.callback(self.record.close)
        return RecordCallback(
            self.record,
            updates=self.algorithm.updates,
            every=config.logging.every,
            stop=stop,
            monitors=Monitors(config.logging.monitors),
            plot_every=config.logging.plot_every,
            done=self.after,
            roles=tuple(self.learner.models),
        )

    def _newest(self) -> int:
        """The optimiser step of the newest checkpoint that all policies have; 0 without one."""
        from concertino_train.running.checkpoints import complete_checkpoints, step_of

        folders = [self.home.checkpoints / role for role in self.learner.models] or [self.home.checkpoints]
        numbers = [{step_of(each) for each in complete_checkpoints(folder)} for folder in folders]
        return max(set.intersection(*numbers), default=0)

    def _make_trainer(self) -> Any:
        from concertino_train.trainer.grpo import OrchestratorGRPOTrainer
        from concertino_train.trainer.role_trainers import RoleTrainers

        config, learner = self.config, self.learner
        identity = {
            "settings": config.id,
            "pool": self.collector.questions.pool.plain.id,
            "tokenizer": learner.codec.fingerprint,
            "first weights": self.beginning,
        }
        common: dict[str, Any] = {
            "codec": learner.codec,
            "folder": self.home.checkpoints,
            "tokenizer": learner.codec.tokenizer,
            "parts": {"collector": self.collector, "watch": self.watch},
            "identity": identity,
            "accept_changed": tuple(identity) if self.force else (),
            "save_every": config.trainer.rl.save_every,
            # One more where roles have models of their own: a crash between two roles leaves them at different steps.
            "keep": config.trainer.keep and config.trainer.keep + bool(learner.models),
            "callbacks": [self.watch],
            "hear_drift": self.collector.hear_drift,
        }
        beats = range(self.algorithm.questions_per_step)
        if learner.models:
            several = RoleTrainers(learner.models, self.algorithm, self.collector, beats, **common)
            # `anywhere` makes the ranks talk, which they can once the trainer has made accelerate known to them.
            self.everyone = self.watch.everyone = anywhere(self.rank.ranks)
            return several
        trainer = OrchestratorGRPOTrainer(
            learner.model, self.algorithm, self.collector, beats, roles=learner.adapters, **common
        )
        self.everyone = self.watch.everyone = anywhere(self.rank.ranks)
        return trainer

    # -- before the first update ---------------------------------------------------------------------------------------

    def _audit(self, batch: Batch, compared: Compared) -> None:
        """Refuse a first batch that should not be trained on."""
        filters = self.config.algorithm.filters
        # A later sequence of a rollout has a prompt of its own; whole rollouts are compared from their first one.
        whole, firsts = self.config.algorithm.grouping == "trajectory", dict[int, str]()
        rows = [
            AuditRow(
                row.key,
                firsts.setdefault(row.rollout, row.digest) if whole else row.digest,
                row.mask,
                [credit * on for on in row.mask],
            )
            for row, credit in zip(batch.rows, batch.credit.tolist(), strict=True)
        ]
        # An audit of everything would hold up the first step, and a fault of the settings shows in any hundred groups.
        some = dict(list(compared.items())[:_AUDITED])
        force = self.force or self.config.trainer.rl.audit == "tell"
        report = audit(some, self.collector.reward, rows=rows, filters=filters if filters.any else None)
        if self.rank.leads:
            self.home.audit.write_text(json.dumps(report.to_json(), indent=2, ensure_ascii=False), encoding="utf-8")
            for finding in report.findings:
                if finding.level != "note":
                    kind = "warning" if finding.level == "warn" or force else "note"
                    self.told.say(f"audit, {finding.code}: {finding.seen}. {finding.change}", kind)
        # All ranks have to hear of it: one that went on alone would wait for the others without end.
        if self.everyone(not report.ok):
            report.refuse(force=force)
            if not force:
                raise UsageError("the audit failed on another rank; see its output")

    # -- training ------------------------------------------------------------------------------------------------------

    def train(self) -> None:
        """Update until all steps are over, or somebody asks for the end."""
        self.told.begin("rl", self.algorithm.steps, self.after)
        resume = self.after > 0
        try:
            if self.learner.models:
                self.trainer.train(resume=resume)
            else:
                self.trainer.train(resume_from_checkpoint=True if resume else None)
        except UnpricedError as error:
            raise UsageError(f"{error}; give model.prices, or prices in the pool") from error

    def _whole_weights(self) -> AbstractContextManager[None]:
        """Each process has all weights; those of roles with a model each are never sharded."""
        return nullcontext() if self.learner.models else self.trainer.whole_weights()

    def finish(self, seconds: float, cpu_seconds: float) -> RlResult:
        """Write the result."""
        watch, stopped = self.watch, self.watch.stopped
        figures: dict[str, Any] = {}
        if not stopped and self.config.tasks.eval:
            with self._whole_weights():
                self.learner.refresh(self.algorithm.steps + 1)
                measured = self.collector.measure()
            figures = over_ranks(gathered(measured) if self.rank.ranks > 1 else [measured])
        model = None if stopped else self.home.model
        if model is not None:
            self.learner.save(model, self.config)
        newest = self._newest()
        checkpoint = self.home.checkpoints / f"checkpoint-{newest}" if newest and not self.learner.models else None
        if self.rank.leads and not stopped:
            shutil.rmtree(self.home.journals, ignore_errors=True)
        if self.rank.leads:
            self.record.draw(*([{"step": watch.step + 1, **figures}] if figures else []))
            lines = list(read_metrics(self.home.metrics))
            figures = {**(lines[-1] if lines else {}), **figures}
            if stopped:
                self.told.say(f"stopped by {stopped} after step {watch.step}; the same command with --resume continues")
        result = RlResult(
            self.home.path,
            model,
            checkpoint,
            watch.step,
            self.algorithm.steps,
            stopped,
            figures,
            tuple(watch.warnings),
            round(seconds, 3),
            round(cpu_seconds, 3),
        )
        if self.rank.leads:
            self.home.write_result(result.to_json())
        return result

    def close(self) -> None:
        """Release what is held."""
        self._closing.close()
