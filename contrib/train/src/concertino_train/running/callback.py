"""What stands between a trainer of transformers and the rest: figures out, and the wish to stop in.

Importing this module imports transformers. The invariant: all ranks stop behind the same optimiser step, the last one
of a step of rollouts, and a checkpoint is written there first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from .curves import plot
from .metrics import MetricsFile, read_metrics
from .monitors import Monitors
from .progress import Reporter
from .signals import GracefulStop
from .trackers import Sink

_OF_ROLES = ("loss", "grad_norm", "learning_rate", "entropy", "kl", "tokens/trained", "num_tokens")
_NOT_OURS = ("total_flos", "train_runtime", "train_samples_per_second", "train_steps_per_second", "epoch")


class Watch(TrainerCallback):
    """Writes the figures of every step, warns of collapse, and ends a training when asked to.

    Args:
        reporter: what people see.
        metrics: the file; None on ranks that do not write.
        updates: optimiser steps of a step.
        every: steps between lines of the reporter.
        stop: whether to end.
        everyone: whether something is true on any rank.
        monitors: signs of collapse.
        sinks: programs that draw.
        plot_every: steps between drawings; 0 for none.
        title: of the drawing.
        done: steps of earlier processes.
        roles: names of trainers that take turns, each in a folder of its name; none for one trainer.

    Attributes:
        warnings: all of them, as text.
        step: the last that is over.
        stopped: why the training was ended; empty if it was not.
    """

    def __init__(
        self,
        reporter: Reporter,
        metrics: MetricsFile | None,
        *,
        updates: int = 1,
        every: int = 1,
        stop: GracefulStop | None = None,
        everyone: Callable[[bool], bool] = bool,
        monitors: Monitors | None = None,
        sinks: Sequence[Sink] = (),
        plot_every: int = 0,
        title: str = "",
        done: int = 0,
        roles: Sequence[str] = (),
    ) -> None:
        self.reporter, self.metrics, self.sinks, self.monitors = reporter, metrics, list(sinks), monitors
        self.updates, self.every, self.plot_every, self.title = updates, every, plot_every, title
        self.stop = stop or GracefulStop()
        self.everyone = everyone
        self.stopped = ""
        self._roles, self._pending = tuple(roles), dict[str, Any]()
        self._decided: tuple[int, bool] = (0, False)
        self.warnings: list[str] = []
        self.step = done
        self._began, self._spent = time.monotonic(), time.process_time()

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """See `transformers.TrainerCallback`. How often is of these settings, not of those of the checkpoint."""
        state.save_steps, state.logging_steps = args.save_steps, args.logging_steps

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """See `transformers.TrainerCallback`."""
        if state.global_step % self.updates:
            return
        self.step = state.global_step // self.updates
        if state.global_step < state.max_steps and self._ends(self.step):
            control.should_save = control.should_training_stop = True

    def _ends(self, step: int) -> bool:
        """Whether the training ends behind a step: decided once, for all ranks and all trainers."""
        if self._decided[0] != step:
            self._decided = step, self.everyone(self.stop.asked)
            if self._decided[1]:
                self.stopped = self.stop.reason or "another process"
        return self._decided[1]

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **more: Any) -> None:
        """See `transformers.TrainerCallback`."""
        if self.metrics is None or not logs or "train_runtime" in logs or state.global_step % self.updates:
            return
        figures = {name: value for name, value in logs.items() if name not in _NOT_OURS and _number(value)}
        if self._roles:
            role = Path(args.output_dir).name
            self._pending |= {f"{role}/{name}" if name in _OF_ROLES else name: each for name, each in figures.items()}
            if role != self._roles[-1]:
                return
            figures, self._pending = self._pending, {}
        self._take(state.global_step // self.updates, figures, last=state.global_step >= state.max_steps)

    def _take(self, step: int, figures: dict[str, Any], last: bool) -> None:
        assert self.metrics is not None
        if step <= self.metrics.last:
            return
        now = time.monotonic()
        figures["seconds"], self._began = round(now - self._began, 3), now
        spent = time.process_time()
        figures["cpu_seconds"], self._spent = round(spent - self._spent, 3), spent
        self.metrics.write(step, figures)
        for sink in self.sinks:
            sink.take(step, figures)
        self.reporter.step(step, figures, show=step % self.every == 0 or last)
        self._worry(step, figures)
        if self.plot_every and step % self.plot_every == 0:
            self.draw()

    def _worry(self, step: int, figures: Mapping[str, float]) -> None:
        if self.monitors is None:
            return
        for warning in self.monitors.look(step, figures):
            self.warnings.append(str(warning))
            self.reporter.say(str(warning), "warning")
            if self.monitors.settings.stop:
                self.stop.ask(f"the monitor {warning.code}")

    def draw(self, *behind: Mapping[str, Any]) -> None:
        """Draw the curves beside the metrics, and what was measured behind them; a fault is told and ends nothing."""
        if self.metrics is None:
            return
        try:
            plot([*read_metrics(self.metrics.path), *behind], self.metrics.path.with_name("plot.svg"), self.title)
        except Exception as error:
            self.plot_every = 0
            self.reporter.say(f"plot.svg cannot be drawn: {error}", "warning")

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """See `transformers.TrainerCallback`."""
        if self.metrics is not None:
            self.reporter.say(f"checkpoint-{state.global_step} after step {state.global_step // self.updates}")

    # -- state ---------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """That of the monitors."""
        return {"monitors": self.monitors.dump() if self.monitors is not None else None}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was made."""
        if self.monitors is not None and state["monitors"] is not None:
            self.monitors.restore(state["monitors"])


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
