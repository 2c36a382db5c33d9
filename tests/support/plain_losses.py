"""Policy-gradient losses in plain torch, which the losses of TRL are checked against.

A row is one text or trajectory of T positions, of which the mask trains some. With the ratio of new to old
probabilities r, the advantage A and the clip range [1 - low, 1 + high], a position loses

    l = w * -min(r A, clip(r, 1 - low, 1 + high) A) + kl * k3        PPO (arXiv 1707.06347, Eq. 7); clip-higher: DAPO

and a batch loses the sum over trained positions, divided by what its loss type says:

    grpo     each row by its own length, then by the number of rows     (arXiv 2402.03300, Eq. 3)
    dapo     the number of trained tokens of the whole step             (arXiv 2503.14476, Eq. 8)
    bnpo     the number of trained tokens of what is computed at once
    dr_grpo  the number of rows times one constant                      (arXiv 2503.20783, section 3.2)

The ratio is of each token, or one for the whole row (GSPO, arXiv 2507.18071, Eq. 7): the geometric mean over its
trained tokens. The invariant: what stands at a masked position changes nothing, not even by rounding.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from concertino import UsageError
from torch import Tensor

LossName = Literal["grpo", "dapo", "bnpo", "dr_grpo"]
RatioLevel = Literal["token", "sequence"]


class Loss(NamedTuple):
    """The result.

    Attributes:
        value: scalar, with gradient.
        clipped_low: share of ratios that the lower bound cut off, without gradient; scalar.
        clipped_high: likewise of the upper bound.
        kl: mean estimate of KL(policy || reference) over trained tokens, in nats; 0 without a reference.
    """

    value: Tensor
    clipped_low: Tensor
    clipped_high: Tensor
    kl: Tensor


def policy_loss(
    logprobs: Tensor,
    old: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    loss: LossName = "dapo",
    ratio: RatioLevel = "token",
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    kl: float = 0.0,
    reference: Tensor | None = None,
    weights: Tensor | None = None,
    rows: float | None = None,
    tokens: float | None = None,
    row_tokens: int | None = None,
) -> Loss:
    """The loss of some rows.

    Args:
        logprobs: shape (B, T): of the tokens, under the policy that is trained; nats.
        old: shape (B, T): likewise under the policy that the ratio is taken to; no gradient.
        advantages: shape (B,) or (B, T).
        mask: shape (B, T): 1 where a token is trained.
        loss: what the sum is divided by.
        ratio: of tokens or of rows.
        clip_low, clip_high: width of the clip range below and above 1.
        kl: weight of the distance to the reference.
        reference: shape (B, T): log-probabilities under the reference; needed where `kl` is not 0.
        weights: shape (B, T) or (B, 1): those of `concertino_train.trainer.losses.importance_weights`.
        rows: rows that `grpo` and `dr_grpo` divide by; B by default. Less where some rows are padding, more where this
            is a part of a step.
        tokens: tokens that `dapo` divides by; those of these rows by default.
        row_tokens: the constant of `dr_grpo`.
    """
    _check(loss, kl, reference, tokens, row_tokens)
    trained = mask.to(logprobs.dtype)
    gain = advantages.unsqueeze(1) if advantages.dim() == 1 else _masked(advantages, trained)
    moved = log_ratio(logprobs, old, trained, ratio).exp()
    bounded = moved.clamp(1 - clip_low, 1 + clip_high)
    lost = -torch.min(moved * gain, bounded * gain)
    if weights is not None:
        lost = lost * (_masked(weights, trained) if weights.shape == trained.shape else weights)
    distance = torch.zeros_like(logprobs)
    if kl:
        assert reference is not None
        distance = k3(_masked(logprobs, trained), _masked(reference, trained))
        lost = lost + kl * distance
    lost = _masked(lost.expand_as(logprobs), trained)
    low = _mean(((moved < 1 - clip_low) & (gain < 0)).to(logprobs.dtype), trained)
    high = _mean(((moved > 1 + clip_high) & (gain > 0)).to(logprobs.dtype), trained)
    value = _divided(lost, trained, loss, rows, tokens, row_tokens)
    return Loss(value, low, high, _mean(distance, trained).detach())


def log_ratio(logprobs: Tensor, old: Tensor, mask: Tensor, level: RatioLevel) -> Tensor:
    """Logarithm of the ratio of new to old probabilities.

    Returns:
        Shape (B, T) for `token`, (B, 1) for `sequence`: the mean over the trained tokens of a row.
    """
    difference = _masked(logprobs - old, mask)
    if level == "token":
        return difference
    return (difference.sum(1) / mask.sum(1).clamp(min=1)).unsqueeze(1)


def k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """Estimate of KL(policy || reference) from sampled tokens: e^d - d - 1 with d = log q - log p, never below 0.

    Schulman, "Approximating KL divergence" (2020); GRPO, arXiv 2402.03300, Eq. 4.

    Args:
        logprobs, reference: shape (B, T).
    """
    difference = reference - logprobs
    return difference.exp() - difference - 1


def token_logprobs(logits: Tensor, ids: Tensor, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """Log-probabilities of tokens, and the entropy at their positions.

    Args:
        logits: shape (B, L, V): of the whole sequence.
        ids: shape (B, L).
        temperature: that the tokens were sampled at.

    Returns:
        Shape (B, L - 1) twice, in nats: of tokens 1 to L - 1.
    """
    scores = torch.log_softmax(logits[:, :-1].float() / temperature, -1)
    return scores.gather(-1, ids[:, 1:, None])[..., 0], -(scores.exp() * scores).sum(-1)


def _divided(
    lost: Tensor, mask: Tensor, loss: LossName, rows: float | None, tokens: float | None, row_tokens: int | None
) -> Tensor:
    if loss == "grpo":
        return (lost.sum(1) / mask.sum(1).clamp(min=1)).sum() / (len(lost) if rows is None else rows)
    if loss == "dr_grpo":
        assert row_tokens is not None
        return lost.sum() / ((len(lost) if rows is None else rows) * row_tokens)
    return lost.sum() / (mask.sum().clamp(min=1) if tokens is None else tokens)


def _masked(values: Tensor, mask: Tensor) -> Tensor:
    """0 where nothing is trained, whatever stands there: infinite numbers too."""
    return torch.where(mask.bool(), values, torch.zeros_like(values))


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    if values.shape[1] == 1:
        return values.mean()
    return _masked(values, mask).sum() / mask.sum().clamp(min=1)


def _check(loss: str, kl: float, reference: Tensor | None, tokens: float | None, row_tokens: int | None) -> None:
    if kl and reference is None:
        raise UsageError(f"policy_loss(kl={kl}): expected the log-probabilities of a reference, got none")
    if (loss == "dr_grpo") != (row_tokens is not None):
        raise UsageError(
            f"policy_loss(loss={loss!r}, row_tokens={row_tokens}): dr_grpo divides by it, and only dr_grpo"
        )
    if tokens is not None and loss != "dapo":
        raise UsageError(f"policy_loss(loss={loss!r}, tokens={tokens}): only dapo divides by the tokens of a step")
