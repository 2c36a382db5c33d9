"""A trainer in plain torch, without TRL, which the trainer over TRL is checked against.

It makes the same updates from the same batches, on one device and in float32; there are no checkpoints, adapters by
role or several ranks. The invariant: what an option of `Algorithm` asks for is done or refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from concertino import UsageError
from concertino_train.rollouts.batches import Batch
from concertino_train.rollouts.task_stream import TaskStream
from concertino_train.trainer import Algorithm
from concertino_train.trainer.layout import layout
from concertino_train.trainer.losses import importance_weights
from concertino_train.trainer.reference import ReferencePolicy
from concertino_train.trainer.tensors import (
    Tensors,
    loss_mask,
    part,
    pieces,
    placed_tensors,
    score_rows,
    sequences,
)
from plain_losses import policy_loss, token_logprobs
from torch import Tensor, nn

if TYPE_CHECKING:
    from concertino_local.codec import Codec


class PlainTrainer:
    """Trains one policy.

    Attributes:
        figures: of each step: the loss, and what its batch says.
    """

    def __init__(
        self,
        model: nn.Module,
        algorithm: Algorithm,
        sample: Callable[[list[Any], int], Batch],
        tasks: Sequence[Any],
        *,
        codec: Codec,
    ) -> None:
        """Make a trainer; parameters as of `concertino_train.trainer.OrchestratorGRPOTrainer`."""
        if algorithm.precision not in ("auto", "float32") or algorithm.gradient_checkpointing:
            raise UsageError("PlainTrainer computes in float32 and keeps activations; use OrchestratorGRPOTrainer")
        self.model = model if algorithm.device == "auto" else model.to(algorithm.device)
        self.figures: list[dict[str, float]] = []
        self._algorithm, self._sample, self._pad = algorithm, sample, codec.pad_id
        self._tasks = TaskStream(tasks, seed=algorithm.seed)
        self._reference = ReferencePolicy(model) if algorithm.kl else None
        weights = [value for value in model.parameters() if value.requires_grad]
        decayed = [value for value in weights if value.dim() > 1]
        others = {"params": [value for value in weights if value.dim() < 2], "weight_decay": 0.0}
        groups = [{"params": decayed, "weight_decay": algorithm.weight_decay}, others]
        self._optimizer = torch.optim.AdamW(groups, lr=algorithm.learning_rate)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimizer, self._rate)

    def train(self) -> None:
        """Make all steps."""
        for step in range(self._algorithm.steps):
            self.model.eval()
            batch = self._sample(self._tasks.take(self._algorithm.questions_per_step), step)
            updates = self._prepared(batch)
            losses = [self._update(rows) for _ in range(self._algorithm.iterations) for rows in updates]
            self.figures.append({**batch.figures, "loss": sum(losses) / len(losses)})

    def _prepared(self, batch: Batch) -> list[Tensors]:
        """The rows of each optimiser step."""
        algorithm, kept = self._algorithm, np.flatnonzero(batch.keep).tolist()
        lengths = [len(batch.rows[n].prompt) + len(batch.rows[n].completion) for n in kept]
        found = layout(kept, lengths, [0] * len(kept), steps=algorithm.steps_per_generation)
        tensors = placed_tensors(batch, found, self._pad, next(self.model.parameters()).device)
        most = algorithm.micro_batch
        old = score_rows(tensors, most, self._logprobs) if algorithm.old == "recomputed" else tensors["sampled"]
        mask, gain = loss_mask(tensors), tensors["advantages"]
        weights = importance_weights(old, tensors["sampled"], mask, algorithm.corrects, algorithm.correction_cap)
        tensors |= {"old": old, "reference": old}
        tensors["advantages"] = (gain[:, None] if gain.dim() == 1 else gain) * weights.expand_as(mask) * mask
        if self._reference:
            with self._reference.active(self.model):
                tensors["reference"] = score_rows(tensors, most, self._logprobs)
        steps = algorithm.steps_per_generation
        tensors["rows"] = torch.tensor(max(1, len(kept)) / steps)
        tensors["tokens"] = mask.sum().clamp(min=1) / steps
        return [part(tensors, chosen) for chosen in torch.arange(len(mask)).chunk(steps)]

    def _update(self, tensors: Tensors) -> float:
        algorithm, total = self._algorithm, 0.0
        for places in pieces(tensors, algorithm.micro_batch):
            rows = part(tensors, places)
            loss = policy_loss(
                self._logprobs(rows),
                rows["old"],
                rows["advantages"],
                loss_mask(rows),
                loss=algorithm.loss,
                ratio=algorithm.ratio,
                clip_low=algorithm.clip_low,
                clip_high=algorithm.clip_high,
                kl=algorithm.kl,
                reference=rows["reference"],
                rows=rows["rows"].item(),
                row_tokens=algorithm.row_tokens,
                tokens=rows["tokens"].item() if algorithm.loss == "dapo" else None,
            ).value
            torch.autograd.backward(loss)
            total += loss.item()
        if algorithm.max_grad_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), algorithm.max_grad_norm)
        self._optimizer.step()
        self._schedule.step()
        self._optimizer.zero_grad()
        return total

    def _logprobs(self, rows: Tensors) -> Tensor:
        ids, seen = sequences(rows)
        logits = self.model(input_ids=ids, attention_mask=seen).logits
        return token_logprobs(logits, ids, self._algorithm.temperature)[0][:, -rows["completion_ids"].shape[1] :]

    def _rate(self, step: int) -> float:
        a = self._algorithm
        if step < a.warmup:
            return step / a.warmup
        done = (step - a.warmup) / max(1, a.optimizer_steps - a.warmup)
        return {"constant": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}[a.schedule]
