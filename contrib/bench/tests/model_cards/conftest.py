"""The command line in a folder of its own, where the bench and a plugin of one module are installed."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from concertino.cli import command_line
from concertino.plugins import default_manager

Cli = Callable[..., Result]
Install = Callable[[str, str], None]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed distributions."""
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture
def install(site: Path) -> Install:
    """`install(provider, source)`: install a plugin of one module."""

    def install(provider: str, source: str) -> None:
        if source:
            (site / f"acme_{provider}.py").write_text(source, encoding="utf-8")
        module = f"acme_{provider}" if source else f"concertino_{provider}"
        info = site / f"acme_{provider}-1.0.dist-info"
        info.mkdir()
        name = module.replace("_", "-")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[concertino]\n{provider} = {module}\n")

    return install


@pytest.fixture
def cli(site: Path, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """`cli("pool", "describe")`: run a command; nothing of the machine counts but the bench."""
    install("bench", "")
    everywhere = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: everywhere(path=[str(site)]))
    for variable in ("CONCERTINO_CONFIG", "CONCERTINO_DISABLE", "CONCERTINO_PLUGINS", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("CONCERTINO_TRACES", "runs")
    monkeypatch.syspath_prepend(str(site))
    default_manager.cache_clear()
    yield lambda *words: CliRunner().invoke(command_line, list(words))
    default_manager.cache_clear()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
