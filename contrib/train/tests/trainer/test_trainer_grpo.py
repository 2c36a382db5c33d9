"""The trainer over TRL: gradients are those of the rows that are trained, whatever surrounds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from concertino import UsageError
from concertino_local.codec import ByteCodec
from concertino_train.rollouts import Batch
from concertino_train.trainer import Algorithm, OrchestratorGRPOTrainer
from plain_trainer import PlainTrainer

ONE = Algorithm(steps=1, questions_per_step=2, group_size=4, learning_rate=1e-3, max_grad_norm=0, device="cpu")
GSPO = ONE.changed(loss="grpo", ratio="sequence", clip_low=3e-4, clip_high=4e-4)
LOSSES = {"dapo": ONE, "grpo": ONE.changed(loss="grpo"), "dr_grpo": ONE.changed(loss="dr_grpo", row_tokens=20)}


def without(batch: Batch, places: list[int]) -> Batch:
    """The same batch with some rows filtered."""
    keep = batch.keep.copy()
    keep[places] = False
    return replace(batch, keep=keep, credit=np.where(keep, batch.credit, 0.0))


def removed(batch: Batch, places: list[int]) -> Batch:
    """The same batch without some rows, as if they had never been there."""
    left = [n for n in range(len(batch)) if n not in places]
    return replace(batch, rows=[batch.rows[n] for n in left], credit=batch.credit[left], keep=batch.keep[left])


@pytest.mark.parametrize("loss", LOSSES)
def test_filtered_rows_leave_the_gradients_of_the_others_as_they_were(
    loss: str, tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    batch, out = made_batch(5), [1, 2, 6]
    _, filtered = trained(tiny(), LOSSES[loss], lambda tasks, step: without(batch, out))
    _, by_hand = trained(tiny(), LOSSES[loss], lambda tasks, step: removed(batch, out))
    apart = (filtered.gradients[0] - by_hand.gradients[0]).abs().max()
    assert float(apart) <= 1e-7
    assert float(by_hand.gradients[0].abs().max()) > 1e-2
    assert filtered.logs[0]["tokens/trained"] == sum(row.trained for row in removed(batch, out).rows)


def test_a_step_with_every_row_filtered_has_zero_gradients(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any], parameters: Any
) -> None:
    model = tiny()
    before = parameters(model)
    batch = made_batch(5)
    for sample in (lambda tasks, step: without(batch, list(range(8))), lambda tasks, step: Batch([])):
        _, recorder = trained(model, ONE.changed(steps_per_generation=2, kl=0.1), sample)
        assert [int(each.count_nonzero()) for each in recorder.gradients] == [0, 0]
    assert torch.equal(parameters(model), before)


@pytest.mark.parametrize("loss", LOSSES)
def test_micro_batches_change_no_gradient(
    loss: str, tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    batch, settings = made_batch(7), LOSSES[loss].changed(kl=0.05)
    found = [trained(tiny(), settings.changed(micro_batch=most), lambda tasks, step: batch)[1] for most in (8, 3)]
    assert float((found[0].gradients[0] - found[1].gradients[0]).abs().max()) <= 1e-6
    assert found[0].logs[0]["loss"] == pytest.approx(found[1].logs[0]["loss"], abs=1e-5)


def test_optimizer_steps_do_not_depend_on_how_many_rows_or_turns_there_are(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    sizes = [(2, 4), (1, 2), (4, 5), (1, 1)]
    rows = iter(sizes)
    settings = ONE.changed(steps=4, steps_per_generation=2, iterations=2, micro_batch=4)
    trainer, recorder = trained(tiny(), settings, lambda tasks, step: made_batch(step, *next(rows)))
    assert len(recorder.gradients) == trainer.state.global_step == 4 * 2 * 2
    assert [each["generation"] for each in recorder.logs[:-1]] == [1, 2, 3, 4]
    assert trainer.generation == 4


def far(tiny: Callable[..., Any], batch: Batch, trained: Callable[..., Any], settings: Algorithm) -> Any:
    """A long step away from the sampling policy."""
    algorithm = settings.changed(steps_per_generation=4, iterations=2, learning_rate=5e-3)
    return trained(tiny(), algorithm, lambda tasks, step: batch)


def test_clipping_is_active_where_a_generation_makes_several_updates(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any], parameters: Any
) -> None:
    batch = made_batch(2)
    low, low_record = far(tiny, batch, trained, ONE.changed(clip_high=0.2))
    high, high_record = far(tiny, batch, trained, ONE.changed(clip_high=0.28))
    assert low_record.logs[0]["clip_ratio/high_mean"] > 0
    assert low_record.logs[0]["clip_ratio/low_mean"] > 0
    assert low_record.logs[0]["loss"] != high_record.logs[0]["loss"]
    assert not torch.equal(parameters(low.model), parameters(high.model))
    _, on_policy = trained(tiny(), ONE, lambda tasks, step: batch)
    assert on_policy.logs[0]["clip_ratio/region_mean"] == 0
    assert on_policy.logs[0]["entropy"] > 0


def test_gspo_clips_whole_sequences(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    _, record = far(tiny, made_batch(2), trained, GSPO)
    assert record.logs[0]["clip_ratio/region_mean"] > 0.1
    assert record.logs[0]["entropy"] > 0


def test_the_reference_is_the_policy_as_it_was(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    """Near the start the KL is small, and it grows; with a large weight the policy stays nearer."""
    settings = ONE.changed(steps=6, kl=0.01, learning_rate=1e-2)
    _, loose = trained(tiny(), settings, lambda tasks, step: made_batch(1))
    _, tight = trained(tiny(), settings.changed(kl=3.0), lambda tasks, step: made_batch(1))
    kl = [each["kl"] for each in loose.logs[:-1]]
    assert abs(kl[0]) < 1e-6 < kl[1] < kl[-1]
    assert tight.logs[-2]["kl"] < 0.5 * kl[-1]


@pytest.mark.parametrize(
    "settings",
    [
        ONE.changed(steps_per_generation=2, iterations=2, micro_batch=3, kl=0.05, max_grad_norm=0.5, weight_decay=0.1),
        GSPO.changed(steps_per_generation=2, schedule="cosine", warmup=2, clip_low=0.05, clip_high=0.05),
        LOSSES["dr_grpo"].changed(steps_per_generation=3, schedule="linear", old="sampled", temperature=1.5),
        ONE.changed(correction="token_truncate", correction_cap=1.5, kl=0.05),
    ],
    ids=["dapo", "gspo", "dr_grpo-sampled", "corrected"],
)
def test_weights_are_those_of_a_trainer_in_plain_torch(
    settings: Algorithm,
    tiny: Callable[..., Any],
    made_batch: Callable[..., Batch],
    trained: Callable[..., Any],
    parameters: Any,
    codec: ByteCodec,
) -> None:
    """All of it: layout, losses, clipping of gradients, schedule, with rows that differ in number from step to step."""

    def sample(tasks: list[int], step: int) -> Batch:
        return without(made_batch(sum(tasks) + step, 2, 3 + step), [step])

    algorithm = settings.changed(steps=3)
    ours, record = trained(tiny(), algorithm, sample)
    plain = PlainTrainer(tiny(), algorithm, sample, list(range(8)), codec=codec)
    plain.train()
    moved = (parameters(ours.model) - parameters(tiny())).abs().max()
    apart = (parameters(ours.model) - parameters(plain.model)).abs().max()
    assert float(apart) <= 2e-5 < 1e-3 < float(moved)
    assert [each["loss"] for each in plain.figures] == pytest.approx(
        [each["loss"] for each in record.logs[:-1]], abs=1e-4
    )


def test_credit_may_stand_on_single_tokens(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    """The same number on all tokens of a row is the same as the number on the row."""
    batch = made_batch(4)
    spread: Any = [np.full(len(row.completion), value) for row, value in zip(batch.rows, batch.credit, strict=True)]
    _, rows = trained(tiny(), ONE, lambda tasks, step: batch)
    _, tokens = trained(tiny(), ONE, lambda tasks, step: replace(batch, credit=spread))
    spread[0] = spread[0] * np.linspace(0, 1, len(spread[0]))
    _, other = trained(tiny(), ONE, lambda tasks, step: replace(batch, credit=spread))
    assert torch.equal(rows.gradients[0], tokens.gradients[0])
    assert not torch.equal(rows.gradients[0], other.gradients[0])
    spread[0] = spread[0][1:]
    with pytest.raises(UsageError, match="credit of row"):
        trained(tiny(), ONE, lambda tasks, step: replace(batch, credit=spread))


def test_figures_of_the_batch_and_of_the_sampler_are_logged(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    batch = made_batch(4)
    settings = ONE.changed(steps_per_generation=2, correction="sequence_mask")
    log = trained(tiny(), settings, lambda tasks, step: batch)[1].logs[0]
    assert log["reward"] == pytest.approx(batch.figures["reward"])
    assert log["tokens/trained"] == sum(row.trained for row, kept in zip(batch.rows, batch.keep, strict=True) if kept)
    assert log["tokens/computed"] == sum(len(row.prompt) + len(row.completion) for row in batch.rows)
    assert 0 < log["sampling/difference_mean"] < log["sampling/difference_max"]
    assert 0 <= log["sampling/weight_mean"] <= 3
    assert log["seconds/sample"] >= 0


def test_the_drift_of_each_trained_token_is_told_where_it_is_computed(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    batch, told = made_batch(4), list[tuple[int, dict[int, list[float]]]]()

    def drift_of(**settings: Any) -> Any:
        told.clear()
        heard = trained(
            tiny(),
            ONE.changed(**settings),
            lambda tasks, step: batch,
            hear_drift=lambda step, drift: told.append((step, drift())),
        )
        return heard[1].logs[0]

    log = drift_of(steps_per_generation=2, correction="sequence_mask")
    ((step, drift),) = told
    assert step == 0
    kept = {row: batch.rows[row].trained for row in np.flatnonzero(batch.keep).tolist()}
    assert {row: len(values) for row, values in drift.items()} == kept
    values = np.concatenate(list(drift.values()))
    assert np.abs(values).mean() == pytest.approx(log["sampling/difference_mean"], rel=1e-5)
    assert np.abs(values).max() == pytest.approx(log["sampling/difference_max"], rel=1e-5)
    drift_of(correction="none")
    assert told == []


def test_evaluation_is_left_to_rollouts(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    trainer, _ = trained(tiny(), ONE, lambda tasks, step: made_batch(0))
    trainer.model.eval()
    with pytest.raises(UsageError, match="by rollouts"):
        trainer._prepare_inputs(None)


def test_a_model_is_sampled_with_dropout_off_and_nothing_is_sent_or_printed(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], codec: ByteCodec, tmp_path: Any, capfd: Any
) -> None:
    model, modes = tiny(), []

    def sample(tasks: list[int], step: int) -> Batch:
        modes.append(model.training)
        return made_batch(step)

    trainer = OrchestratorGRPOTrainer(model, ONE, sample, [1, 2], codec=codec, folder=tmp_path)
    trainer.train()
    assert modes == [False]
    assert capfd.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def test_activations_that_are_computed_again_give_the_same_gradients(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    settings = ONE.changed(kl=0.05)
    kept = trained(tiny(), settings, lambda tasks, step: made_batch(1))[1]
    again = trained(tiny(), settings.changed(gradient_checkpointing=True), lambda tasks, step: made_batch(1))[1]
    assert float((kept.gradients[0] - again.gradients[0]).abs().max()) <= 1e-6


def test_bfloat16_computes_about_the_same(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    exact = trained(tiny(), ONE, lambda tasks, step: made_batch(1))[1].gradients[0]
    rough = trained(tiny(), ONE.changed(precision="bfloat16"), lambda tasks, step: made_batch(1))[1].gradients[0]
    assert not torch.equal(exact, rough)
    assert float(torch.cosine_similarity(exact, rough, dim=0)) > 0.98
