"""From a command line to a training: its settings, its folders, who tells what is going on."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from concertino_train.config import TrainConfig, load_config
from concertino_train.running import Reporter, reporter, this_rank


def settings(source: str, overrides: Sequence[str], output: Path | None) -> TrainConfig:
    """The training that a command line names.

    Raises:
        UsageError: as `load_config`.
    """
    config = load_config(source, overrides)
    if output is None:
        return config
    trainer = config.trainer.model_copy(update={"output": str(output)})
    return config.model_copy(update={"trainer": trainer})


def taught(config: TrainConfig) -> tuple[TrainConfig, str]:
    """The training as it begins behind supervised learning in the same output, and a sentence where that changes it."""
    model = Path(config.trainer.output) / "sft" / "model"
    if config.model.start != "auto" or not (model / "training.yaml").is_file():
        return config, ""
    changed = config.model.model_copy(update={"path": str(model)})
    return config.model_copy(update={"model": changed}), f"begins with {model} (model.start=given begins anew)"


def teller(as_json: bool, live: bool | None) -> Reporter:
    """Who tells what is going on, on stderr; nobody on ranks that do not lead."""
    if not this_rank().leads:
        return Reporter()
    view = "json" if as_json else {None: "auto", True: "rich", False: "plain"}[live]
    return reporter(view, lambda line: click.echo(line, err=True))


def write_json(value: Any) -> None:
    """Print one JSON value, from the rank that leads."""
    if this_rank().leads:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def write(*lines: str) -> None:
    """Print lines, from the rank that leads."""
    if this_rank().leads:
        for line in lines:
            click.echo(line)


def quiet() -> None:
    """An environment in which nothing is sent, and libraries do not talk over ours."""
    from concertino_train.rl import QUIET

    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
