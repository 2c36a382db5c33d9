"""`--dry-run`: the settings in full, what they would take, and the command for several processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from concertino import UsageError

from concertino_train.config.config import TrainConfig
from concertino_train.factories.learners import check_server
from concertino_train.running.launch import launch_command, launch_text

from .estimate import estimate
from .options import TrainingOptions
from .settings import write, write_json


def dry_run(config: TrainConfig, command: str, given: TrainingOptions, note: str = "") -> None:
    """Tell what a command would do.

    Args:
        config: the training.
        command: `rl`, `sft` or `eval`.
        given: the command line.
        note: what it begins with.
    """
    found = estimate(config, command, measure=True, rate=given.tflops and given.tflops * 1e12)
    words = launch_command(
        config, command, ["--config", given.source, "--output", config.trainer.output, *given.overrides]
    )
    refusal = _refusal(config, command)
    if given.as_json:
        data: dict[str, Any] = {"config": config.resolved(), "id": config.id, "estimate": found.to_json()}
        write_json({**data, "note": note, "launch": launch_text(words), "refused": refusal})
        return
    write(config.text().rstrip(), "", f"id           {config.id}", *([f"model        {note}"] if note else []))
    write(*found.lines())
    if refusal:
        write(f"refused      {refusal}")
    write(f"output       {Path(config.trainer.output) / command}", f"launch       {launch_text(words)}")


def _refusal(config: TrainConfig, command: str) -> str:
    """Why the launch command would be refused as the settings are; "" if it would not be."""
    try:
        if command == "rl":
            check_server(config, config.trainer.processes * config.trainer.nodes)
    except UsageError as error:
        return str(error)
    return ""
