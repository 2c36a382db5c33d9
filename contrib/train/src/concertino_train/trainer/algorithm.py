"""The settings of reinforcement learning: what is optimised, how far a step goes, and how much it sees.

A *step* samples one batch of rollouts. Its rows are divided among `steps_per_generation` optimiser steps, and gone
through `iterations` times. The invariant: how many optimiser steps a step makes depends on these two alone, never on
how many rows or turns there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from concertino import UsageError


@dataclass(frozen=True)
class Algorithm:
    """How a policy is trained.

    Attributes:
        loss: what the loss of tokens is divided by: `grpo` each row by its length, then by the rows; `dapo` all tokens
            of the step; `dr_grpo` the rows times `row_tokens`. Rows that are filtered or padding count nowhere.
        ratio: of each token, or of whole rows: with loss `grpo` that is GSPO, with clip widths of about 4e-4.
        clip_low, clip_high: width of the range around 1 in which a ratio has a gradient.
        kl: weight of the distance to the policy as it was when training began; 0 for none.
        row_tokens: constant length of a row, for `dr_grpo`.
        old: log-probabilities that ratios are taken to. `recomputed` by the trainer before its first update: ratios
            begin at 1, whoever sampled. `sampled`, as the sampler said: saves that pass over the rows, and is right
            where sampler and trainer compute alike (same weights, precision and temperature).
        correction: for samplers that compute differently, such as a server in another precision: weigh each token, or
            each row, by how much more probable it is for the trainer. Needs `old: recomputed`.
        correction_cap: greatest such weight; beyond it, `truncate` keeps the cap and `mask` leaves out.
        temperature: that texts are sampled at; probabilities are taken at it.
        learning_rate: at the top of the schedule.
        schedule: of the learning rate.
        warmup: optimiser steps in which it rises from 0.
        weight_decay: of AdamW.
        max_grad_norm: gradients are scaled down to this norm; 0 for no bound.
        steps: batches of rollouts.
        questions_per_step: over all ranks.
        group_size: rollouts of each question.
        micro_batch: rows in one forward pass of one rank, at most; no other setting depends on it.
        iterations: how often the rows of a step are gone through.
        steps_per_generation: optimiser steps that the rows of a step are divided among.
        seed: of everything that is drawn.
        precision: of computing; `auto` is bfloat16 on an accelerator, float32 on a CPU.
        gradient_checkpointing: compute activations again instead of keeping them.
        device: `auto` is the accelerator if there is one.
    """

    loss: Literal["grpo", "dapo", "dr_grpo"] = "dapo"
    ratio: Literal["token", "sequence"] = "token"
    clip_low: float = 0.2
    clip_high: float = 0.28
    kl: float = 0.0
    row_tokens: int | None = None
    old: Literal["recomputed", "sampled"] = "recomputed"
    correction: Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"] = "none"
    correction_cap: float = 3.0
    temperature: float = 1.0
    learning_rate: float = 1e-6
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    steps: int = 100
    questions_per_step: int = 8
    group_size: int = 8
    micro_batch: int = 8
    iterations: int = 1
    steps_per_generation: int = 1
    seed: int = 0
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    gradient_checkpointing: bool = False
    device: Literal["auto", "cpu", "cuda"] = "auto"

    def __post_init__(self) -> None:
        for name, (expected, fine) in _expectations(self).items():
            if not fine:
                raise UsageError(f"Algorithm({name}={getattr(self, name)!r}): expected {expected}")

    @property
    def updates(self) -> int:
        """Optimiser steps that each step makes."""
        return self.steps_per_generation * self.iterations

    @property
    def optimizer_steps(self) -> int:
        """Optimiser steps of the whole training."""
        return self.steps * self.updates


def _expectations(a: Algorithm) -> dict[str, tuple[str, bool]]:
    """For each setting what is expected, and whether it is so."""
    counts = ("steps", "questions_per_step", "micro_batch", "iterations", "steps_per_generation")
    corrections = ("none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask")
    return {
        "loss": _one_of(a.loss, ("grpo", "dapo", "dr_grpo")),
        "ratio": _one_of(a.ratio, ("token", "sequence")),
        "clip_low": ("a number above 0, and below 1", 0 < a.clip_low < 1),
        "clip_high": _above_0(a.clip_high),
        "kl": _not_below_0(a.kl),
        "row_tokens": (
            "a number of tokens with loss dr_grpo, and None with any other",
            a.row_tokens is not None and a.row_tokens >= 1 if a.loss == "dr_grpo" else a.row_tokens is None,
        ),
        "old": _one_of(a.old, ("recomputed", "sampled")),
        "correction": (
            f"one of {', '.join(corrections)}, and none with old='sampled', whose ratios hold the difference already",
            a.correction in corrections and (a.correction == "none" or a.old == "recomputed"),
        ),
        "correction_cap": _above_0(a.correction_cap),
        "temperature": _above_0(a.temperature),
        "learning_rate": _not_below_0(a.learning_rate),
        "schedule": _one_of(a.schedule, ("constant", "linear", "cosine")),
        "warmup": _not_below_0(a.warmup),
        "weight_decay": _not_below_0(a.weight_decay),
        "max_grad_norm": _not_below_0(a.max_grad_norm),
        "group_size": ("2 or more: a group of one has nothing to be compared with", a.group_size >= 2),
        **{name: ("1 or more", getattr(a, name) >= 1) for name in counts},
        "precision": _one_of(a.precision, ("auto", "float32", "bfloat16", "float16")),
        "device": _one_of(a.device, ("auto", "cpu", "cuda")),
    }


def _one_of(value: str, words: tuple[str, ...]) -> tuple[str, bool]:
    return f"one of {', '.join(words)}", value in words


def _above_0(value: float) -> tuple[str, bool]:
    return "a number above 0", 0 < value < math.inf


def _not_below_0(value: float) -> tuple[str, bool]:
    return "0 or more", 0 <= value < math.inf
