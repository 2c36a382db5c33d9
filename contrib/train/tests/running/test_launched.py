"""The command that starts a training on several processes, as a dry run prints it, is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from concertino_train.config import load_config
from concertino_train.running.launch import launch_command

from .conftest import SETTINGS

STEPS = 2


@pytest.mark.soak
def test_two_processes_that_the_printed_command_starts_train_together(tmp_path: Path) -> None:
    settings, home = tmp_path / "settings.json", tmp_path / "out"
    # Nobody has taught the model, so that its first batch has nothing to learn.
    settings.write_text(json.dumps({**SETTINGS, "reward": {"preset": "paramanager"}}))
    more = ["trainer.processes=2", f"trainer.rl.steps={STEPS}", "trainer.rl.audit=tell"]
    given = ["--config", str(settings), "--output", str(home), *more]
    program, *words = launch_command(load_config(str(settings), more), "rl", given)
    done = subprocess.run(
        [str(Path(sys.executable).parent / program), *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (result,) = home.rglob("result.json")
    assert json.loads(result.read_text())["step"] == STEPS
    assert len((result.parent / "metrics.jsonl").read_text().splitlines()) == STEPS
