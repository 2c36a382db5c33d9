"""Supervised training of a tiny model on rows: plain torch, for a number of CPU-seconds, in one or several processes.

Matrices are trained by Muon, everything else by AdamW; at this size that halves the time. Short rows come first, for to
copy is learned from them as well as from long ones, in less time. Several processes read other batches each and take
the mean of their gradients, which keeps as many cores busy as there are, where threads cannot. The invariants: equal
rows, seed, processes and number of steps give the same weights, in every process; and the learning rate falls to
nothing by the end, whenever that is.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from concertino import UsageError
from concertino.executor import only_child_environment

from concertino_train.device import check_device

from .rows import TokenRow

Told = Callable[[str], None]


@dataclass(frozen=True)
class TrainingSettings:
    """How it is trained.

    Attributes:
        seconds: of CPU time, of each process; the last step may go beyond.
        steps: optimiser steps at most, over which the rates fall; None for as many as fit into the time.
        tokens: of one batch of one process, about.
        rate: learning rate of AdamW.
        muon: learning rate of Muon.
        warm: steps in which the rates rise.
        seed: of the order of the rows.
        every: steps between two reports; the model is kept after twenty of them.
        device: `cpu`, or `cuda`, where a single process trains.
        half: multiply in 16 bits (bfloat16), which is faster where the processor can; weights stay as they are.
    """

    seconds: float = 600.0
    steps: int | None = None
    tokens: int = 2500
    rate: float = 3e-3
    muon: float = 0.02
    warm: int = 50
    seed: int = 0
    every: int = 50
    half: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("seconds", "tokens", "rate", "muon", "every"):
            if getattr(self, name) <= 0:
                raise UsageError(f"TrainingSettings({name}={getattr(self, name)!r}): expected a number > 0")
        check_device(self.device, f"TrainingSettings(device={self.device!r})")


@dataclass(frozen=True)
class TrainingTotals:
    """What a training took.

    Attributes:
        steps: optimiser steps.
        tokens: read by all processes, padding left out.
        seconds: of CPU time, of one process.
        loss: mean over the last steps, in nats per learned token; of the batches of this process.
    """

    steps: int
    tokens: int
    seconds: float
    loss: float


def train_together(
    model: Any,
    rows: Sequence[TokenRow],
    settings: TrainingSettings,
    processes: int,
    tell: Told = lambda line: None,
    keep: Callable[[TrainingTotals], None] = lambda trained: None,
) -> TrainingTotals:
    """Train a model in place, in so many processes, of which this is one; see `train`."""
    import torch.distributed as dist

    if processes == 1:
        return train(model, rows, settings, tell, keep)
    others = get_context("spawn")
    with TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meeting")
        started = [
            others.Process(target=_take_part, args=(meeting, rank, processes, model, rows, settings), daemon=True)
            for rank in range(1, processes)
        ]
        with only_child_environment():
            for process in started:
                process.start()
        try:
            _meet(meeting, 0, processes)
            return train(model, rows, settings, tell, keep)
        except RuntimeError as error:
            # A peer that died shows here only as a broken connection; its status says why.
            ended = [process.exitcode for process in started if process.exitcode]
            if not ended:
                raise
            told = f"a process of the training ended with status {ended[0]}; see its output, or use one process"
            raise UsageError(told) from error
        finally:
            # Before the others are joined: they may be waiting for this one.
            if dist.is_initialized():
                dist.destroy_process_group()
            for process in started:
                process.join(60)


def _take_part(
    meeting: str, rank: int, processes: int, model: Any, rows: Sequence[TokenRow], settings: TrainingSettings
) -> None:
    """Train in a process that was started for it."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    model = copy.deepcopy(model)  # what another process hands over is shared with it
    _meet(meeting, rank, processes)
    train(model, rows, settings)
    dist.destroy_process_group()


def _meet(meeting: str, rank: int, processes: int) -> None:
    """Wait for the others; who has not come, or said nothing, for ten minutes is an error."""
    import torch.distributed as dist

    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes, timeout=timedelta(minutes=10)
    )


