"""A training that is small enough for tests."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from concertino_train.config import TrainConfig, load_config
from concertino_train.episodes import Episode
from concertino_train.rewards import TERMS, Term

os.environ.setdefault("HF_HUB_OFFLINE", "1")

SETTINGS: dict[str, Any] = {
    "name": "tiny",
    "model": {"new": {"layers": 1, "hidden": 16, "heads": 2, "context": 640, "vocabulary": 640}},
    "pool": {"make": {"name": "practice", "topics": ["toll", "tide", "crop"], "manners": ["sure"], "twin": False}},
    "tasks": {
        "train": [{"set": "practice/facts", "options": {"split": "train", "count": 6, "level": 1}}],
        "eval": [{"set": "practice/facts", "options": {"count": 2, "level": 1}}],
    },
    "rollout": {
        "strategy": {"name": "parallel-rounds", "prompt": "brief", "max_rounds": 2, "max_unreadable_replies": 1},
        "group_size": 2,
        "turn_tokens": 6,
        "total_tokens": 12,
    },
    "reward": {"terms": {"drawn": {"term": "test/drawn"}}},
    "algorithm": {"filters": {"homogeneity": None}},
    "trainer": {
        "device": "cpu",
        "threads": 1,
        "rl": {"steps": 4, "questions_per_step": 2, "learning_rate": 1e-3, "save_every": 2, "micro_batch": 4},
    },
    "logging": {"traces": {"every": 2, "keep": 1}, "plot_every": 0},
}


@dataclass(frozen=True)
class Drawn(Term):
    """A number that follows from which rollout it is, so that rewards differ whatever an untrained policy writes."""

    name = "test/drawn"
    formula = source = meaning = "for tests"

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, 1.0

    def values(self, group: Sequence[Episode]) -> list[float]:
        return [zlib.crc32(f"{each.id} {each.group}".encode()) / 2**32 for each in group]


@pytest.fixture(scope="module", autouse=True)
def _drawn() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TERMS, Drawn.name, Drawn)
        yield


@pytest.fixture
def tiny(tmp_path: Path) -> Callable[..., TrainConfig]:
    """Settings of a tiny training in the test's own folder, changed by `key=value`."""

    def make(*overrides: str) -> TrainConfig:
        return load_config(SETTINGS, [f"trainer.output={tmp_path / 'out'}", *overrides])

    return make
