"""The two levels of `.venv`: what is asked for, what is there, what is prepared."""

from __future__ import annotations

import sys
from pathlib import Path

import environment
import pytest


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The levels that were prepared, in an environment that is empty at first."""
    levels: list[str] = []

    def prepare(level: str) -> None:
        levels.append(level)
        environment.STAMP.write_text(f"{level}\n{environment._key()}", encoding="utf-8")

    monkeypatch.setattr(environment, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(environment, "WORK", tmp_path)
    monkeypatch.setattr(environment, "_prepare", prepare)
    return levels


def make(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["environment.py", *arguments])
    environment.main()


def test_light_is_prepared_once_and_full_on_top_of_it(prepared: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in ([], ["light"], ["full"], ["full"], ["light"]):
        make(monkeypatch, *arguments)
    assert prepared == ["light", "full"]


def test_a_full_environment_stays_full_when_the_tree_changed(
    prepared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(monkeypatch, "full")
    monkeypatch.setattr(environment, "_key", lambda: "of a changed tree")
    make(monkeypatch, "light")
    assert prepared == ["full", "full"]


def test_a_stamp_without_a_level_counts_as_none(prepared: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    environment.STAMP.write_text(environment._key(), encoding="utf-8")
    make(monkeypatch)
    assert prepared == ["light"]


def test_an_unknown_level_is_refused_with_those_that_are(prepared: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="'heavy' is no level of the environment; expected one of: light, full"):
        make(monkeypatch, "heavy")
    assert prepared == []
