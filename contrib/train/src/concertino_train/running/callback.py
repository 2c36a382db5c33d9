"""Connects a trainer of transformers to the rest: figures go out, requests to stop come in.

Importing this module imports transformers. The invariant: all ranks stop after the same optimiser step, the last one of
a step of rollouts, and a checkpoint is written there first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from .monitors import Monitors
from .record import TrainingRecord
from .signals import GracefulStop

_OF_ROLES = ("loss", "grad_norm", "learning_rate", "entropy", "kl", "tokens/trained", "tokens/computed", "num_tokens")
_NOT_OURS = ("total_flos", "train_runtime", "train_samples_per_second", "train_steps_per_second", "epoch")


class RecordCallback(TrainerCallback):
    """Writes the figures of every step, warns of collapse, and ends a training when asked to.

    Args:
        record: where figures go.
        updates: optimiser steps of a step.
        every: steps between lines of the reporter.
        stop: whether to end.
        everyone: whether something is true on any rank.
        monitors: signs of collapse.
        plot_every: steps between drawings; 0 for none.
        done: steps of earlier processes.
        roles: names of trainers that take turns, each in a folder of its name; none for one trainer.

    Attributes:
        warnings: all of them, as text.
        step: the last that is finished.
        stopped: why the training was ended; empty if it was not.
    """

    def __init__(
        self,
        record: TrainingRecord,
        *,
        updates: int,
        every: int,
        stop: GracefulStop,
        monitors: Monitors,
        plot_every: int,
        done: int = 0,
        roles: Sequence[str] = (),
        everyone: Callable[[bool], bool] = bool,
    ) -> None:
        self.record, self.monitors, self.stop, self.everyone = record, monitors, stop, everyone
        self.updates, self.every, self.plot_every = updates, every, plot_every
        self.stopped = ""
        self._roles, self._pending = tuple(roles), dict[str, Any]()
        self._decided: tuple[int, bool] = (0, False)
        self.warnings: list[str] = []
        self.step = done
        self._began, self._spent = time.monotonic(), time.process_time()

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """See `transformers.TrainerCallback`. Intervals are those of these settings, not those of the checkpoint."""
        state.save_steps, state.logging_steps = args.save_steps, args.logging_steps

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """See `transformers.TrainerCallback`."""
        if state.global_step % self.updates:
            return
        self.step = state.global_step // self.updates
        # The last step ends the training anyway, and its weights are saved as the result.
        if state.global_step < state.max_steps and self._ends(self.step):
            control.should_save = control.should_training_stop = True

    def _ends(self, step: int) -> bool:
        """Whether the training ends after a step: decided once, for all ranks and all trainers."""
        # Trainers of several roles ask in turn, and a signal between two of them must not stop only one.
        if self._decided[0] != step:
            self._decided = step, self.everyone(self.stop.asked)
            if self._decided[1]:
                self.stopped = self.stop.reason or "another process"
        return self._decided[1]

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **more: Any) -> None:
        """See `transformers.TrainerCallback`."""
        # The summary at the end has no figures of a step; logs within a step are not ours.
        if not self.record.leads or not logs or "train_runtime" in logs or state.global_step % self.updates:
            return
        figures = {name: value for name, value in logs.items() if name not in _NOT_OURS and _is_number(value)}
        if self._roles:
            role = Path(args.output_dir).name
            self._pending |= {f"{role}/{name}" if name in _OF_ROLES else name: each for name, each in figures.items()}
            # A step is whole when the last role has logged.
            if role != self._roles[-1]:
                return
            figures, self._pending = self._pending, {}
        self._take(state.global_step // self.updates, figures, last=state.global_step >= state.max_steps)

    def _take(self, step: int, figures: dict[str, Any], last: bool) -> None:
        now, spent = time.monotonic(), time.process_time()
        figures["seconds"], figures["cpu_seconds"] = round(now - self._began, 3), round(spent - self._spent, 3)
        if not self.record.write(step, figures):
            return
        self._began, self._spent = now, spent
        self.record.reporter.step(step, figures, show=step % self.every == 0 or last)
        for warning in self.monitors.look(step, figures):
            self.warnings.append(str(warning))
            self.record.say(str(warning), "warning")
            if self.monitors.settings.stop:
                self.stop.ask(f"the monitor {warning.code}")
        if self.plot_every and step % self.plot_every == 0:
            self.record.draw()

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """See `transformers.TrainerCallback`."""
        self.record.say(f"checkpoint-{state.global_step} after step {state.global_step // self.updates}")

    # -- state ---------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """That of the monitors."""
        return {"monitors": self.monitors.dump()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was made."""
        self.monitors.restore(state["monitors"])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
