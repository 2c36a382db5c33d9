"""Where figures go beside the metrics file: programs that draw them, by name. None is used unless asked for.

The invariant: a sink is opened before anything is loaded or paid for, so that a missing package is said at once; and
what goes wrong in one later is said once and does not end a training.
"""

from __future__ import annotations

import importlib.util
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from concertino import UsageError
from concertino.schema import near_names

logger = logging.getLogger("concertino.train")


class Sink(ABC):
    """Takes figures."""

    name: str
    broken = False

    @abstractmethod
    def __init__(self, folder: Path, project: str, run: str, settings: Mapping[str, Any]) -> None: ...

    def take(self, step: int, figures: Mapping[str, float]) -> None:
        """Take the figures of a step; a fault is logged once, and the sink is not asked again."""
        if self.broken:
            return
        try:
            self._take(step, figures)
        except Exception as error:
            self.broken = True
            logger.warning("the sink %s failed and is left out from now on: %s", self.name, error)

    @abstractmethod
    def _take(self, step: int, figures: Mapping[str, float]) -> None: ...

    def close(self) -> None:
        """Hand over what is left."""
        try:
            self._close()
        except Exception as error:
            logger.warning("the sink %s could not be closed: %s", self.name, error)

    def _close(self) -> None:  # noqa: B027
        """What closing takes; nothing by default."""


class TensorBoard(Sink):
    """Event files under `tensorboard/` of the output folder."""

    name = "tensorboard"

    def __init__(self, folder: Path, project: str, run: str, settings: Mapping[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def _take(self, step: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def _close(self) -> None:
        self._writer.close()


class _Board(Sink):
    """A package with `init`, `log` and `finish`."""

    def __init__(self, folder: Path, project: str, run: str, settings: Mapping[str, Any]) -> None:
        self._board = importlib.import_module(self.name)
        self._board.init(project=project, name=run, config=dict(settings))

    def _take(self, step: int, figures: Mapping[str, float]) -> None:
        self._board.log(dict(figures), step=step)

    def _close(self) -> None:
        self._board.finish()


class Trackio(_Board):
    """A local database of trackio."""

    name = "trackio"


class Wandb(_Board):
    """Weights & Biases; where the figures go is what its own settings say."""

    name = "wandb"


SINKS: dict[str, type[Sink]] = {kind.name: kind for kind in (TensorBoard, Trackio, Wandb)}
"""By name."""


def check_sinks(names: Sequence[str]) -> None:
    """See that sinks can be opened, without importing them.

    Raises:
        UsageError: an unknown name, with near ones; or a package is missing, with the command that installs it.
    """
    for name in names:
        if name not in SINKS:
            near = near_names(name, list(SINKS))
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(SINKS)}"
            raise UsageError(f"logging.sinks: there is no sink {name!r}; {hint}")
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"logging.sinks: {name} is not installed; pip install {name}, or leave it out")


def open_sinks(
    names: Sequence[str], folder: str | Path, *, project: str, run: str, settings: Mapping[str, Any]
) -> list[Sink]:
    """Open sinks.

    Args:
        names: of `SINKS`.
        folder: of the training.
        project, run: what they show.
        settings: of the training, for those that keep them.

    Raises:
        UsageError: as `check_sinks`.
    """
    check_sinks(names)
    return [SINKS[name](Path(folder), project, run, settings) for name in names]
