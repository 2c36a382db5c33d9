"""Training in 16 bits: what is computed is rounded, and what is learnt is not lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from concertino_train.config import load_config
from concertino_train.export import export
from concertino_train.factories.models import load_weights, precision_of
from concertino_train.rl.training import algorithm_of
from concertino_train.rollouts import Batch

SMALL = ["trainer.device=cpu", "trainer.rl.learning_rate=1e-6", "trainer.rl.steps=20", "rollout.group_size=4"]


def moved(config: Any, folder: Path, trained: Callable[..., Any], batch: Callable[..., Batch]) -> Any:
    """How far the weights of a folder go in twenty steps."""
    model = load_weights(config, str(folder))
    before = torch.cat([value.detach().flatten().clone() for value in model.parameters()])
    trained(model, algorithm_of(config), lambda tasks, step: batch(step))
    after = torch.cat([value.detach().flatten() for value in model.parameters()])
    return after.double() - before.double()


@pytest.mark.slow
def test_weights_move_alike_in_bfloat16_and_in_float32_at_a_small_learning_rate(
    tmp_path: Path, tiny: Callable[..., Any], trained: Callable[..., Any], made_batch: Callable[..., Batch]
) -> None:
    tiny().save_pretrained(tmp_path / "start")
    exact = moved(load_config(None, [*SMALL]), tmp_path / "start", trained, made_batch)
    half = moved(load_config(None, [*SMALL, "model.dtype=bfloat16"]), tmp_path / "start", trained, made_batch)
    assert float((half != 0).double().mean()) > 0.9
    assert not torch.equal(exact, half)  # it was computed in bfloat16
    assert float(torch.nn.functional.cosine_similarity(exact, half, 0)) > 0.9


@pytest.mark.parametrize(
    ("settings", "kind", "precision"),
    [
        ([], torch.float32, "auto"),
        (["model.dtype=bfloat16"], torch.float32, "bfloat16"),
        (["model.dtype=bfloat16", "trainer.precision=float32"], torch.float32, "float32"),
        (["model.dtype=bfloat16", "model.adapter={rank: 2}"], torch.bfloat16, "auto"),
    ],
    ids=["by-default", "all-weights", "computed-in-32-bits", "below-an-adapter"],
)
def test_the_type_of_a_model_is_that_of_frozen_weights_or_of_computing(
    settings: list[str], kind: torch.dtype, precision: str, tmp_path: Path, tiny: Callable[..., Any]
) -> None:
    tiny().save_pretrained(tmp_path / "start")
    config = load_config(None, ["trainer.device=cpu", f"model.path={tmp_path / 'start'}", *settings])
    assert {value.dtype for value in load_weights(config, config.model.path).parameters()} == {kind}
    assert precision_of(config) == precision


def test_an_export_has_the_16_bits_of_the_settings_unless_others_are_asked_for(
    tmp_path: Path, tiny: Callable[..., Any]
) -> None:
    from concertino_train.tiny import new_tokenizer
    from safetensors.torch import load_file

    new_tokenizer(["a text to make tokens of"], 500).save_pretrained(str(tmp_path / "model"))
    tiny().save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "training.yaml").write_text(load_config(None, ["model.dtype=bfloat16"]).text())
    for asked, kind in (("", torch.bfloat16), ("float32", torch.float32)):
        made = export(tmp_path / "model", tmp_path / f"out{asked}", dtype=asked)
        assert {value.dtype for value in load_file(made.folder / "model.safetensors").values()} == {kind}
