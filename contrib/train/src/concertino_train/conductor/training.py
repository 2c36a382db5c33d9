"""Supervised training of a tiny model on rows: plain torch, one thread, for a given number of CPU-seconds.

Matrices are trained by Muon, everything else by AdamW; at this size that halves the time. The invariants: equal rows,
seed and number of steps give the same weights; and the learning rate falls to nothing by the end, whenever that is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from concertino import UsageError

from .examples import Row

Told = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """How it is trained.

    Attributes:
        seconds: of CPU time; the last step may go beyond.
        steps: optimiser steps at most, over which the rates fall; None for as many as fit into the time.
        tokens: of one batch, about.
        rate: learning rate of AdamW.
        muon: learning rate of Muon.
        warm: steps in which the rates rise.
        seed: of the order of the rows.
        every: steps between two reports.
    """

    seconds: float = 600.0
    steps: int | None = None
    tokens: int = 2500
    rate: float = 3e-3
    muon: float = 0.02
    warm: int = 50
    seed: int = 0
    every: int = 50

    def __post_init__(self) -> None:
        for name in ("seconds", "tokens", "rate", "muon", "every"):
            if getattr(self, name) <= 0:
                raise UsageError(f"Settings({name}={getattr(self, name)!r}): expected a number > 0")


@dataclass(frozen=True)
class Trained:
    """What a training took.

    Attributes:
        steps: optimiser steps.
        tokens: read, padding left out.
        seconds: of CPU time.
        loss: mean over the last steps, in nats per learned token.
    """

    steps: int
    tokens: int
    seconds: float
    loss: float


def train(model: Any, rows: Sequence[Row], settings: Settings, tell: Told = lambda line: None) -> Trained:
    """Train a model in place.

    Args:
        model: of transformers, with tied embeddings.
        rows: to learn from; as often as there is time.
        settings: how.
        tell: is told how far it is, now and then.
    """
    import torch

    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if not (p.ndim == 2 and "embed" not in name)]
    optimisers: list[Any] = [
        torch.optim.Muon(matrices, lr=settings.muon, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=settings.rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    begun, step, tokens, loss = time.process_time(), 0, 0, 0.0
    model.train()
    for batch in _batches(rows, settings):
        spent = (time.process_time() - begun) / settings.seconds
        done = step / settings.steps if settings.steps else spent
        if max(done, spent) >= 1:
            break
        factor = min(1.0, (step + 1) / settings.warm) * max(0.02, 1.0 - done)
        for optimiser, rate in zip(optimisers, (settings.muon, settings.rate), strict=True):
            optimiser.param_groups[0]["lr"] = rate * factor
            optimiser.zero_grad()
        now = _loss(model, batch)
        now.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in optimisers:
            optimiser.step()
        step, tokens = step + 1, tokens + sum(len(row.ids) for row in batch)
        loss = float(now.detach()) if step == 1 else 0.98 * loss + 0.02 * float(now.detach())
        if step % settings.every == 0:
            tell(f"step {step}: loss {loss:.4f}, {tokens:,} tokens, {time.process_time() - begun:.0f} CPU-seconds")
    return Trained(step, tokens, time.process_time() - begun, loss)


def _batches(rows: Sequence[Row], settings: Settings) -> Iterator[list[Row]]:
    """Rows of about the same length together, in random order, without end."""
    rng = Random(settings.seed)
    order = sorted(range(len(rows)), key=lambda place: len(rows[place].ids))
    while True:
        start = rng.randrange(len(order))
        count = max(1, settings.tokens // len(rows[order[start]].ids))
        start = min(start, max(0, len(order) - count))
        yield [rows[place] for place in order[start : start + count]]


def _loss(model: Any, batch: Sequence[Row]) -> Any:
    """Mean cross-entropy of the learned tokens."""
    import torch

    width = max(len(row.ids) for row in batch)
    ids = torch.zeros((len(batch), width), dtype=torch.long)
    learned = torch.zeros((len(batch), width), dtype=torch.bool)
    for place, row in enumerate(batch):
        ids[place, : len(row.ids)] = torch.tensor(row.ids)
        learned[place, : len(row.ids)] = torch.tensor(row.learned)
    hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
    wanted = learned[:, 1:]
    return torch.nn.functional.cross_entropy(model.lm_head(hidden[wanted]), ids[:, 1:][wanted])
