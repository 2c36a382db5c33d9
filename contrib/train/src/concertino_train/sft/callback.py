"""Figures, evaluations and checkpoints of a fine-tuning, as a callback of transformers.

Importing this module imports transformers. The invariant: the state of a checkpoint is written last, so a checkpoint
that has it is complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from concertino import UsageError
from transformers import TrainerCallback

from concertino_train.running.checkpoints import prune, read_state, write_state
from concertino_train.running.ranks import wait_for_everyone
from concertino_train.trainer.sharding import whole

from .progress import Evaluate, SftProgress
from .settings import SftSettings


class SftCallback(TrainerCallback):
    """Reports, evaluates and keeps what has to survive.

    Args:
        settings: of the fine-tuning.
        identity: equal for trainings that may resume from each other's checkpoints.
        steps: of the whole training.
        rows: conversations of one pass.

    Attributes:
        evaluate, on_progress, stop: see `fine_tune`.
        began: when this process began, by the monotonic clock.
        resumed: the step of the checkpoint that it resumed from, or 0.
        losses, evaluations: by step.
    """

    def __init__(self, settings: SftSettings, identity: str, steps: int, rows: int) -> None:
        self.settings, self.identity, self.steps, self.rows = settings, identity, steps, rows
        self.evaluate: Evaluate | None = None
        self.on_progress: Callable[[SftProgress], None] | None = None
        self.stop: Callable[[], bool] | None = None
        self.began = 0.0
        self.resumed = 0
        self.losses: dict[int, float] = {}
        self.evaluations: dict[int, dict[str, float]] = {}

    def resume_from(self, checkpoint: Path) -> None:
        """Take over the state of a checkpoint.

        Raises:
            UsageError: it was made with other data, another codec or other settings.
        """
        state = read_state(checkpoint)
        if state["identity"] != self.identity and not self.settings.force:
            raise UsageError(
                f"{checkpoint} was made with other data, another codec or other settings; continue with those, choose "
                "another folder (--output, out=…), or --force (force=True) to continue nevertheless"
            )
        self.resumed = state["optimizer_step"]
        self.losses = {int(step): loss for step, loss in state["losses"].items()}
        self.evaluations = {int(step): figures for step, figures in state["evaluations"].items()}

    def measure(self, step: int, model: Any) -> None:
        """Evaluate the model, once per step."""
        # A training that resumes at a step that was measured must not measure it twice.
        if self.evaluate is None or step in self.evaluations:
            return
        training = model.training
        model.eval()
        try:
            # Only then may each process compute as much as it needs.
            with whole(model):
                found = self.evaluate(step)
        finally:
            model.train(training)
        self.evaluations[step] = dict(found) if isinstance(found, Mapping) else {"share": float(found)}

    # -- see transformers.TrainerCallback ------------------------------------------------------------------------------

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Intervals are those of these settings, not those of the checkpoint."""
        # transformers restores intervals from the checkpoint, and settings may have changed since.
        state.save_steps, state.logging_steps = args.save_steps, args.logging_steps

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Report the figures of a step."""
        if not state.is_world_process_zero or "loss" not in (logs or {}):
            return
        step = state.global_step
        self.losses[step] = logs["loss"]
        if self.on_progress is not None:
            self.on_progress(
                SftProgress(
                    step=step,
                    steps=self.steps,
                    epoch=round(step * self.settings.batch / self.rows, 3),
                    loss=logs["loss"],
                    learning_rate=logs.get("learning_rate", 0.0),
                    grad_norm=logs.get("grad_norm", 0.0),
                    accuracy=logs.get("mean_token_accuracy", 0.0),
                    tokens=int(logs.get("num_tokens", 0)),
                    seconds=time.monotonic() - self.began,
                )
            )

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Evaluate where it is due, and stop where it is asked for."""
        every, step = self.settings.evaluate_every, state.global_step
        if (every and step % every == 0) or step >= self.steps:
            self.measure(step, model)
        if self.stop is not None and self.stop():
            # Its own checkpoint, since nothing says that the step is one at which a checkpoint is due.
            control.should_training_stop = control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Make the checkpoint complete, and remove old ones."""
        # Weights are on disk before transformers calls this, so the state is the last file of a checkpoint. Other
        # processes may still be writing theirs.
        wait_for_everyone()
        if state.is_world_process_zero:
            folder = Path(args.output_dir)
            kept = {"identity": self.identity, "losses": self.losses, "evaluations": self.evaluations}
            write_state(folder / f"checkpoint-{state.global_step}", state.global_step, kept)
            prune(folder, self.settings.keep)
