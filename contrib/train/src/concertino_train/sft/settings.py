"""The settings of a fine-tuning, which are checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from concertino import UsageError

TooLong = Literal["refuse", "drop"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
Schedule = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True)
class SftSettings:
    """How a policy is trained.

    Attributes:
        out: folder; checkpoints go to `checkpoints`, the weights to `model`.
        data: folder or file of conversations (`data.make_set`), unless they are given.
        model: folder of weights and tokenizer, unless they are given.
        template: chat template, unless a codec is given; the tokenizer's own by default.
        steps: optimiser steps; None for as many as `epochs` make.
        epochs: passes over the data.
        batch: conversations of a step, over all processes.
        micro_batch: of one forward pass, in one process.
        learning_rate: at the top of the schedule.
        schedule: of the learning rate.
        warmup: steps in which it rises from 0.
        weight_decay: of AdamW.
        max_grad_norm: gradients are scaled down to this norm.
        max_tokens: of a conversation; None for as many as the model reads.
        too_long: how longer ones are handled: `refuse` says which, `drop` leaves them out and counts them.
        group_by_length: rows of similar length stand in one step, which saves padding.
        loss: `nll`, the log-likelihood, or `dft`, weighted by the probability itself.
        precision: of computing; `auto` is bfloat16 on an accelerator, float32 on a CPU.
        device: `auto` is an accelerator where there is one.
        activation_checkpointing: less memory for more time.
        seed: of the order of the rows, and of dropout.
        save_every: steps between checkpoints; 0 for none.
        keep: checkpoints that are kept.
        log_every: steps between reports of progress.
        evaluate_every: steps between evaluations; 0 for one at the end.
        resume: continue from the newest complete checkpoint, if there is one.
        force: even where it was made with other data or settings.
    """

    out: str | Path
    data: str | Path = ""
    model: str | Path = ""
    template: str = ""
    steps: int | None = None
    epochs: float = 1.0
    batch: int = 32
    micro_batch: int = 8
    learning_rate: float = 1e-5
    schedule: Schedule = "cosine"
    warmup: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    max_tokens: int | None = None
    too_long: TooLong = "refuse"
    group_by_length: bool = True
    loss: Literal["nll", "dft"] = "nll"
    precision: Precision = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    activation_checkpointing: bool = False
    seed: int = 0
    save_every: int = 0
    keep: int = 2
    log_every: int = 10
    evaluate_every: int = 0
    resume: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        for name in ("batch", "micro_batch", "keep", "log_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"SftSettings({name}={getattr(self, name)!r}): expected 1 or more")
        for name in ("steps", "max_tokens"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(f"SftSettings({name}={getattr(self, name)!r}): expected 1 or more, or None")
        if self.steps is None and self.epochs <= 0:
            raise UsageError(f"SftSettings(epochs={self.epochs!r}): expected more than 0")
        allowed = {"too_long": TooLong, "precision": Precision, "schedule": Schedule}
        for name, kind in allowed.items():
            if getattr(self, name) not in get_args(kind):
                known = ", ".join(get_args(kind))
                raise UsageError(f"SftSettings({name}={getattr(self, name)!r}): expected one of {known}")
