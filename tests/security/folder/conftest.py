"""A folder that a stranger filled, and a user who has trusted nothing yet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from concertino.core import trust
from concertino.core.trust import guarding
from concertino.plugins import default_manager

Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def nothing_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The working folder is `clone`; what is remembered lies in `home`; no variable trusts or names anything."""
    for variable in ("CONCERTINO_TRUST", "CONCERTINO_CONFIG", "CONCERTINO_PLUGINS", "CONCERTINO_DISABLE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("CONCERTINO_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "clone").mkdir()
    (tmp_path / "outside").mkdir()
    monkeypatch.chdir(tmp_path / "clone")
    trust._allowed.clear()
    default_manager.cache_clear()
    yield
    default_manager.cache_clear()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The working folder."""
    return tmp_path / "clone"


@pytest.fixture
def on_command_line() -> Iterator[None]:
    """Files are refused as the command line refuses them."""
    with guarding():
        yield
