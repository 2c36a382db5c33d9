"""Choosing the next token of each row of a batch.

A row's choice depends on its own logits and its own random numbers, never on its neighbours: the same request with the
same seed gives the same tokens in any batch, up to rounding of the logits.

Log-probabilities are those of the model: the log-softmax of its logits at temperature 1, before temperature, top_p,
top_k or a grammar change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch

GREEDY = 1e-5
"""Temperatures up to this take the most likely token."""


@dataclass
class Chooser:
    """How a row chooses.

    Attributes:
        temperature: 0 for the most likely token.
        top_p: the most likely tokens that together have this probability.
        top_k: the most likely tokens, 0 for all.
        random: the row's own random numbers.
    """

    temperature: float
    top_p: float
    top_k: int
    random: Random

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is taken."""
        return self.temperature <= GREEDY or self.top_k == 1

    @property
    def cuts(self) -> bool:
        """Whether unlikely tokens are left out."""
        return self.top_p < 1.0 or self.top_k > 0


def choose(
    logits: torch.Tensor, choosers: Sequence[Chooser], allowed: Sequence[torch.Tensor | None]
) -> tuple[list[int], list[float]]:
    """The next token of each row, and its log-probability.

    Args:
        logits: (rows, vocabulary), in float32.
        choosers: one per row.
        allowed: which tokens a row's grammar allows, (vocabulary,) of bool; None for all.

    Raises:
        FloatingPointError: the logits are not finite.
    """
    if not bool(torch.isfinite(logits.amax(-1)).all()):
        raise FloatingPointError("the model's logits are not finite; its weights or its dtype are broken")
    scores = logits
    if any(mask is not None for mask in allowed):
        scores = logits.clone()
        for row, mask in enumerate(allowed):
            if mask is not None:
                scores[row].masked_fill_(~mask, float("-inf"))
    tokens = scores.argmax(-1)
    for cuts in (False, True):
        rows = [row for row, chooser in enumerate(choosers) if not chooser.greedy and chooser.cuts == cuts]
        if rows:
            places = torch.tensor(rows, device=logits.device)
            tokens[places] = _sample(scores[places], [choosers[row] for row in rows], cuts)
    chosen = logits.gather(-1, tokens[:, None])[:, 0] - logits.logsumexp(-1)
    return tokens.tolist(), chosen.tolist()


def _sample(scores: torch.Tensor, choosers: Sequence[Chooser], cuts: bool) -> torch.Tensor:
    """One token per row, by its place in the cumulated probabilities."""

    wide = torch.float32 if scores.device.type == "mps" else torch.float64  # sums of very many small numbers

    def column(values: list[float], dtype: torch.dtype = wide) -> torch.Tensor:
        return torch.tensor(values, device=scores.device, dtype=dtype)[:, None]

    probabilities = (scores / column([c.temperature for c in choosers], scores.dtype)).softmax(-1)
    order = None
    if cuts:
        probabilities, order = probabilities.sort(stable=True, dim=-1, descending=True)
        ranks = torch.arange(scores.shape[-1], device=scores.device)
        probabilities = probabilities.masked_fill(ranks >= column([c.top_k or len(ranks) for c in choosers]), 0.0)
        most = column([c.top_p for c in choosers]) * probabilities.sum(-1, keepdim=True, dtype=wide)
        probabilities = probabilities.masked_fill(probabilities.cumsum(-1, dtype=wide) - probabilities >= most, 0.0)
    cumulated = probabilities.cumsum(-1, dtype=wide)
    drawn = column([c.random.random() for c in choosers]) * cumulated[:, -1:]
    places = torch.searchsorted(cumulated, drawn, right=True)
    last = (probabilities > 0).long().mul(torch.arange(1, scores.shape[-1] + 1, device=scores.device)).amax(-1) - 1
    places = torch.minimum(places, last[:, None])
    return (places if order is None else order.gather(-1, places))[:, 0]
