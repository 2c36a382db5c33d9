"""Weights that are not whole, and disks without room, are told as what they are."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from concertino import UsageError
from concertino_train.config.config import load_config
from concertino_train.factories.models import load_model, load_weights
from concertino_train.weight_storage import room_on

torch = pytest.importorskip("torch")
SETTINGS = "pool: {make: {name: practice}}\nmodel: {path: model}\ntrainer: {device: cpu}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small model without a tokenizer."""
    import transformers as hf

    sizes = {"vocab_size": 64, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1}
    hf.Qwen2ForCausalLM(hf.Qwen2Config(**sizes, **heads)).save_pretrained(tmp_path / "model")
    (tmp_path / "settings.yaml").write_text(SETTINGS)
    return tmp_path / "model"


def config(folder: Path) -> Any:
    """The settings of a training of this model."""
    return load_config(str(folder.parent / "settings.yaml"), [f"model.path={folder}"], check=False)


def test_weights_that_are_cut_off_are_named_with_what_was_expected(folder: Path) -> None:
    file = folder / "model.safetensors"
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(UsageError, match=r"model\.path=.* cannot be loaded: .*with all files whole"):
        load_weights(config(folder), str(folder))


def test_a_model_without_a_tokenizer_is_not_told_as_one_without_a_template(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"no tokenizer; expected a folder as tokenizer\.save_pretrained writes it"):
        load_model(config(folder), ())


class Full:
    """Errors of a full disk, as they come."""

    system = OSError(errno.ENOSPC, "No space left on device", "optimizer.pt")
    safetensors = Exception("Error while serializing: I/O error: No space left on device (os error 28)")
    wrapped = RuntimeError("saving failed")
    wrapped.__cause__ = system


@pytest.mark.parametrize(
    "error", [Full.system, Full.safetensors, Full.wrapped], ids=["system", "safetensors", "wrapped"]
)
def test_a_full_disk_is_told_with_what_to_do_and_other_errors_stay_as_they_are(
    error: Exception, tmp_path: Path
) -> None:
    with (
        pytest.raises(UsageError, match=r"the disk is full .*make room there, .*, and go on; what was written") as told,
        room_on(tmp_path / "later", "go on"),
    ):
        raise error
    assert told.value.__cause__ is error
    other = RuntimeError("something else")
    with pytest.raises(RuntimeError) as kept, room_on(tmp_path, "go on"):
        raise other
    assert kept.value is other
