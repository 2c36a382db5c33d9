"""Two processes with gloo: the gradients of one, and no hanging when they have different numbers of rows."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

SCRIPT = Path(__file__).with_name("two_ranks.py")

pytestmark = pytest.mark.slow


def script() -> Any:
    spec = importlib.util.spec_from_file_location("two_ranks", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two processes say at their end."""
    folder = tmp_path_factory.mktemp("ranks")
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        [*words, str(SCRIPT), str(folder)], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"report-{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("loss", ["dapo", "grpo", "packed"])
def test_two_ranks_have_the_loss_of_one_on_the_same_batch(
    loss: str, reports: list[dict[str, Any]], tmp_path: Path, light: None
) -> None:
    losses, weights = script().train(loss, tmp_path, packing=False)
    for report in reports:
        assert report[loss]["losses"] == pytest.approx(losses, abs=1e-5)
    apart = torch.tensor(reports[0][loss]["weights"]) - weights
    assert float(apart.abs().max()) <= 1e-4
    assert max(map(abs, losses)) > 1e-3


@pytest.mark.parametrize("name", ["uneven0", "uneven2"], ids=["one-policy", "adapters-by-role"])
def test_ranks_with_different_numbers_of_rows_end_with_the_same_weights(
    name: str, reports: list[dict[str, Any]]
) -> None:
    for report in reports:
        assert report[name]["ranks_apart"] == 0.0
        assert report[name]["resumed_apart"] <= 1e-6
