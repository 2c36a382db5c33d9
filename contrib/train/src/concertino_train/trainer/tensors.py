"""Rows as tensors: prompts padded on the left, completions on the right.

The invariant: the mask is 1 exactly on tokens that the policy sampled in rows that are trained; padding, what others
said, and padding rows have mask 0. A padding row has one token of prompt and one of completion that attention sees, so
that it can be computed, and none that is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from concertino import UsageError
from torch import Tensor

from concertino_train.rollouts.batches import Batch
from concertino_train.rollouts.sequences import TrainingRow

from .layout import Layout

Tensors = dict[str, Tensor]


def row_tensors(
    rows: Sequence[TrainingRow | None], credit: Sequence[Any], pad: int, device: torch.device | str
) -> Tensors:
    """Tensors of rows.

    Args:
        rows: B of them; None for padding.
        credit: advantages: for each row a number, or one for each token of its completion.
        pad: token that fills.
        device: where they go.

    Returns:
        `prompt_ids`, `prompt_mask` (B, P); `completion_ids`, `completion_mask`, `tool_mask`, `sampled` (B, T), the last
        of them log-probabilities as the sampler gave them; `advantages` (B,), or (B, T) if a row has one per token.
    """
    prompts = [row.prompt if row else (pad,) for row in rows]
    texts = [row.completion if row else (pad,) for row in rows]
    ones = [np.ones(len(text)) for text in texts]
    made = {
        # On the left, so that every completion begins in one column: TRL scores the last T places (`logits_to_keep`).
        "prompt_ids": _padded(prompts, pad, np.int64, left=True),
        "prompt_mask": _padded([np.ones(len(prompt)) for prompt in prompts], 0, np.int64, left=True),
        "completion_ids": _padded(texts, pad, np.int64),
        "completion_mask": _padded(ones, 0, np.int64),
        "tool_mask": _padded([row.mask if row else (0,) for row in rows], 0, np.int64),
        "sampled": _padded([row.logprobs if row else (0.0,) for row in rows], 0.0, np.float32),
        "advantages": _credit(rows, credit),
    }
    return {name: torch.from_numpy(array).to(device) for name, array in made.items()}


def placed_tensors(batch: Batch, found: Layout, pad: int, device: torch.device | str) -> Tensors:
    """Tensors of a batch, row by row as they are placed: all places of the first optimiser step, then of the next.

    Returns:
        As `row_tensors`, and `used` and `role`, shape (B,): see `Layout`.
    """
    places = found.rows.ravel().tolist()
    rows = [batch.rows[n] if n >= 0 else None for n in places]
    tensors = row_tensors(rows, [batch.credit[n] if n >= 0 else 0.0 for n in places], pad, device)
    tensors["used"] = torch.from_numpy(found.used.ravel()).to(device)
    tensors["role"] = torch.from_numpy(np.tile(found.roles, len(found.rows))).to(device)
    return tensors


def _credit(rows: Sequence[TrainingRow | None], credit: Sequence[Any]) -> np.ndarray[Any, Any]:
    values = [np.asarray(each, dtype=np.float32) for each in credit]
    for number, (row, value) in enumerate(zip(rows, values, strict=True)):
        if value.ndim > 1 or (value.ndim == 1 and row is not None and len(value) != len(row.completion)):
            expected = f"one number, or {len(row.completion)}" if row else "one number"
            raise UsageError(f"credit of row {number} has shape {value.shape}; expected {expected}")
    if all(value.ndim == 0 for value in values):
        return np.array(values, dtype=np.float32)
    lengths = [len(row.completion) if row else 1 for row in rows]
    spread = [np.broadcast_to(value, (n,)) for value, n in zip(values, lengths, strict=True)]
    return _padded(spread, 0.0, np.float32)


def _padded(values: Sequence[Sequence[Any] | Any], fill: float, kind: Any, left: bool = False) -> np.ndarray[Any, Any]:
    array = np.full((len(values), max(len(each) for each in values)), fill, dtype=kind)
    for number, each in enumerate(values):
        place = slice(array.shape[1] - len(each), None) if left else slice(len(each))
        array[number, place] = each
    return array


def loss_mask(tensors: Tensors) -> Tensor:
    """Shape (B, T): 1 where a token is trained."""
    return tensors["completion_mask"] * tensors["tool_mask"]


def part(tensors: Tensors, places: Tensor) -> Tensors:
    """Some rows, without the columns that are padding in all of them.

    Args:
        tensors: B rows; scalars are passed on.
        places: numbers of the rows, shape (b,).
    """
    chosen = {name: value[places] if value.dim() else value for name, value in tensors.items()}
    first = int(chosen["prompt_mask"].any(0).int().argmax())
    last = int(chosen["completion_mask"].sum(1).max())
    width = tensors["completion_ids"].shape[1]
    for name, value in chosen.items():
        if name.startswith("prompt_"):
            chosen[name] = value[:, first:]
        elif value.dim() == 2 and value.shape[1] == width:
            chosen[name] = value[:, :last]
    return chosen


def pieces(tensors: Tensors, most: int) -> list[Tensor]:
    """Numbers of rows that are computed together: of one role, at most so many, in parts of about equal size.

    Args:
        tensors: with `used` and `role`, shape (B,); where none is used, one row stands for all.
        most: rows in a piece.
    """
    used, role = tensors["used"].bool(), tensors["role"]
    found: list[Tensor] = []
    for number in sorted(set(role.tolist())):
        places = torch.nonzero(used & (role == number))[:, 0]
        if len(places):
            # Parts of equal size need the least memory at the peak, and the number of parts is the same on all ranks.
            found += places.tensor_split(-(-len(places) // most))
    # DDP owes every rank a backward pass; a padding row gives it with a loss of 0.
    return found or [torch.zeros(1, dtype=torch.long, device=role.device)]


def score_rows(tensors: Tensors, most: int, score: Callable[[Tensors], Tensor]) -> Tensor:
    """Log-probabilities of all rows, without gradient.

    Args:
        tensors: B rows.
        most: rows that are scored at once.
        score: gives shape (b, t) for some rows without their common padding.

    Returns:
        Shape (B, T); 0 in places that are not used.
    """
    result = torch.zeros_like(tensors["sampled"])
    with torch.no_grad():
        for places in pieces(tensors, most):
            found = score(part(tensors, places))
            result[places, : found.shape[1]] = found.to(result.dtype)
    return result


def sequences(rows: Tensors) -> tuple[Tensor, Tensor]:
    """Prompts and completions as one: ids and attention mask, both (B, P + T)."""
    ids = torch.cat([rows["prompt_ids"], rows["completion_ids"]], 1)
    return ids, torch.cat([rows["prompt_mask"], rows["completion_mask"]], 1)
