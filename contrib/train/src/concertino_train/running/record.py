"""Where the figures of a training go: the metrics file, trackers, curves, and whoever watches.

The invariant: only the leading process writes, and a step is written once: figures of a step that is not later than the
last one are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from .curves import can_plot, plot
from .folder import TrainingFolder
from .metrics import MetricsFile, read_metrics
from .progress import Reporter
from .trackers import Trackers

if TYPE_CHECKING:
    from concertino_train.config.config import TrainConfig


class TrainingRecord:
    """The record of one training.

    Args:
        config: of the training.
        home: its folder.
        reporter: what people see.
        after: steps of earlier processes.
        leads: whether this process writes.
    """

    def __init__(
        self, config: TrainConfig, home: TrainingFolder, reporter: Reporter, *, after: int = 0, leads: bool = True
    ) -> None:
        self.home, self.reporter, self.leads, self.title = home, reporter, leads, config.name
        if not leads:
            return
        self.metrics = MetricsFile(home.metrics, after if home.resumes else None)
        own = config.logging
        self._trackers = Trackers(
            own.trackers, home.path, project=own.project, run=own.run or config.name, settings=config.resolved()
        )
        self._draws = can_plot()
        if not self._draws:
            reporter.say("plot.svg is not drawn: matplotlib is missing (pip install matplotlib)", "warning")

    def write(self, step: int, figures: Mapping[str, Any]) -> bool:
        """Write the figures of a step, and say whether they were written."""
        if not self.leads or step <= self.metrics.last:
            return False
        self.metrics.write(step, figures)
        self._trackers.log(step, figures)
        return True

    def say(self, text: str, kind: str = "note") -> None:
        """Tell people, from the process that writes."""
        if self.leads:
            self.reporter.say(text, kind)

    def draw(self, *more: Mapping[str, Any]) -> None:
        """Draw the curves beside the metrics, with further lines; a failure is reported and ends nothing."""
        if not self.leads or not self._draws:
            return
        try:
            plot([*read_metrics(self.metrics.path), *more], self.home.plot, self.title)
        # A picture is not worth a training.
        except Exception as error:
            self._draws = False
            self.reporter.say(f"plot.svg cannot be drawn: {error}", "warning")

    def close(self) -> None:
        """Release file and trackers."""
        self.reporter.end()
        if self.leads:
            self._trackers.close()
            self.metrics.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
