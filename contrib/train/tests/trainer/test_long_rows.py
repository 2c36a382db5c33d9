"""A row of 32,768 tokens is trained in memory that grows with its length, and not with its square or its vocabulary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="trl, which trains, is absent")
SCRIPT = Path(__file__).with_name("long_rows.py")


def step(tokens: int, out: Path) -> dict[str, float]:
    """What a step on one row of so many tokens takes, with activations computed again."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tokens), str(out), "again"],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
        timeout=3000,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, float] = json.loads((out / "told.json").read_text())
    return found


@pytest.mark.soak
def test_one_step_on_32768_tokens_takes_memory_in_proportion_to_them(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    short, long = step(8192, tmp_path / "short"), step(32768, tmp_path / "long")
    for name, value in long.items():
        record_property(name, round(value, 6))
    assert long["moved"] > 0
    # Attention that keeps its weights would take sixteen times as much: 8 GiB more for each layer and head.
    assert long["peak"] - long["held"] <= 4.5 * (short["peak"] - short["held"])
