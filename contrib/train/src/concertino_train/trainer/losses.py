"""Importance weights, for a sampler that computes log-probabilities differently from the trainer."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Correction = Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]


def importance_weights(old: Tensor, sampled: Tensor, mask: Tensor, correction: Correction, cap: float) -> Tensor:
    """How much more probable a text is for the trainer than it was for the sampler, where the two compute differently.

    Truncated importance sampling (Ionides 2008; for language models Yao et al. 2025) keeps what exceeds the cap at the
    cap; masking leaves it out.

    Args:
        old: shape (B, T): log-probabilities by the trainer, under the weights that sampled.
        sampled: shape (B, T): by the sampler.
        mask: shape (B, T).
        correction: per token, or one product over the row.
        cap: greatest weight.

    Returns:
        Shape (B, T), or (B, 1) per sequence; without gradient.
    """
    # Places without a token may hold anything; an infinite number times a mask of 0 would be NaN.
    difference = torch.where(mask.bool(), old - sampled, torch.zeros_like(old)).detach()
    if correction.startswith("sequence"):
        # The sum of logarithms is the logarithm of the row's product.
        difference = difference.sum(1, keepdim=True)
    weights = difference.exp()
    if correction == "none":
        return torch.ones_like(weights)
    return weights.clamp(max=cap) if correction.endswith("truncate") else weights.masked_fill(weights > cap, 0.0)
