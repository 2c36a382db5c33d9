"""Whole trainings on two processes with sharded weights: what they leave is used as that of any other training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from concertino import UsageError
from concertino_train.config import load_config
from concertino_train.export import export
from concertino_train.factories.models import load_weights

SCRIPT = Path(__file__).with_name("sharded_run.py")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes leave."""
    made = tmp_path_factory.mktemp("run")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    words = [sys.executable, str(SCRIPT), str(made)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return made


def weights(folder: Path) -> dict[str, Any]:
    from transformers import AutoModelForCausalLM

    return dict(AutoModelForCausalLM.from_pretrained(folder).state_dict())


@pytest.mark.parametrize("kind", ["whole", "adapter"])
def test_the_last_checkpoint_and_the_model_of_a_sharded_training_are_exported_alike(
    kind: str, folder: Path, tmp_path: Path
) -> None:
    import torch

    merged = export(folder / kind, tmp_path / "model")
    parts = export(folder / kind / "checkpoints" / "checkpoint-2", tmp_path / "parts")
    one, two = weights(merged.folder), weights(parts.folder)
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    half = export(folder / kind / "checkpoints" / "checkpoint-2", tmp_path / "half", dtype="bfloat16")
    assert {value.dtype for value in weights(half.folder).values()} == {torch.bfloat16}


def test_a_sharded_training_plays_groups_ahead_and_trains_nothing_that_is_too_old(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "ahead" / "metrics.jsonl").read_text().splitlines()]
    ages = [line["ahead/staleness_max"] for line in lines if "ahead/staleness_max" in line]
    assert (len(ages), min(ages), max(ages)) == (4, 0, 1)
    assert {line["ahead/stale"] for line in lines if "ahead/stale" in line} == {0}
    assert weights(folder / "ahead" / "model")


def test_a_sharded_fine_tuning_ends_with_the_weights_of_one_process(folder: Path, tmp_path: Path) -> None:
    from .sharded_run import sft

    alone = sft.taught(tmp_path, steps=4)
    one, two = weights(tmp_path / "model"), weights(folder / "sft" / "model")
    assert alone.step == 4
    assert max(float((one[name] - two[name]).abs().max()) for name in one) <= 1e-3
    start = sft.model().state_dict()
    assert max(float((one[name] - start[name]).abs().max()) for name in one) > 1e-2


def test_a_sharded_fine_tuning_that_was_stopped_ends_as_a_straight_one(folder: Path) -> None:
    import torch

    one, two = weights(folder / "sft" / "model"), weights(folder / "again" / "model")
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_checkpoint_in_parts_is_exported_before_a_training_begins_with_it(folder: Path) -> None:
    for kind in ("whole", "adapter"):
        path = str(folder / kind / "checkpoints" / "checkpoint-2")
        with pytest.raises(UsageError, match=r"in parts; put it together: concertino train export .*checkpoint-2"):
            load_weights(load_config(None), path)


def test_a_whole_model_for_each_role_is_not_sharded() -> None:
    settings = {"rollout": {"strategy": {"name": "planner-programmer"}}}
    with pytest.raises(UsageError, match=r"roles\.policies=full with trainer\.sharding=full.*policies=lora"):
        load_config(settings, ["roles.policies=full", "trainer.sharding=full"])
