"""Roles: one adapter each in one trainer, or one whole model each in trainers that take turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from concertino import UsageError
from concertino_local.codec import ByteCodec
from concertino_train.rollouts import Batch
from concertino_train.trainer import Algorithm, RoleTrainers
from concertino_train.trainer.roles import role_adapters, save_adapters

ROLES = ("planner", "critic")
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks transformers so
ONE = Algorithm(steps=1, questions_per_step=2, group_size=4, learning_rate=1e-2, max_grad_norm=0, device="cpu")


def trained_tokens(batch: Batch) -> int:
    return sum(row.trained for row, kept in zip(batch.rows, batch.keep, strict=True) if kept)


@pytest.fixture
def adapted(tiny: Callable[..., Any]) -> Callable[[], Any]:
    """A model with an adapter for each role, whose weights all have gradients."""
    from peft import LoraConfig

    def make(seed: int = 0) -> Any:
        torch.manual_seed(5)
        config = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
        return role_adapters(tiny(), ROLES, config)

    return make


def of_role(model: Any, role: str) -> Any:
    return torch.cat([value.detach().flatten() for name, value in model.named_parameters() if f".{role}." in name])


def only(batch: Batch, role: str) -> Batch:
    """Nothing but the rows of a role is trained."""
    keep = np.array([row.role == role for row in batch.rows])
    return replace(batch, keep=keep, credit=np.where(keep, batch.credit, 0.0))


def gradient_of(recorder: Any, model: Any, role: str, step: int = 0) -> Any:
    sizes = [value.numel() for value in model.parameters()]
    parts = recorder.gradients[step].split(sizes)
    names = [name for name, _ in model.named_parameters()]
    return torch.cat([part for name, part in zip(names, parts, strict=True) if f".{role}." in name])


def test_rows_of_one_role_change_no_gradient_of_another(
    adapted: Callable[[], Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    batch = made_batch(1, roles=ROLES)
    both, planner = adapted(), adapted()
    _, of_both = trained(both, ONE.changed(micro_batch=3), lambda tasks, step: batch, roles=ROLES)
    _, of_planner = trained(
        planner, ONE.changed(micro_batch=3), lambda tasks, step: only(batch, "planner"), roles=ROLES
    )
    assert int(gradient_of(of_planner, planner, "critic").count_nonzero()) == 0
    assert int(gradient_of(of_planner, planner, "planner").count_nonzero()) > 0
    # The denominator counts the tokens of both roles, so the gradients are the same but for that factor.
    share = trained_tokens(only(batch, "planner")) / trained_tokens(batch)
    apart = gradient_of(of_both, both, "planner") - share * gradient_of(of_planner, planner, "planner")
    assert float(apart.abs().max()) <= 1e-6
    assert torch.equal(of_role(planner, "critic"), of_role(adapted(), "critic"))
    assert not torch.equal(of_role(both, "critic"), of_role(adapted(), "critic"))
    assert of_both.logs[0]["planner/entropy"] != of_both.logs[0]["critic/entropy"]


def test_old_and_reference_probabilities_are_those_of_the_rows_own_role(
    adapted: Callable[[], Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    """In the first of several updates no ratio has moved and there is no distance, for either role."""
    settings = ONE.changed(steps_per_generation=2, kl=0.1, learning_rate=1e-30)
    _, recorder = trained(adapted(), settings, lambda tasks, step: made_batch(1, roles=ROLES), roles=ROLES)
    log = recorder.logs[0]
    assert log["clip_ratio/region_mean"] == 0
    for role in ROLES:
        assert abs(log[f"{role}/kl"]) < 1e-6


def test_adapters_are_saved_one_folder_each_and_load_alone(
    adapted: Callable[[], Any],
    tiny: Callable[..., Any],
    made_batch: Callable[..., Batch],
    trained: Callable[..., Any],
    tmp_path: Path,
) -> None:
    from peft import PeftModel

    model = adapted()
    trained(model, ONE.changed(steps=2), lambda tasks, step: made_batch(step, roles=ROLES), roles=ROLES)
    folders = save_adapters(model, tmp_path / "adapters")
    assert folders == [tmp_path / "adapters" / role for role in ROLES]
    ids = torch.arange(12)[None]
    for role, folder in zip(ROLES, folders, strict=True):
        alone = PeftModel.from_pretrained(tiny(), folder).eval()
        model.set_adapter(role)
        assert torch.equal(alone(input_ids=ids).logits, model.eval()(input_ids=ids).logits)
        assert not torch.equal(alone(input_ids=ids).logits, tiny().eval()(input_ids=ids).logits)


def test_training_of_adapters_resumes_with_all_of_them(
    adapted: Callable[[], Any], made_batch: Callable[..., Batch], trained: Callable[..., Any], tmp_path: Path
) -> None:
    from concertino_train.trainer import OrchestratorGRPOTrainer

    settings = ONE.changed(steps=4, steps_per_generation=2, kl=0.05)
    straight, halved = adapted(), adapted()

    def sample(tasks: list[int], step: int) -> Batch:
        return made_batch(step, roles=ROLES)

    trained(straight, settings, sample, roles=ROLES, save_every=2, folder=tmp_path)
    again = OrchestratorGRPOTrainer(
        halved, settings, sample, list(range(8)), codec=ByteCodec(), folder=tmp_path, roles=ROLES
    )
    again.train(tmp_path / "checkpoint-4")
    for role in ROLES:
        assert float((of_role(straight, role) - of_role(halved, role)).abs().max()) <= 1e-6
        assert not torch.equal(of_role(halved, role), of_role(adapted(), role))


def test_roles_without_an_adapter_are_refused(
    adapted: Callable[[], Any], tiny: Callable[..., Any], made_batch: Callable[..., Batch], trained: Callable[..., Any]
) -> None:
    from peft import LoraConfig

    with pytest.raises(UsageError, match=r"no adapter for critic, judge.*role_adapters"):
        trained(tiny(), ONE, lambda tasks, step: made_batch(1), roles=("critic", "judge"))
    with pytest.raises(UsageError, match="rows of orchestrator and adapters for planner, critic"):
        trained(adapted(), ONE, lambda tasks, step: made_batch(1), roles=ROLES)
    with pytest.raises(UsageError, match="two different roles"):
        role_adapters(tiny(), ["planner"], LoraConfig())
    with pytest.raises(UsageError, match="letters, digits"):
        role_adapters(tiny(), ["planner", "../x"], LoraConfig())
    with pytest.raises(UsageError, match="part of the model"):
        role_adapters(tiny(), ["planner", "layers"], LoraConfig())
    noisy = role_adapters(tiny(), ROLES, LoraConfig(lora_dropout=0.1, target_modules=["q_proj"]))
    with pytest.raises(UsageError, match="lora_dropout=0"):
        trained(noisy, ONE, lambda tasks, step: made_batch(1, roles=ROLES), roles=ROLES)


# -- one whole model each ----------------------------------------------------------------------------------------------


def test_trainers_of_roles_take_turns_on_one_stream_of_rollouts(
    tiny: Callable[..., Any],
    made_batch: Callable[..., Batch],
    codec: ByteCodec,
    tmp_path: Path,
    parameters: Any,
    light: None,
) -> None:
    """Each model ends as if it had been trained alone on its rows, and every step is sampled by current weights."""
    models = {role: tiny(seed) for seed, role in enumerate(ROLES)}
    settings = ONE.changed(steps=3, steps_per_generation=2)
    seen: list[tuple[int, list[float]]] = []

    def sample(tasks: list[int], step: int) -> Batch:
        assert len(tasks) == 2
        seen.append((step, [float(parameters(model).sum()) for model in models.values()]))
        return made_batch(step, roles=ROLES)

    pair = RoleTrainers(models, settings, sample, list(range(8)), codec=codec, folder=tmp_path)
    results = pair.train()
    assert list(results) == list(ROLES)
    assert [step for step, _ in seen] == [0, 1, 2]
    for number, role in enumerate(ROLES):
        weights: list[float] = []
        alone = tiny(number)

        def own(tasks: list[int], step: int, model: Any = alone, sums: list[float] = weights) -> Batch:
            sums.append(float(parameters(model).sum()))
            return made_batch(step, roles=ROLES)

        from concertino_train.trainer import OrchestratorGRPOTrainer

        single = OrchestratorGRPOTrainer(
            alone, settings, own, list(range(8)), codec=codec, folder=tmp_path / "x", role=role
        )
        single.train()
        assert torch.equal(parameters(models[role]), parameters(alone))
        assert [sums[number] for _, sums in seen] == weights


def test_trainers_of_roles_resume_from_the_newest_step_that_all_have(
    tiny: Callable[..., Any],
    made_batch: Callable[..., Batch],
    codec: ByteCodec,
    tmp_path: Path,
    parameters: Any,
    light: None,
) -> None:
    settings = ONE.changed(steps=4)

    def trainers() -> tuple[dict[str, Any], RoleTrainers]:
        models = {role: tiny(seed) for seed, role in enumerate(ROLES)}
        pair = RoleTrainers(
            models,
            settings,
            lambda tasks, step: made_batch(step + tasks[0], roles=ROLES),
            list(range(8)),
            codec=codec,
            folder=tmp_path,
            save_every=1,
        )
        return models, pair

    with pytest.raises(UsageError, match="no step of which every role"):
        trainers()[1].train(resume=True)
    straight, first = trainers()
    first.train()
    (tmp_path / "critic" / "checkpoint-4" / "concertino.json").unlink()
    (tmp_path / "critic" / "checkpoint-3" / "concertino.json").unlink()
    again, second = trainers()
    second.train(resume=True)
    assert second.trainers["planner"].generation == 4
    for role in ROLES:
        assert float((parameters(straight[role]) - parameters(again[role])).abs().max()) <= 1e-6


def test_an_error_of_one_trainer_ends_them_all(
    tiny: Callable[..., Any], made_batch: Callable[..., Batch], codec: ByteCodec, tmp_path: Path, light: None
) -> None:
    def sample(tasks: list[int], step: int) -> Batch:
        if step == 1:
            raise ValueError("the pool is gone")
        return made_batch(step, roles=ROLES)

    models = {role: tiny() for role in ROLES}
    pair = RoleTrainers(models, ONE.changed(steps=3), sample, [1, 2], codec=codec, folder=tmp_path)
    with pytest.raises(ValueError, match="the pool is gone"):
        pair.train()
    with pytest.raises(UsageError, match="two roles or more"):
        RoleTrainers({"planner": tiny()}, ONE, sample, [1, 2], codec=codec, folder=tmp_path)
