"""A sandbox for the tests of a module, and the folder of shared attack scripts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from concertino_code.sandbox.jailed import JailedSandbox
from concertino_code.sandbox.levels import choose_level_now

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def shared_attacks(shared_data: Path) -> Path:
    """The folder of attack scripts beside the data samples."""
    folder = shared_data.parent / "attacks"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; it lies beside the folder that CONCERTINO_TEST_DATA names")
    return folder


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skips where this machine grants no namespaces."""
    choice = choose_level_now(level="namespaces")
    if not choice.level:
        if os.environ.get("CI"):
            pytest.fail(choice.explain())
        pytest.skip(f"no namespaces here: {choice.explain()}")


@pytest.fixture(scope="module")
def sandbox(namespaces: None) -> Iterator[JailedSandbox]:
    """One sandbox for the tests of a module, with its libraries loaded."""
    made = JailedSandbox()
    yield made
    made.close_now()


@pytest.fixture
def quick_sandbox(namespaces: None) -> Iterator[JailedSandbox]:
    """A sandbox of its own, without libraries: it starts in a tenth of a second."""
    made = JailedSandbox(preload=())
    yield made
    made.close_now()
