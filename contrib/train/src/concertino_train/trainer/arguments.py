"""The settings of the algorithm as TRL's arguments, by an explicit table."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from concertino import UsageError
from trl.trainer.grpo_config import GRPOConfig

from concertino_train.device import computing_precision, optimizer_argument

from .algorithm import Algorithm
from .contract import versions

# Releases of TRL differ in the name.
_CHECKPOINTING = (
    "activation_checkpointing" if hasattr(GRPOConfig, "activation_checkpointing") else "gradient_checkpointing"
)


def grpo_arguments(algorithm: Algorithm, folder: Path | str, *, save_every: int = 0) -> GRPOConfig:
    """The arguments of a training.

    Args:
        algorithm: its settings.
        folder: for checkpoints.
        save_every: steps of rollouts between checkpoints; 0 for none.

    Raises:
        UsageError: the installed TRL lacks an argument, or the device does not exist.
    """
    table = {**_loss(algorithm), **_schedule(algorithm), **_machine(algorithm)}
    table |= {
        "output_dir": str(folder),
        "save_strategy": "steps" if save_every else "no",
        # TRL counts optimiser steps, and settings count steps of rollouts.
        "save_steps": max(1, save_every) * algorithm.updates,
        "logging_strategy": "steps",
        "logging_steps": algorithm.updates,
        "report_to": "none",
        "disable_tqdm": True,
        "eval_strategy": "no",
        # TRL's table of completions ends the run where arguments differ in type; `running.traces` writes ours.
        "log_completions": False,
        "remove_unused_columns": False,
    }
    missing = sorted(set(table) - {field.name for field in fields(GRPOConfig)})
    if missing:
        raise UsageError(f"this trl has no arguments {', '.join(missing)}; {versions()}")
    return GRPOConfig(**table)


def _loss(algorithm: Algorithm) -> dict[str, Any]:
    return {
        "loss_type": algorithm.loss,
        # ParaManager Eq. 20 multiplies over the row; `sequence` takes the root of that by its length (GSPO).
        "importance_sampling_level": algorithm.ratio,
        # ParaManager Eq. 22 has one width for both sides; DAPO section 3.1 widens the upper one.
        "epsilon": algorithm.clip_low,
        "epsilon_high": algorithm.clip_high,
        "beta": algorithm.kl,
        "use_bias_correction_kl": False,  # its default is True, and would change the gradient of the KL term
        # Only the denominator of Dr. GRPO reads it: what is sampled is limited by `TokenLimits`.
        "max_completion_length": algorithm.row_tokens or 1,
        "temperature": algorithm.temperature,
        # Dropout would be noise in the ratio of new to old probabilities.
        "disable_dropout": True,
        # It would give gradients to rows that are not trained.
        "router_aux_loss_coef": 0.0,
    }


def _schedule(algorithm: Algorithm) -> dict[str, Any]:
    # The plain constant schedule ignores a warm-up.
    constant = "constant_with_warmup" if algorithm.warmup else "constant"
    return {
        "max_steps": algorithm.optimizer_steps,
        "steps_per_generation": algorithm.steps_per_generation,
        "num_iterations": algorithm.iterations,
        # TRL's data loader is only a clock here: one beat for each optimiser step, whatever the rows are.
        "num_generations": algorithm.group_size,
        "per_device_train_batch_size": algorithm.group_size,
        "gradient_accumulation_steps": 1,
        # The order of questions is TaskStream's; the rows here are empty.
        "shuffle_dataset": False,
        "learning_rate": algorithm.learning_rate,
        "lr_scheduler_type": constant if algorithm.schedule == "constant" else algorithm.schedule,
        "warmup_steps": algorithm.warmup,
        "weight_decay": algorithm.weight_decay,
        "max_grad_norm": algorithm.max_grad_norm,
        "seed": algorithm.seed,
    }


def _machine(algorithm: Algorithm) -> dict[str, Any]:
    cuda = torch.cuda.is_available()
    if algorithm.device == "cuda" and not cuda:
        raise UsageError("Algorithm(device='cuda'): torch sees no CUDA device here; expected one, or device='auto'")
    accelerator = torch.accelerator.is_available() if hasattr(torch, "accelerator") else cuda
    on_cpu = algorithm.device == "cpu" or not accelerator
    precision = computing_precision(algorithm.precision, on_cpu=on_cpu)
    return {
        "use_cpu": on_cpu,
        **optimizer_argument(algorithm.optimizer, sharded=algorithm.sharding == "full"),
        "bf16": precision == "bfloat16",
        "fp16": precision == "float16",
        _CHECKPOINTING: algorithm.gradient_checkpointing,
        # No tensor of a batch comes from the data loader.
        "dataloader_pin_memory": False,
        # All weights take part in every averaged pass (`Adapters.nothing`), and searching the graph costs time.
        "ddp_find_unused_parameters": False,
    }
