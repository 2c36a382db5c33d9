"""The reference losses against TRL's own, on one batch of several turns with old log-probabilities that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from concertino_local.codec import ByteCodec
from concertino_train.rollouts import Batch
from concertino_train.trainer.layout import layout
from concertino_train.trainer.losses import importance_weights
from concertino_train.trainer.tensors import loss_mask, placed_tensors, sequences
from concertino_train.trainer.tokenizer import codec_tokenizer
from plain_losses import policy_loss, token_logprobs

CLOSE = 1e-6


@pytest.fixture(scope="module")
def theirs(tiny: Callable[..., Any], codec: ByteCodec, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """TRL's trainer as it comes, with a tiny model."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    config = GRPOConfig(
        output_dir=str(tmp_path_factory.mktemp("trl")),
        max_steps=1,
        num_generations=4,
        per_device_train_batch_size=8,
        bf16=False,
        use_cpu=True,
        activation_checkpointing=False,
        report_to="none",
        disable_tqdm=True,
        beta=0.0,
        dataloader_pin_memory=False,
    )
    trainer = GRPOTrainer(
        model=tiny(),
        reward_funcs=[len],
        args=config,
        processing_class=codec_tokenizer(codec),
        train_dataset=Dataset.from_dict({"prompt": ["x"] * 8}),
    )
    trainer.current_gradient_accumulation_steps = 1
    trainer.max_completion_length = 40
    trainer.vllm_importance_sampling_correction = True
    trainer.model.train()
    return trainer


@pytest.fixture
def rows(theirs: Any, made_batch: Callable[..., Batch], codec: ByteCodec) -> dict[str, torch.Tensor]:
    """Eight rows of one to three turns; old and reference log-probabilities differ from the model's."""
    batch = made_batch(3)
    lengths = [len(row.prompt) + len(row.completion) for row in batch.rows]
    tensors = placed_tensors(batch, layout(range(8), lengths, [0] * 8, steps=1), codec.pad_id, "cpu")
    mask = loss_mask(tensors)
    assert 0 < int(mask.sum()) < int(tensors["completion_mask"].sum())
    tensors["num_items_in_batch"] = mask.sum()
    torch.manual_seed(1)
    now = logprobs_of(theirs.model, tensors).detach()
    tensors["old_per_token_logps"] = now + 0.3 * torch.randn_like(now)
    tensors["ref_per_token_logps"] = now + 0.3 * torch.randn_like(now)
    tensors["importance_sampling_ratio"] = torch.ones_like(now)
    return tensors


def logprobs_of(model: Any, tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    ids, seen = sequences(tensors)
    width = tensors["completion_ids"].shape[1]
    return token_logprobs(model(input_ids=ids, attention_mask=seen).logits, ids)[0][:, -width:]


def gradient(loss: torch.Tensor, model: Any) -> torch.Tensor:
    model.zero_grad()
    loss.backward()
    return torch.cat([value.grad.flatten() for value in model.parameters()])


def configure(trainer: Any, loss: str, level: str, kl: float, low: float, high: float) -> None:
    trainer.loss_type, trainer.importance_sampling_level, trainer.beta = loss, level, kl
    trainer.epsilon_low, trainer.epsilon_high = low, high
    trainer.use_vllm = False


@pytest.mark.parametrize("per_token", [False, True], ids=["per-row", "per-token"])
@pytest.mark.parametrize("kl", [0.0, 0.05])
@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("loss", ["grpo", "dapo", "bnpo", "dr_grpo"])
def test_the_reference_loss_is_that_of_trl(
    theirs: Any, rows: dict[str, torch.Tensor], loss: Any, level: Any, kl: float, per_token: bool
) -> None:
    low, high = (0.2, 0.28) if level == "token" else (0.02, 0.03)
    configure(theirs, loss, level, kl, low, high)
    theirs.args.use_bias_correction_kl = False
    if per_token:
        rows["advantages"] = rows["advantages"][:, None] * torch.linspace(0.5, 1.5, rows["tool_mask"].shape[1])
    expected = theirs._compute_loss(theirs.model, rows)
    expected_gradient = gradient(expected, theirs.model)
    result = policy_loss(
        logprobs_of(theirs.model, rows),
        rows["old_per_token_logps"],
        rows["advantages"],
        loss_mask(rows),
        loss=loss,
        ratio=level,
        clip_low=low,
        clip_high=high,
        kl=kl,
        reference=rows["ref_per_token_logps"],
        row_tokens=40 if loss == "dr_grpo" else None,
    )
    apart = (gradient(result.value, theirs.model) - expected_gradient).abs().max()
    assert abs(result.value.item() - expected.item()) <= CLOSE
    assert float(apart) <= CLOSE
    assert float(expected_gradient.abs().max()) > 1e-3
    assert float(result.clipped_low + result.clipped_high) > 0.05


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_neither_loss_reads_a_masked_position(
    theirs: Any, rows: dict[str, torch.Tensor], level: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old log-probabilities, and new ones too, as other labels would make them, moved by 5 nats."""
    configure(theirs, "dapo", level, 0.05, 0.2, 0.28)
    hidden, score = loss_mask(rows) == 0, theirs._get_per_token_logps_and_entropies

    def losses(old: float, new: float) -> tuple[float, float]:
        spoilt = {name: rows[name] + old * hidden for name in ("old_per_token_logps", "ref_per_token_logps")}
        ours = policy_loss(
            logprobs_of(theirs.model, rows) + new * hidden,
            spoilt["old_per_token_logps"],
            rows["advantages"],
            loss_mask(rows),
            ratio=level,
            clip_high=0.28,
            kl=0.05,
            reference=spoilt["ref_per_token_logps"],
        )

        def other_labels(*args: Any, **more: Any) -> Any:
            logprobs, *rest = score(*args, **more)
            return logprobs + new * hidden, *rest

        monkeypatch.setattr(theirs, "_get_per_token_logps_and_entropies", other_labels)
        return ours.value.item(), theirs._compute_loss(theirs.model, {**rows, **spoilt}).item()

    assert losses(5.0, 0.0) == losses(0.0, -5.0) == losses(0.0, 0.0)


def test_importance_weights_as_a_part_of_credit_are_trls_correction(theirs: Any, rows: dict[str, torch.Tensor]) -> None:
    """The trainer folds them into advantages, as TRL applies its own only where it runs vLLM itself."""
    for correction in ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask"):
        for level, loss in (("token", "dapo"), ("sequence", "grpo")):
            configure(theirs, loss, level, 0.05, 0.2, 0.28)
            weights = importance_weights(
                rows["ref_per_token_logps"], rows["old_per_token_logps"], loss_mask(rows), correction, 1.4
            )  # type: ignore[arg-type]
            assert float(weights.max()) > 1.01
            folded = {**rows, "advantages": rows["advantages"][:, None] * weights * loss_mask(rows)}
            ours = theirs._compute_loss(theirs.model, folded)
            ours_gradient = gradient(ours, theirs.model)
            theirs.use_vllm = True
            expected = theirs._compute_loss(theirs.model, {**rows, "importance_sampling_ratio": weights})
            theirs.use_vllm = False
            assert abs(ours.item() - expected.item()) <= CLOSE
            assert float((ours_gradient - gradient(expected, theirs.model)).abs().max()) <= CLOSE
