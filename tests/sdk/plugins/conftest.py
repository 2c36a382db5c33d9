"""Real distributions made on the fly: a `.dist-info` with metadata and entry points, and a module beside it."""

from __future__ import annotations

import importlib.metadata
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from concertino.core.settings import Settings
from concertino.plugins import PluginManager

Install = Callable[..., str]

HEADER = """
import concertino
from concertino.members import specs
from concertino.core.model import Model
from concertino.core.usage import Cost, Prices
from concertino.plugins.hookspecs import hookimpl


def tool(name):
    return specs.ToolSpec(name, f"Does {name}.", {"type": "object", "properties": {}}, print)
"""

TOOL = """
@hookimpl
def concertino_tools():
    return [tool("{name}")]
"""


@pytest.fixture(autouse=True)
def nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting and no plugin of the machine that runs the tests counts."""
    everywhere = importlib.metadata.distributions
    monkeypatch.setattr(
        importlib.metadata,
        "distributions",
        lambda: everywhere(path=[place for place in sys.path if place.startswith(str(tmp_path))]),
    )
    for variable in ("CONCERTINO_CONFIG", "CONCERTINO_DISABLE", "CONCERTINO_PLUGINS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """`install(entry, source, ...)`: install a distribution for this test; returns its module's name."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    before = set(sys.modules)

    def install(
        entry: str,
        source: str | None = None,
        *,
        distribution: str = "",
        version: str = "1.0",
        target: str = "",
        header: str = HEADER,
    ) -> str:
        distribution = distribution or f"acme-{entry}"
        module = distribution.replace("-", "_")
        body = TOOL.format(name="echo") if source is None else textwrap.dedent(source)
        (site / f"{module}.py").write_text(header + body, encoding="utf-8")
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[concertino]\n{entry} = {target or module}\n")
        return module

    yield install
    for module in set(sys.modules) - before:
        if module.startswith("acme_"):
            del sys.modules[module]


@pytest.fixture
def manager() -> PluginManager:
    """A manager of what the test installed before its first use."""
    return PluginManager(Settings(), seconds=5)


@pytest.fixture
def endless() -> Iterator[str]:
    """The source of a loop that ends with the test, and with it the threads that were left in it."""
    yield "import sys, time\nwhile not hasattr(sys, 'acme_stop'): time.sleep(0.01)\n"
    sys.acme_stop = True  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread.name.startswith("concertino "):
            thread.join(5)
    del sys.acme_stop  # type: ignore[attr-defined]
