"""Experiment trackers beside the metrics file: those of accelerate, by name. None is used unless the settings ask.

The invariant: a missing package is reported before anything is loaded or paid for; a tracker that fails later is
reported once, left out from then on, and does not end the training.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from concertino import UsageError
from concertino.core.logs import logger_of

from concertino_train.settings import did_you_mean

logger = logger_of("train")

TRACKERS = ("tensorboard", "trackio", "wandb")
"""Those that `logging.trackers` may name. TensorBoard writes to `tensorboard/` in the output folder."""


def check_trackers(names: Sequence[str]) -> None:
    """Check that trackers are known and installed, without importing them.

    Raises:
        UsageError: an unknown name, with near ones; or a package is missing, with the command that installs it.
    """
    for name in names:
        if name not in TRACKERS:
            raise UsageError(f"logging.trackers: unknown tracker {name!r}; {did_you_mean(name, TRACKERS)}")
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"logging.trackers: {name} is not installed; pip install {name}, or leave it out")


class Trackers:
    """Sends figures to trackers of accelerate.

    Args:
        names: of `TRACKERS`.
        folder: of the training.
        project, run: what the trackers show.
        settings: of the training, which trackio and wandb store.

    Raises:
        UsageError: as `check_trackers`.
    """

    def __init__(
        self, names: Sequence[str], folder: Path, *, project: str, run: str, settings: Mapping[str, Any]
    ) -> None:
        check_trackers(names)
        self._waiting = list(names)
        self._active: list[Any] = []
        self._folder, self._project, self._run, self._settings = folder, project, run, dict(settings)

    def log(self, step: int, figures: Mapping[str, Any]) -> None:
        """Send the figures of a step."""
        while self._waiting:
            name = self._waiting.pop()
            self._attempt(name, partial(self._open, name))
        for tracker in list(self._active):
            if not self._attempt(tracker.name, partial(tracker.log, dict(figures), step=step)):
                self._active.remove(tracker)

    def _open(self, name: str) -> None:
        # accelerate wants its state first, which the trainer makes: so a tracker is opened at the first figures.
        makers = importlib.import_module("accelerate.tracking").LOGGER_TYPE_TO_CLASS  # it has no annotations
        if name == "tensorboard":
            tracker = makers[name](run_name=name, logging_dir=str(self._folder))
        else:
            tracker = makers[name](run_name=self._project, name=self._run, config=self._settings)
        tracker.start()
        self._active.append(tracker)

    def close(self) -> None:
        """Flush and close all trackers."""
        for tracker in self._active:
            self._attempt(tracker.name, tracker.finish)
        self._active.clear()

    def _attempt(self, name: str, work: Callable[[], object]) -> bool:
        """Whether it went well. A tracker is somebody else's program, often over a network: anything may fail."""
        try:
            work()
        except Exception as error:
            logger.warning("the tracker %s failed and is left out from now on: %s", name, error)
            return False
        return True
