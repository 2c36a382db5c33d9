"""The command that starts a training on several processes or machines."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from concertino import UsageError

if TYPE_CHECKING:
    from concertino_train.config.config import TrainConfig


def launch_command(config: TrainConfig, command: str, arguments: Sequence[str]) -> list[str]:
    """`accelerate launch ... -m concertino train rl ...`; on several processors, `torchrun ...`.

    Args:
        config: says how many processes and machines, and which settings of accelerate.
        command: `rl` or `sft`.
        arguments: of the command line, without the command.

    Returns:
        Its words. On several machines it is run on each, with `$RANK` and `$MASTER` set there.
    """
    own = config.trainer
    work = ["-m", "concertino", "train", command, *arguments]
    if own.device == "cpu" and own.processes * own.nodes > 1 and not own.accelerate:
        # On CPUs, accelerate starts one process, whatever number it is given.
        return ["torchrun", "--nproc-per-node", str(own.processes), *_nodes(own.nodes), *work]
    words = ["accelerate", "launch"]
    if own.accelerate:
        words += ["--config_file", accelerate_file(own.accelerate)]
    words += ["--num_processes", str(own.processes * own.nodes), "--mixed_precision", _mixed(config)]
    if own.device == "cpu":
        words += ["--cpu"]
    elif own.processes * own.nodes > 1:
        words += ["--multi_gpu"]
    if own.nodes > 1:
        words += [
            "--num_machines",
            str(own.nodes),
            "--machine_rank",
            "$RANK",
            "--main_process_ip",
            "$MASTER",
            "--main_process_port",
            "29500",
            "--rdzv_backend",
            "static",
        ]
    else:
        words += ["--num_machines", "1"]
    return [*words, *work]


def _nodes(count: int) -> list[str]:
    """Words for torch's launcher about machines."""
    if count == 1:
        return []
    return ["--nnodes", str(count), "--node-rank", "$RANK", "--master-addr", "$MASTER", "--master-port", "29500"]


def accelerate_file(name: str) -> str:
    """A file of accelerate: the one that is named, or a preset that comes with TRL.

    Raises:
        UsageError: there is no preset of that name.
    """
    if name.endswith((".yaml", ".yml", ".json")) or Path(name).is_file():
        return name
    presets = Path(str(files("trl"))) / "accelerate_configs"
    if not (preset := presets / f"{name}.yaml").is_file():
        known = ", ".join(sorted(each.stem for each in presets.glob("*.yaml")))
        raise UsageError(f"trainer.accelerate={name}: expected a file of accelerate, or a preset of TRL: {known}")
    return str(preset)


def launch_text(words: Sequence[str]) -> str:
    """The command as a shell takes it; `$RANK` and `$MASTER` stay variables."""
    return " ".join(word if word.startswith("$") else shlex.quote(word) for word in words)


def _mixed(config: TrainConfig) -> str:
    names = {"bfloat16": "bf16", "float16": "fp16"}
    if config.trainer.precision == "auto":
        return "no" if config.trainer.device == "cpu" else "bf16"
    return names.get(config.trainer.precision, "no")
