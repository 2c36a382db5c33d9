"""Losses by hand: small numbers worked out on paper, and what a mask means. `test_trainer_losses` compares TRL's."""

from __future__ import annotations

import math
from typing import Any

import pytest
from concertino import UsageError

torch = pytest.importorskip("torch", reason="torch is not installed; losses need it")

from concertino_train.trainer.losses import importance_weights  # noqa: E402
from plain_losses import k3, policy_loss, token_logprobs  # noqa: E402

MASK = torch.tensor([[1, 0, 1, 1], [1, 1, 0, 0]])


def drawn(seed: int = 0) -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    new, move = torch.randn(2, 4, generator=generator), torch.randn(2, 4, generator=generator)
    return new.requires_grad_(True), (new - 0.4 * move).detach(), torch.tensor([1.5, -0.7])


def by_ratio(ratio: float, advantage: float) -> tuple[float, float]:
    """Loss and gradient of one token whose probability has changed by a ratio."""
    new = torch.tensor([[math.log(ratio)]], requires_grad=True)
    loss = policy_loss(new, torch.zeros(1, 1), torch.tensor([advantage]), torch.ones(1, 1), clip_high=0.28).value
    loss.backward()
    return loss.item(), new.grad.item()


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient"),
    [
        (1.1, 2.0, -2.2, -2.2),
        (1.5, 2.0, -2.56, 0.0),
        (0.5, 2.0, -1.0, -1.0),
        (0.9, -1.0, 0.9, 0.9),
        (0.5, -1.0, 0.8, 0.0),
        (1.5, -1.0, 1.5, 1.5),
    ],
)
def test_a_ratio_beyond_its_bound_has_no_gradient(ratio: float, advantage: float, loss: float, gradient: float) -> None:
    assert by_ratio(ratio, advantage) == pytest.approx((loss, gradient), abs=1e-6)


def test_loss_types_differ_only_in_what_they_divide_by() -> None:
    new, old, gain = drawn()
    moved = (new - old).exp()
    lost = -torch.min(moved * gain[:, None], moved.clamp(0.8, 1.2) * gain[:, None]) * MASK
    expected = {
        "grpo": (lost[0].sum() / 3 + lost[1].sum() / 2) / 2,
        "bnpo": lost.sum() / 5,
        "dapo": lost.sum() / 5,
        "dr_grpo": lost.sum() / 2 / 10,
    }
    for name, value in expected.items():
        extra = {"row_tokens": 10} if name == "dr_grpo" else {}
        assert policy_loss(new, old, gain, MASK, loss=name, **extra).value.item() == pytest.approx(value.item())  # type: ignore[arg-type]
    assert policy_loss(new, old, gain, MASK, tokens=10).value.item() == pytest.approx(lost.sum().item() / 10)
    assert policy_loss(new, old, gain, MASK, loss="grpo", rows=4).value.item() == pytest.approx(
        expected["grpo"].item() / 2
    )


def test_a_sequence_has_one_ratio_the_geometric_mean() -> None:
    new, old, gain = drawn()
    result = policy_loss(new, old, gain, MASK, loss="grpo", ratio="sequence", clip_low=0.9, clip_high=9.0)
    ratios = [math.exp(((new - old) * MASK)[row].sum().item() / count) for row, count in ((0, 3), (1, 2))]
    assert result.value.item() == pytest.approx(-(ratios[0] * 1.5 + ratios[1] * -0.7) / 2, rel=1e-6)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("loss", ["grpo", "dapo", "bnpo", "dr_grpo"])
def test_what_stands_at_masked_positions_changes_nothing(loss: Any, level: Any) -> None:
    """Even what is infinite or not a number."""
    results = []
    for junk in (0.0, 5.0, float("inf"), float("nan")):
        new, old, gain = drawn()
        hidden = MASK == 0
        spoilt = new.masked_fill(hidden, junk) if junk == junk else new
        credit = gain[:, None].expand(2, 4).masked_fill(hidden, junk)
        result = policy_loss(
            spoilt,
            old.masked_fill(hidden, junk),
            credit,
            MASK,
            loss=loss,
            ratio=level,
            kl=0.1,
            reference=(old * 0.9).masked_fill(hidden, -junk),
            weights=(old.exp()).masked_fill(hidden, junk),
            row_tokens=7 if loss == "dr_grpo" else None,
        )
        (gradient,) = torch.autograd.grad(result.value, new)
        results.append([float(value.detach()) for value in result] + gradient.flatten().tolist())
    assert results[1:] == results[:1] * 3


def test_nothing_trained_is_a_loss_of_zero_with_a_gradient_of_zero() -> None:
    new, old, gain = drawn()
    for loss in ("grpo", "dapo", "bnpo"):
        value = policy_loss(new, old, gain, torch.zeros(2, 4), loss=loss).value  # type: ignore[arg-type]
        (gradient,) = torch.autograd.grad(value, new)
        assert value.item() == 0.0
        assert not gradient.any()


def test_k3_is_never_negative_and_zero_where_both_agree() -> None:
    new, old, _ = drawn()
    assert (k3(new, old) > 0).all()
    assert not k3(new, new).any()


def test_importance_weights_are_cut_at_the_cap_or_left_out() -> None:
    old, sampled = torch.zeros(1, 3), torch.tensor([[math.log(0.5), math.log(0.25), -9.0]])
    mask = torch.tensor([[1, 1, 0]])

    def weights(correction: Any, cap: float) -> list[float]:
        found: list[float] = importance_weights(old, sampled, mask, correction, cap)[0].tolist()
        return found

    assert weights("token_truncate", 3.0) == pytest.approx([2, 3, 1])
    assert weights("token_mask", 3.0) == pytest.approx([2, 0, 1])
    assert weights("sequence_truncate", 9.0) == pytest.approx([8])
    assert weights("sequence_mask", 3.0) == [0.0]
    assert weights("none", 3.0) == [1, 1, 1]


def test_log_probabilities_are_taken_at_the_temperature() -> None:
    logits, ids = torch.randn(1, 3, 5), torch.tensor([[0, 3, 1]])
    found, entropy = token_logprobs(logits, ids, temperature=2.0)
    expected = torch.log_softmax(logits / 2, -1)
    assert found.tolist()[0] == pytest.approx([float(expected[0, 0, 3]), float(expected[0, 1, 1])])
    assert entropy.tolist()[0] == pytest.approx((-expected.exp() * expected).sum(-1)[0, :2].tolist())


@pytest.mark.parametrize(
    "wrong", [{"kl": 0.1}, {"loss": "dr_grpo"}, {"row_tokens": 5}, {"loss": "grpo", "tokens": 5.0}]
)
def test_arguments_that_would_be_ignored_are_refused(wrong: dict[str, Any]) -> None:
    new, old, gain = drawn()
    with pytest.raises(UsageError, match="policy_loss"):
        policy_loss(new, old, gain, MASK, **wrong)
