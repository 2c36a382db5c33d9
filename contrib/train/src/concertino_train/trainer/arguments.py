"""The settings of the algorithm as TRL's arguments, by an explicit table.

The invariant: an option does what it says or is refused. What this trainer decides is in the table, and cannot be given
a second time; what TRL would read only in parts that are not used here (its generation, its rewards, its tables of
completions) is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from concertino import UsageError
from concertino.schema import near_names
from trl.trainer.grpo_config import GRPOConfig

from .algorithm import Algorithm

ROLLOUTS = "rollouts are made outside TRL: set it where they are made"
REWARDS = "rewards and advantages are made outside TRL: set it there (Reward, AdvantageSettings, Filters)"
EVALUATION = "policies are evaluated by rollouts, not by the trainer"
CHECKPOINTS = "checkpoints are kept by the trainer: give save_every and keep"
UNUSED = {
    **dict.fromkeys(
        (
            "top_p",
            "top_k",
            "min_p",
            "generation_kwargs",
            "chat_template_kwargs",
            "repetition_penalty",
            "cache_implementation",
            "use_transformers_paged",
            "use_transformers_continuous_batching",
            "transformers_continuous_batching_config",
            "max_tool_calling_iterations",
            "num_generations_eval",
            "generation_batch_size",
            "pad_to_multiple_of",
            "model_init_kwargs",
            "trust_remote_code",
        ),
        ROLLOUTS,
    ),
    **dict.fromkeys(
        ("reward_weights", "scale_rewards", "multi_objective_aggregation", "mask_truncated_completions"), REWARDS
    ),
    **dict.fromkeys(
        (
            "log_completions",
            "log_multimodal",
            "log_unique_prompts",
            "num_completions_to_print",
            "log_completions_hub_repo",
        ),
        "texts are logged with the rollouts",
    ),
    **dict.fromkeys(
        (
            "eval_strategy",
            "eval_steps",
            "eval_delay",
            "eval_on_start",
            "do_eval",
            "load_best_model_at_end",
            "metric_for_best_model",
            "greater_is_better",
            "per_device_eval_batch_size",
            "prediction_loss_only",
        ),
        EVALUATION,
    ),
    **dict.fromkeys(("save_total_limit", "save_only_model", "save_on_each_node"), CHECKPOINTS),
    **dict.fromkeys(
        ("sync_ref_model", "ref_model_mixup_alpha", "ref_model_sync_steps"),
        "the reference is the policy as it was when training began",
    ),
    **dict.fromkeys(
        (
            "delta",
            "off_policy_mask_threshold",
            "top_entropy_quantile",
            "entropy_coef",
            "use_adaptive_entropy",
            "entropy_coef_min",
            "entropy_coef_max",
            "entropy_coef_delta",
            "entropy_target",
            "sapo_temperature_neg",
            "sapo_temperature_pos",
            "vespo_k_pos",
            "vespo_lambda_pos",
            "vespo_k_neg",
            "vespo_lambda_neg",
        ),
        "the loss is what Algorithm says",
    ),
    **dict.fromkeys(
        ("deepspeed", "auto_find_batch_size", "use_liger_kernel"),
        "not supported by this trainer; use DDP, LoRA, gradient_checkpointing or a smaller micro_batch",
    ),
}
"""Arguments of TRL that are refused, each with the reason."""
_CHECKPOINTING = (
    "activation_checkpointing" if hasattr(GRPOConfig, "activation_checkpointing") else "gradient_checkpointing"
)
PREFIXES = {"vllm_": ROLLOUTS, "use_vllm": ROLLOUTS, "push_to_hub": EVALUATION, "hub_": EVALUATION}


def grpo_arguments(
    algorithm: Algorithm,
    folder: Path | str,
    *,
    save_every: int = 0,
    log_every: int = 1,
    report_to: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
) -> GRPOConfig:
    """The arguments of a training.

    Args:
        algorithm: its settings.
        folder: for checkpoints.
        save_every: steps of rollouts between checkpoints; 0 for none.
        log_every: likewise between log lines.
        report_to: trackers of transformers, `tensorboard` for example.
        more: further arguments of `trl.GRPOConfig` that are not decided here, such as `optim` or `torch_compile`.

    Raises:
        UsageError: an argument in `more` is unknown, decided here, or read by nothing here.
    """
    table = {**_loss(algorithm), **_schedule(algorithm), **_machine(algorithm)}
    table |= {
        "output_dir": str(folder),
        "save_strategy": "steps" if save_every else "no",
        "save_steps": max(1, save_every) * algorithm.updates,
        "logging_strategy": "steps",
        "logging_steps": max(1, log_every) * algorithm.updates,
        "report_to": list(report_to) or "none",
        "disable_tqdm": True,
        "eval_strategy": "no",
        "log_completions": False,
        "remove_unused_columns": False,
    }
    known = {field.name for field in fields(GRPOConfig)}
    missing = sorted(set(table) - known)
    if missing:
        raise UsageError(f"this trl has no arguments {', '.join(missing)}; {_versions()}")
    for name in more or {}:
        _refuse(name, table, known)
    return GRPOConfig(**{**table, **(more or {})})


def _loss(algorithm: Algorithm) -> dict[str, Any]:
    return {
        "loss_type": algorithm.loss,
        "importance_sampling_level": algorithm.ratio,
        "epsilon": algorithm.clip_low,
        "epsilon_high": algorithm.clip_high,
        "beta": algorithm.kl,
        "use_bias_correction_kl": algorithm.kl_ratio,
        "max_completion_length": algorithm.row_tokens or 1,
        "temperature": algorithm.temperature,
        "disable_dropout": True,
        "router_aux_loss_coef": 0.0,
    }


def _schedule(algorithm: Algorithm) -> dict[str, Any]:
    constant = "constant_with_warmup" if algorithm.warmup else "constant"
    return {
        "max_steps": algorithm.optimizer_steps,
        "steps_per_generation": algorithm.steps_per_generation,
        "num_iterations": algorithm.iterations,
        # TRL's data loader is only a clock here: one beat for each optimiser step, whatever the rows are.
        "num_generations": algorithm.group_size,
        "per_device_train_batch_size": algorithm.group_size,
        "gradient_accumulation_steps": 1,
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
    precision = ("float32" if on_cpu else "bfloat16") if algorithm.precision == "auto" else algorithm.precision
    return {
        "use_cpu": on_cpu,
        "bf16": precision == "bfloat16",
        "fp16": precision == "float16",
        _CHECKPOINTING: algorithm.gradient_checkpointing,
        "dataloader_pin_memory": False,
        "ddp_find_unused_parameters": False,
    }


def _refuse(name: str, table: Mapping[str, Any], known: set[str]) -> None:
    if name not in known:
        near = ", ".join(near_names(name, sorted(known))) or "see trl.GRPOConfig"
        raise UsageError(f"trl.GRPOConfig has no argument {name!r}; near: {near}")
    if name in table:
        raise UsageError(f"{name!r} is decided by Algorithm or by a parameter of its own; set it there, once")
    why = _why_unused(name)
    if why:
        raise UsageError(f"{name!r} would be ignored: {why}")


def _why_unused(name: str) -> str:
    return UNUSED.get(name, "") or next((why for prefix, why in PREFIXES.items() if name.startswith(prefix)), "")


def _versions() -> str:
    from .contract import versions

    return versions()
