"""Distributions made on the fly, each with one plugin of one module."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from concertino.cli import command_line
from concertino.core.settings import Settings
from concertino.plugins import PluginManager, default_manager

HEAD = """
import asyncio, itertools, os, signal, sys, threading, time
import concertino as ct
from concertino import hookimpl
from concertino.members.specs import ToolSpec


def tool(name, **more):
    return ToolSpec(name, more.pop("description", f"Does {name}."), {"type": "object", "properties": {}}, lambda: name)
"""
GOOD = "@hookimpl\ndef concertino_tools(): return [tool('echo')]\n"


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed distributions, and nothing else of this machine."""
    folder = tmp_path / "site"
    (tmp_path / "here").mkdir()
    folder.mkdir()
    everywhere = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: everywhere(path=[str(folder)]))
    for variable in [name for name in os.environ if name.startswith("CONCERTINO_")]:
        monkeypatch.delenv(variable)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path / "here")
    default_manager.cache_clear()
    yield folder
    default_manager.cache_clear()
    vars(sys)["acme_stop"] = True
    for thread in threading.enumerate():
        if thread.name.startswith("concertino "):
            thread.join(5)
    del vars(sys)["acme_stop"]
    for module in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[module]


@pytest.fixture
def install(site: Path) -> Callable[..., None]:
    """`install("bad", source)`: install a plugin."""

    def install(entry: str, source: str = GOOD, number: int = 0) -> None:
        module = f"acme_{number or len(list(site.glob('*.py')))}"
        (site / f"{module}.py").write_text(HEAD + source, encoding="utf-8")
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[concertino]\n{entry} = {module}\n", encoding="utf-8")

    return install


@pytest.fixture
def manager() -> PluginManager:
    """Of what the test installed before its first use."""
    return PluginManager(Settings(), seconds=2)


@pytest.fixture
def cli() -> Callable[..., Result]:
    """The command line in this process."""

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(command_line, list(arguments))

    return run
