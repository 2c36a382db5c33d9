"""What is told, measured and kept while a teaching goes on.

The invariant: a checkpoint's own file is written last, so that a checkpoint that has it is whole.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from concertino import UsageError

from concertino_train.running.checkpoints import prune

from .checkpoints import STATE, is_whole
from .progress import Evaluate, SftProgress
from .settings import SftSettings


class Watch:
    """What is told, measured and kept while it goes on."""

    def __init__(self, settings: SftSettings, identity: str, steps: int, rows: int) -> None:
        self.settings, self.identity, self.steps, self.rows = settings, identity, steps, rows
        self.evaluate: Evaluate | None = None
        self.on_progress: Callable[[SftProgress], None] | None = None
        self.stop: Callable[[], bool] | None = None
        self.began = 0.0
        self.resumed = 0
        self.losses: dict[int, float] = {}
        self.evaluations: dict[int, dict[str, float]] = {}

    def take_up(self, checkpoint: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            UsageError: it was made with other data, another codec or other settings.
        """
        state = json.loads((checkpoint / STATE).read_text("utf-8"))
        if state["identity"] != self.identity and not self.settings.force:
            raise UsageError(
                f"{checkpoint} was made with other data, another codec or other settings; go on with those, choose "
                "another folder (--output, out=…), or --force (force=True) to go on nevertheless"
            )
        self.resumed = state["step"]
        self.losses = {int(step): loss for step, loss in state["losses"].items()}
        self.evaluations = {int(step): figures for step, figures in state["evaluations"].items()}

    def logged(self, step: int, logs: Mapping[str, float]) -> None:
        if "loss" not in logs:
            return
        self.losses[step] = logs["loss"]
        if self.on_progress is not None:
            self.on_progress(
                SftProgress(
                    step,
                    self.steps,
                    round(step * self.settings.batch / self.rows, 3),
                    logs["loss"],
                    logs.get("learning_rate", 0.0),
                    logs.get("grad_norm", 0.0),
                    logs.get("mean_token_accuracy", 0.0),
                    int(logs.get("num_tokens", 0)),
                    time.monotonic() - self.began,
                )
            )

    def measured(self, step: int, model: Any) -> None:
        """Let the model be evaluated, once per step."""
        if self.evaluate is None or step in self.evaluations:
            return
        training = model.training
        model.eval()
        try:
            found = self.evaluate(step)
        finally:
            model.train(training)
        self.evaluations[step] = dict(found) if isinstance(found, Mapping) else {"share": float(found)}

    def saved(self, folder: Path, step: int) -> None:
        """Make a checkpoint whole."""
        state = {
            "identity": self.identity,
            "step": step,
            "losses": self.losses,
            "evaluations": self.evaluations,
        }
        beside = folder / f".{STATE}"
        beside.write_text(json.dumps(state), encoding="utf-8")
        beside.replace(folder / STATE)
        prune(folder.parent, self.settings.keep, STATE, is_whole)

    def finish(self, trainer: Any) -> None:
        """The last evaluation, where there was no step to end with it."""
        self.measured(trainer.state.global_step, trainer.model)

    def callback(self) -> Any:
        """As transformers wants it."""
        from transformers import TrainerCallback

        watch = self

        class Watching(TrainerCallback):
            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                # How often is of these settings, not of those of the checkpoint.
                state.save_steps, state.logging_steps = args.save_steps, args.logging_steps

            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
                if state.is_world_process_zero:
                    watch.logged(state.global_step, logs or {})

            def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
                every, step = watch.settings.evaluate_every, state.global_step
                if (every and step % every == 0) or step >= watch.steps:
                    watch.measured(step, model)
                if watch.stop is not None and watch.stop():
                    control.should_training_stop = control.should_save = True

            def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.is_world_process_zero:
                    folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
                    watch.saved(folder, state.global_step)

        return Watching()
