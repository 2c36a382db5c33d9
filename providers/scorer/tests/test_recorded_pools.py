"""Recorded real models behind the shipped scorer: the benchmark of the documentation, at its small size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("concertino_replay")
pytest.importorskip("concertino_bench")
BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "recorded_pools.py"


@pytest.mark.slow
def test_the_first_choice_is_as_often_right_as_the_best_model_under_drawn_names_and_orders(shared_data: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--quick", "--only", "gsm8k", "--json"],
        stdout=subprocess.PIPE, text=True, check=True,
        env={"CONCERTINO_TEST_DATA": str(shared_data), "PATH": ""},
    )  # fmt: skip
    lines = {(line["pool"], line["system"]): line for line in json.loads(done.stdout)}
    assert len(lines) == 10
    for pool in ("six models", "A", "B"):
        assert lines[pool, "first choice"]["ahead"] >= -0.03
    assert lines["six models", "two cheap, then the first choice"]["cost"] < 1
    assert lines["six models", "two cheap if believed, else the first choice"]["cost"] <= 0.8
