"""Settings: every option reaches TRL or is refused; an installed TRL that does not fit is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from concertino import UsageError
from concertino_train.trainer import Algorithm, contract
from concertino_train.trainer.arguments import grpo_arguments
from concertino_train.trainer.contract import check_trl

CPU = Algorithm(device="cpu")
OTHERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "loss": ("grpo", {"loss_type": "grpo"}),
    "ratio": ("sequence", {"importance_sampling_level": "sequence"}),
    "clip_low": (0.1, {"epsilon": 0.1}),
    "clip_high": (0.3, {"epsilon_high": 0.3}),
    "kl": (0.1, {"beta": 0.1}),
    "temperature": (0.7, {"temperature": 0.7}),
    "learning_rate": (1e-3, {"learning_rate": 1e-3}),
    "schedule": ("cosine", {"lr_scheduler_type": "cosine"}),
    "warmup": (3, {"warmup_steps": 3, "lr_scheduler_type": "constant_with_warmup"}),
    "weight_decay": (0.1, {"weight_decay": 0.1}),
    "max_grad_norm": (0.5, {"max_grad_norm": 0.5}),
    "steps": (7, {"max_steps": 7}),
    "group_size": (4, {"num_generations": 4}),
    "iterations": (3, {"num_iterations": 3, "max_steps": 300}),
    "steps_per_generation": (5, {"steps_per_generation": 5, "max_steps": 500}),
    "seed": (3, {"seed": 3}),
    "precision": ("bfloat16", {"bf16": True}),
    "gradient_checkpointing": (True, {"activation_checkpointing": True}),
}
OWN = {
    "row_tokens",
    "old",
    "correction",
    "correction_cap",
    "questions_per_step",
    "micro_batch",
    "device",
    "packing",
    "sharding",
    "optimizer",
}
"""Read by the trainer itself, and tested with it."""


def test_every_setting_of_the_algorithm_is_read() -> None:
    assert set(Algorithm.model_fields) == set(OTHERS) | OWN


@pytest.mark.parametrize("name", OTHERS)
def test_a_setting_reaches_trl(name: str, tmp_path: Path) -> None:
    value, expected = OTHERS[name]
    usual, other = (grpo_arguments(each, tmp_path) for each in (CPU, CPU.changed(**{name: value})))
    for argument, wanted in expected.items():
        assert getattr(other, argument) == wanted != getattr(usual, argument)


def test_dr_grpo_divides_by_the_length_that_is_given(tmp_path: Path) -> None:
    arguments = grpo_arguments(CPU.changed(loss="dr_grpo", row_tokens=640), tmp_path)
    assert arguments.max_completion_length == 640


def test_defaults_are_safe_on_a_cpu_and_send_nothing(tmp_path: Path) -> None:
    arguments = grpo_arguments(CPU, tmp_path)
    assert arguments.use_cpu
    assert not arguments.bf16
    assert not arguments.log_completions
    assert not arguments.push_to_hub
    assert arguments.report_to == []


def test_steps_between_checkpoints_and_log_lines_are_steps_of_rollouts(tmp_path: Path) -> None:
    arguments = grpo_arguments(CPU.changed(iterations=2, steps_per_generation=3), tmp_path, save_every=5)
    assert (arguments.save_steps, arguments.logging_steps) == (30, 6)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"loss": "ppo"}, "loss='ppo'"),
        ({"ratio": "row"}, "ratio"),
        ({"clip_low": 0}, "clip_low"),
        ({"clip_low": 1.0}, "clip_low"),
        ({"clip_high": -1}, "clip_high"),
        ({"kl": -0.1}, "kl"),
        ({"kl": float("nan")}, "kl"),
        ({"loss": "dr_grpo"}, "row_tokens"),
        ({"row_tokens": 5}, "row_tokens"),
        ({"old": "new"}, "old"),
        ({"correction": "some"}, "correction"),
        ({"old": "sampled", "correction": "token_mask"}, "correction"),
        ({"correction_cap": 0}, "correction_cap"),
        ({"temperature": 0}, "temperature"),
        ({"learning_rate": float("inf")}, "learning_rate"),
        ({"schedule": "step"}, "schedule"),
        ({"warmup": -1}, "warmup"),
        ({"group_size": 1}, "group_size"),
        ({"steps": 0}, "steps"),
        ({"micro_batch": 0}, "micro_batch"),
        ({"iterations": 0}, "iterations"),
        ({"precision": "half"}, "precision"),
        ({"device": "tpu"}, "device"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=rf"Algorithm\({said}.*expected"):
        Algorithm(**wrong)


def test_the_installed_trl_fits() -> None:
    check_trl()


class Renamed:
    """A trainer of another version."""

    def _generate_and_score_completions(self, batch: Any) -> Any: ...
    def _prepare_inputs(self, generation_batch: Any) -> Any: ...
    def _save_checkpoint(self, model: Any, trial: Any) -> Any: ...
    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: Any
    ) -> Any: ...

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return inputs["prompt_ids"]


class OtherKeys(Renamed):
    """Its loss reads other keys."""

    def _generate_and_score_completions(self, inputs: Any) -> Any: ...

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "num_items_in_batch")
        return [inputs[name] for name in names], inputs["advantages"], inputs["weights"]


@pytest.mark.parametrize(
    ("trainer", "said"),
    [
        (Renamed, r"_generate_and_score_completions takes \('self', 'batch'\)"),
        (OtherKeys, r"does not read .*old_per_token_logps.*needs weights"),
        (object, "there is no _compute_loss"),
    ],
)
def test_a_trl_that_does_not_fit_is_refused_with_versions(trainer: type[Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        check_trl(trainer)
    assert "Installed is trl 1." in str(caught.value)
    assert contract.TESTED in str(caught.value)


def test_a_trainer_without_the_state_that_is_read_is_refused() -> None:
    with pytest.raises(UsageError, match=r"has no _step, _buffered_inputs.*Installed is trl"):
        contract.check_state(object())


def test_settings_are_read_without_torch() -> None:
    modules = "concertino_train.config, concertino_train.factories.learners, concertino_train.factories.questions"
    code = f"import sys, {modules}; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize(("version", "fits"), [("1.8.2", False), ("1.9.0", True), ("2.0.0.dev0", False)])
def test_versions_are_bounded(version: str, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "version", lambda name: version)
    assert (not contract._version_faults()) == fits
