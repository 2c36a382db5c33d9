"""Traces of any size and with any text, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, headless_chromium
from hostile_traces import write_trace
from made_traces import records_of


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The trace of a small run: two rounds, a failed call, a retried one, an agent with a call inside."""
    return write_trace(tmp_path / "small.trace.jsonl", records_of(rounds=2, width=3))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium."""
    yield from headless_chromium(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of a run with 10,000 calls."""
    records: list[dict[str, Any]] = records_of(rounds=500, width=20)
    return write_trace(tmp_path_factory.mktemp("large") / "large.trace.jsonl", records)
