"""Rows that are packed into one: the same numbers and gradients as apart, or a refusal before the first step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from concertino import UsageError
from concertino_train.rollouts import Batch
from concertino_train.trainer import Algorithm
from concertino_train.trainer.row_packing import check_packing, packed, unpacked
from model_families import FAMILIES, Family

ONE = Algorithm(steps=1, questions_per_step=2, group_size=4, learning_rate=1e-3, max_grad_norm=0, device="cpu")
LOSSES = {
    "dapo": ONE.changed(kl=0.05),
    "grpo": ONE.changed(loss="grpo", ratio="sequence", micro_batch=3),
    "dr_grpo": ONE.changed(loss="dr_grpo", row_tokens=20, correction="token_truncate"),
}
KEPT_APART = [
    pytest.param(each, attention, id=f"{each.name}-{attention}", marks=() if each.name == quick else pytest.mark.slow)
    for attention, quick in (("sdpa", "gemma-3"), ("eager", "qwen-3"))
    for each in FAMILIES
    if each.name != "gpt-oss"
]


def test_rows_stand_one_behind_the_other_and_come_back_to_their_places() -> None:
    ids = torch.tensor([[0, 5, 6, 7, 8], [1, 2, 3, 0, 0]])
    seen = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    one = packed(ids, seen, ids)
    assert one["input_ids"].tolist() == [[5, 6, 7, 8, 1, 2, 3]]
    assert one["position_ids"].tolist() == [[0, 1, 2, 3, 0, 1, 2]]
    assert one["labels"].tolist() == [[-100, 6, 7, 8, -100, 2, 3]]
    back = unpacked(one["labels"][:, 1:].float(), seen)  # without the first token, which is never scored
    assert back.tolist() == [[0, 0, 6, 7, 8], [-100, 2, 3, 0, 0]]


@pytest.mark.parametrize("loss", LOSSES)
def test_packed_rows_have_the_gradients_of_rows_apart(
    loss: str, tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    batch, settings = made_batch(7), LOSSES[loss]
    apart, packed = (
        trained(tiny(), settings.changed(packing=packing), lambda tasks, step: batch)[1] for packing in (False, True)
    )
    assert float((apart.gradients[0] - packed.gradients[0]).abs().max()) <= 1e-5
    assert float(apart.gradients[0].abs().max()) > 5e-3
    for name in ("loss", "entropy", *(["kl"] if settings.kl else [])):
        assert packed.logs[0][name] == pytest.approx(apart.logs[0][name], abs=1e-5)


@pytest.mark.parametrize(("each", "attention"), KEPT_APART)
def test_each_family_but_one_keeps_packed_rows_apart(each: Family, attention: str) -> None:
    model = each.model(each.tokenizer(), attn_implementation=attention)
    check_packing(model)
    draw = torch.Generator().manual_seed(3)
    ids = torch.randint(1, 200, (3, 90), generator=draw)
    seen = torch.zeros_like(ids)
    for row, (first, last) in enumerate(((20, 90), (0, 5), (30, 75))):
        seen[row, first:last] = 1
    one = packed(ids, seen, ids)
    with torch.no_grad():
        together = model(one["input_ids"], position_ids=one["position_ids"], use_cache=False).logits[0]
        begin = 0
        for row in range(3):
            own = ids[row][seen[row].bool()]
            alone = model(own[None], use_cache=False).logits[0]
            assert (together[begin : begin + len(own)] - alone).abs().max() < 1e-4
            begin += len(own)


def test_a_model_that_lets_rows_see_each_other_is_refused_before_the_first_step(
    tiny: Callable[..., Any], trained: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny()
    # As an attention of one's own, of which transformers makes no mask.
    monkeypatch.setattr("transformers.masking_utils.find_packed_sequence_indices", lambda position_ids: None)
    with pytest.raises(UsageError, match=r"'sdpa', Qwen3ForCausalLM does not keep packed rows apart; .*packing=false"):
        trained(model, ONE.changed(packing=True), lambda tasks, step: pytest.fail("it was sampled"))


def test_gpt_oss_is_refused_whose_masks_know_no_position_ids() -> None:
    each = next(each for each in FAMILIES if each.name == "gpt-oss")
    with pytest.raises(UsageError, match=r"'eager', GptOssForCausalLM does not keep packed rows apart"):
        check_packing(each.model(each.tokenizer(), attn_implementation="eager"))


def test_a_model_without_position_ids_is_refused() -> None:
    from transformers import MptConfig, MptForCausalLM

    model = MptForCausalLM(MptConfig(d_model=16, n_heads=2, n_layers=1, vocab_size=64, max_seq_len=64))
    with pytest.raises(UsageError, match="MptForCausalLM does not keep packed rows apart"):
        check_packing(model)
