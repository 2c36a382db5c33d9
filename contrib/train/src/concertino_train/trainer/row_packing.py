"""Rows one behind the other in a single one, so that no padding is computed.

    packed(ids, seen, labels)    what the model reads: one row; its position ids start at 0 with every row of the batch
    unpacked(numbers, seen)      what it gave for each token, in the places of the batch

transformers makes an attention of such position ids in which every row sees itself alone. The invariant: numbers and
gradients are those of the rows apart; a model that lets rows see each other is refused before it is trained.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from concertino import UsageError
from torch import Tensor, nn

if TYPE_CHECKING:
    from trl.trainer.grpo_trainer import GRPOTrainer as _Base
else:
    # A mixin: the real base is the trainer that stands behind it.
    _Base = object

IGNORED = -100
"""The label of a token that is not scored."""
_LENGTH = 12
"""Tokens of the two rows that a model is tried with."""
_NEAR = 0.2
"""What a row behind another may differ from itself alone, as a share of what it differs if it sees the other."""
_ROUNDING = 1e-6


def packed(ids: Tensor, seen: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Rows of a batch as one row.

    Args:
        ids: shape (B, L).
        seen: shape (B, L): 1 for a token, 0 for padding on either side.
        labels: shape (B, L); `IGNORED` where a token is not scored.

    Returns:
        `input_ids`, `position_ids` and `labels`, shape (1, N), for the N tokens that are no padding.
    """
    kept, places = seen.bool(), seen.cumsum(1) - 1
    # Nothing stands before the first token of a row; in one row, the end of another one does.
    scored = labels.masked_fill(places == 0, IGNORED)
    return {
        "input_ids": ids[kept].unsqueeze(0),
        "position_ids": places[kept].unsqueeze(0),
        "labels": scored[kept].unsqueeze(0),
    }


def unpacked(numbers: Tensor, seen: Tensor) -> Tensor:
    """Numbers of tokens in the places of the batch.

    Args:
        numbers: shape (1, N), or (1, N - 1) without the first token, which is never scored.
        seen: as in `packed`.

    Returns:
        Shape (B, L); 0 for padding.
    """
    kept = seen.bool()
    missing = int(kept.sum()) - numbers.shape[1]
    return numbers.new_zeros(kept.shape).masked_scatter(kept, nn.functional.pad(numbers[0], (missing, 0)))


class PackedScoring(_Base):
    """Goes before TRL's trainer.

    Attributes:
        packing: whether rows that are scored together are one row.
    """

    packing: bool = False

    def _get_per_token_logps_and_entropies(
        self, model: nn.Module, input_ids: Tensor, attention_mask: Tensor, logits_to_keep: int, **more: Any
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        if not self.packing:
            compute: Any = super()._get_per_token_logps_and_entropies  # it has no annotations
            found: tuple[Tensor, Tensor | None, Tensor | None] = compute(
                model, input_ids, attention_mask, logits_to_keep, **more
            )
            return found
        labels = input_ids.clone()
        labels[:, :-logits_to_keep] = IGNORED
        with self.accelerator.autocast():
            given = model(**packed(input_ids, attention_mask, labels), fused_lm_head=True)
        numbers, entropies = (
            unpacked(each, attention_mask)[:, -logits_to_keep:] for each in (given.log_probs, given.entropy)
        )
        # No loss of the router: TRL is told that it has no weight.
        return numbers, entropies, None


def check_packing(model: Any, computing: AbstractContextManager[Any] | None = None) -> None:
    """Refuse a model that lets packed rows see each other, by a trial with two short ones.

    Args:
        model: of transformers, or of peft.
        computing: the context in which the model is trained.

    Raises:
        UsageError: it does; says what to take.
    """
    size = model.get_input_embeddings().weight.shape[0]
    one, other = torch.arange(_LENGTH) % size, torch.arange(_LENGTH).flip(0) * 3 % size
    begin = torch.arange(_LENGTH)
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), computing or nullcontext():
            alone = _scores(model, other, begin)
            behind = _scores(model, torch.cat([one, other]), torch.cat([begin, begin]))
            seeing = _scores(model, torch.cat([one, other]), torch.arange(2 * _LENGTH))
    except TypeError as error:  # its forward pass knows no position ids
        raise _refused(model) from error
    finally:
        model.train(training)
    apart, effect = ((each - alone).abs().mean().item() for each in (behind, seeing))
    # Not apart > ...: numbers that are no numbers are refused, too.
    if not apart <= _NEAR * effect + _ROUNDING:
        raise _refused(model)


def _scores(model: Any, ids: Tensor, positions: Tensor) -> Tensor:
    """Log-probabilities of all tokens behind the last ones, shape (_LENGTH, V)."""
    device = model.get_input_embeddings().weight.device
    inputs = {"input_ids": ids.unsqueeze(0).to(device), "position_ids": positions.unsqueeze(0).to(device)}
    logits: Tensor = model(**inputs, use_cache=False).logits
    return logits[0, -_LENGTH:].float().log_softmax(-1)


def _refused(model: Any) -> UsageError:
    attention = getattr(model.config, "_attn_implementation", None)
    return UsageError(
        f"trainer.packing=true: with the attention {attention!r}, {type(model).__name__} does not keep packed rows "
        "apart; take another one (model.attention=sdpa), or trainer.packing=false"
    )
