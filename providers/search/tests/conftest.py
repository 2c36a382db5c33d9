"""What the tests of this provider share: small corpora, and an index folder of each test's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

BIRDS = [
    {"id": "owl", "title": "Owl", "text": "An owl hunts at night. It hears a mouse under snow."},
    {"id": "swift", "title": "Swift", "text": "A swift sleeps while it flies. It lands to breed only."},
    {"id": "penguin", "title": "Penguin", "text": "A penguin cannot fly. It swims under water and hunts fish."},
    {"id": "kiwi", "title": "Kiwi", "text": "The kiwi lives in New Zealand. It smells worms with its beak."},
]


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., Path]:
    """Writes objects as a JSON Lines file."""

    def write(rows: list[object], name: str = "corpus.jsonl") -> Path:
        file = tmp_path / name
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return file

    return write


@pytest.fixture
def birds(write_lines: Callable[..., Path]) -> Path:
    """Four passages about birds."""
    return write_lines(BIRDS)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder for indexes."""
    return tmp_path / "indexes"