def train(
    model: Any,
    rows: Sequence[TokenRow],
    settings: TrainingSettings,
    tell: Told = lambda line: None,
    keep: Callable[[TrainingTotals], None] = lambda trained: None,
) -> TrainingTotals:
    """Train a model in place, together with the other processes of the process group, where there is one.

    Args:
        model: of transformers, with tied embeddings.
        rows: to learn from; as often as there is time.
        settings: how.
        tell: is told how far it is, now and then.
        keep: may write the model as it is, every now and then, so that a crash does not lose it.
    """
    import torch

    model.to(settings.device)
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if not (p.ndim == 2 and "embed" not in name)]
    optimisers: list[Any] = [
        # Muon is for matrices; embeddings and norms are trained by AdamW, as its authors advise.
        torch.optim.Muon(matrices, lr=settings.muon, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=settings.rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    begun, step, tokens, loss = time.process_time(), 0, 0, 0.0
    peers = _Peers()
    batches = _Batches(rows, settings, peers.rank)
    model.train()
    while True:
        # The same number in all processes, or they would stop at different steps and wait for each other.
        spent = peers.mean((time.process_time() - begun) / settings.seconds)
        done = step / settings.steps if settings.steps else spent
        if max(done, spent) >= 1:
            break
        batch = batches.draw(done)
        # Not quite to 0, so that the last steps still count.
        factor = min(1.0, (step + 1) / settings.warm) * max(0.02, 1.0 - done)
        for optimiser, rate in zip(optimisers, (settings.muon, settings.rate), strict=True):
            optimiser.param_groups[0]["lr"] = rate * factor
            optimiser.zero_grad()
        with torch.autocast(torch.device(settings.device).type, torch.bfloat16, enabled=settings.half):
            now = _loss(model, batch)
        now.backward()
        peers.share(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in optimisers:
            optimiser.step()
        step, tokens = step + 1, tokens + peers.count * sum(len(row.ids) for row in batch)
        loss = float(now.detach()) if step == 1 else 0.98 * loss + 0.02 * float(now.detach())
        if step % settings.every == 0:
            spent = time.process_time() - begun
            tell(f"step {step}: loss {loss:.4f}, {tokens:,} tokens, {spent:.0f} CPU-seconds")
        if step % (20 * settings.every) == 0:
            keep(TrainingTotals(step, tokens, time.process_time() - begun, loss))
    return TrainingTotals(step, tokens, time.process_time() - begun, loss)


class _Peers:
    """The processes of the training; alone, where there is no process group."""

    def __init__(self) -> None:
        import torch.distributed as dist

        group = dist.is_available() and dist.is_initialized()
        self.rank, self.count = (dist.get_rank(), dist.get_world_size()) if group else (0, 1)

    def mean(self, value: float) -> float:
        """The mean of what each says: the same number in all."""
        import torch

        return float(self._sum(torch.tensor([value], dtype=torch.float64))) / self.count

    def share(self, model: Any) -> None:
        """Replace the gradients by their mean over all."""
        import torch

        if self.count > 1:
            # One message for all gradients: each would cost a round of its own.
            gradients = [parameter.grad for parameter in model.parameters()]
            mean = self._sum(torch.cat([gradient.flatten() for gradient in gradients])) / self.count
            for gradient, part in zip(gradients, mean.split([each.numel() for each in gradients]), strict=True):
                gradient.copy_(part.view_as(gradient))

    def _sum(self, values: Any) -> Any:
        import torch.distributed as dist

        if self.count > 1:
            dist.all_reduce(values)
        return values


class _Batches:
    """Rows of about the same length together, in random order; up to a third of the way the longest ones wait."""

    def __init__(self, rows: Sequence[TokenRow], settings: TrainingSettings, rank: int) -> None:
        self._rows = sorted(rows, key=lambda row: len(row.ids))
        self._tokens = settings.tokens
        self._rng = Random(settings.seed + 1_000_003 * rank)

    def draw(self, done: float) -> list[TokenRow]:
        """A batch, when so much of the training is done, 0 to 1."""
        among = max(1, int(len(self._rows) * min(1.0, 0.3 + 2.1 * done)))
        start = self._rng.randrange(among)
        count = max(1, self._tokens // len(self._rows[start].ids))
        start = min(start, max(0, len(self._rows) - count))
        # Neighbours have about the same length, so little is padded.
        return self._rows[start : start + count]


def _loss(model: Any, batch: Sequence[TokenRow]) -> Any:
    """Mean cross-entropy of the learned tokens."""
    import torch

    width = max(len(row.ids) for row in batch)
    device = model.device
    ids = torch.zeros((len(batch), width), dtype=torch.long)
    learned = torch.zeros((len(batch), width), dtype=torch.bool)
    for place, row in enumerate(batch):
        ids[place, : len(row.ids)] = torch.from_numpy(row.ids)
        learned[place, : len(row.ids)] = torch.from_numpy(row.learned)
    ids, learned = ids.to(device), learned.to(device)
    hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
    wanted = learned[:, 1:]
    # Only at learned places, as logits over the vocabulary cost more than the rest of the model.
    return torch.nn.functional.cross_entropy(model.lm_head(hidden[wanted]).float(), ids[:, 1:][wanted])
