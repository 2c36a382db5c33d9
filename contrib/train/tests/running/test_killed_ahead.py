"""A training that is killed while rollouts are played ahead goes on: nothing is trained twice, nor paid twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("ahead_program.py")
STEPS, GROUPS, SIZE, CALLS = 6, 2, 2, 2
POINTS = int(os.environ.get("CONCERTINO_KILLS", "30"))
"""Where the long test kills; numbers of beats."""


def killed_and_resumed(home: Path, beats: list[int]) -> None:
    """Kill the program at these beats of processes that follow each other, then let it end; check what it left."""
    for beat in beats:
        if run(home, beat) == 0:
            break  # it ended before
    assert run(home, 0) == 0
    taken = json.loads((home / "checkpoint.json").read_text())["taken"]
    trained = Counter(sample for step in taken for sample in step)
    questions = [f"q{number}" for number in range(STEPS * GROUPS)]
    assert trained == Counter(f"{name} {sample}" for name in questions for sample in range(SIZE))
    # Each rollout of a group pays for itself; which of them it was, the line does not say.
    paid = Counter((home / "paid").read_text().splitlines())
    assert paid <= Counter({f"{name} {turn}": SIZE for name in questions for turn in range(1, CALLS + 1)})


def run(home: Path, beat: int) -> int:
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), str(home), str(beat)], capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr[-3000:]
    return ended.returncode


@pytest.mark.slow
def test_a_training_that_was_killed_trains_every_sample_once_and_repeats_no_paid_call(tmp_path: Path) -> None:
    killed_and_resumed(tmp_path, [9, 16])


@pytest.mark.soak
@pytest.mark.parametrize("point", range(1, POINTS + 1))
def test_a_training_is_killed_anywhere(tmp_path: Path, point: int) -> None:
    killed_and_resumed(tmp_path, [3 * point, 2 * point])
