"""The sixth strategy, installed as a distribution for these tests alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from concertino.plugins import default_manager


@pytest.fixture(scope="module", autouse=True)
def sixth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A `.dist-info` with an entry point, and the package beside this file on the path."""
    site = tmp_path_factory.mktemp("site")
    info = site / "scout_judge-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scout-judge\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[concertino]\nscoutjudge = scout_judge\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        patch.syspath_prepend(str(site))
        default_manager.cache_clear()
        yield
    default_manager.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "scout_judge"]:
        del sys.modules[name]
