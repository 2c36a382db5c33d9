"""What the executor's tests share: everything that a test began must be gone at its end."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> Path:
    """Worker processes can import the modules of these tests by the names under which pytest imports them."""
    monkeypatch.syspath_prepend(str(pytestconfig.rootpath))
    return pytestconfig.rootpath
