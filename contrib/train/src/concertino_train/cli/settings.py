"""From a command line to a training: its settings, its folders, its reporter."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from concertino import UsageError
from concertino.cli.terminal import say, say_json_text

from concertino_train.config.config import TrainConfig, load_config
from concertino_train.config.reading import read_settings
from concertino_train.running.progress import Reporter, reporter
from concertino_train.running.ranks import this_rank

from .options import TrainingOptions


def settings(given: TrainingOptions) -> TrainConfig:
    """The training that a command line names.

    Raises:
        UsageError: as `load_config`.
    """
    config = load_config(given.source, given.overrides)
    if given.output is None:
        return config
    trainer = config.trainer.model_copy(update={"output": str(given.output)})
    return config.model_copy(update={"trainer": trainer})


def taught(config: TrainConfig, overrides: Sequence[str]) -> tuple[TrainConfig, str]:
    """The training as it begins behind supervised learning in the same output, and a sentence where that changes it.

    Weights that the command line names (`model.path=...`) are begun with, whatever was taught.

    Raises:
        UsageError: what was taught is another model than the settings name.
    """
    model = Path(config.trainer.output) / "sft" / "model"
    if names_path(overrides) or config.model.start != "auto" or not (model / "training.yaml").is_file():
        return config, f"starts from {config.model.path}" if config.model.path else ""
    _same_model(load_config(model / "training.yaml", check=False, trusted=True), config, model)
    changed = config.model.model_copy(update={"path": str(model)})
    return config.model_copy(update={"model": changed}), f"starts from {model} (model.start=given ignores it)"


def names_path(overrides: Sequence[str]) -> bool:
    """Whether the command line itself names weights, as `model.path=FOLDER` or `model={path: FOLDER}`."""
    model = read_settings(None, overrides).data.get("model")
    return isinstance(model, Mapping) and "path" in model


def _same_model(before: TrainConfig, now: TrainConfig, taught: Path) -> None:
    """Refuse what was taught with the settings of another training, whose output is the same by chance."""
    was, wanted = before.model, now.model
    if not wanted.path and was.path:
        return  # the command line of the teaching named it
    if os.path.normpath(was.path) != os.path.normpath(wanted.path):
        told = f"model.path: {was.path or None!r}, now {wanted.path!r}"
    else:
        sizes = [each.model_dump() if each is not None else {} for each in (was.new, wanted.new)]
        keys = [key for key in (*sizes[0], *sizes[1]) if sizes[0].get(key) != sizes[1].get(key)]
        told = ", ".join(
            f"model.new.{key}: {sizes[0].get(key)!r}, now {sizes[1].get(key)!r}" for key in dict.fromkeys(keys)
        )
    if told:
        raise UsageError(
            f"{taught} was taught from another model ({told}); choose another folder (--output), begin with the model "
            f"of the settings (model.start=given), or with what was taught nevertheless (model.path={taught})"
        )


def teller(given: TrainingOptions) -> Reporter:
    """The reporter, which writes to stderr; a silent one on ranks that do not lead."""
    if not this_rank().leads:
        return Reporter()
    view = "json" if given.as_json else {None: "auto", True: "bar", False: "plain"}[given.live]
    return reporter(view, partial(say_json_text if view == "json" else say, error=True))


def write_json(value: Any) -> None:
    """Print one JSON value, from the rank that leads."""
    if this_rank().leads:
        say_json_text(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def write(*lines: str) -> None:
    """Print lines, from the rank that leads."""
    if this_rank().leads:
        for line in lines:
            say(line)
