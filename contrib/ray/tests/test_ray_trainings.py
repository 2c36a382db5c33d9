"""`train rl` with `rollout.on=ray`: the rollouts of a training on a cluster are those of its process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="trl, which trains, is absent")

TINY: dict[str, Any] = {
    "model": {"new": {"layers": 1, "hidden": 16, "heads": 2, "context": 640, "vocabulary": 640}},
    "pool": {"make": {"name": "practice", "topics": ["toll", "tide", "crop"], "manners": ["sure"], "twin": False}},
    "tasks": {"train": [{"set": "practice/facts", "options": {"split": "train", "count": 6, "level": 1}}]},
    "rollout": {
        "strategy": {"name": "parallel-rounds", "prompt": "brief", "max_rounds": 2, "max_unreadable_replies": 1},
        "group_size": 2,
        "turn_tokens": 6,
        "total_tokens": 12,
    },
    "reward": {"preset": "gap"},
    "trainer": {"device": "cpu", "threads": 1, "rl": {"steps": 1, "questions_per_step": 2, "audit": "tell"}},
    "logging": {"traces": {"every": 1, "keep": 4}, "plot_every": 0},
}


def trained(settings: Path, out: Path, on: str) -> Path:
    """The folder of the traces of the first step."""
    words = ["--config", str(settings), "--output", str(out), f"rollout.on={on}", "--json"]
    command = [sys.executable, "-m", "concertino", "train", "rl", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return out / "rl" / "traces" / "step-000001"


def episodes(folder: Path) -> list[Any]:
    """What was seen of each rollout, without times."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            clock = ("seconds", "critical_path", "call_seconds")
            return {name: plain(each) for name, each in value.items() if name not in clock}
        return [plain(each) for each in value] if isinstance(value, list) else value

    return [plain(json.loads(line)) for line in (folder / "episodes.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.soak
def test_a_training_on_a_cluster_makes_the_rollouts_of_one_process(tmp_path: Path, ray_paths: list[str]) -> None:
    settings = tmp_path / "tiny.yaml"
    settings.write_text(json.dumps(TINY), encoding="utf-8")
    here, there = trained(settings, tmp_path / "here", "local"), trained(settings, tmp_path / "there", "ray:2")
    assert len(episodes(here)) == 4
    assert episodes(there) == episodes(here)
    assert len(list(there.glob("*.trace.jsonl"))) == 4
