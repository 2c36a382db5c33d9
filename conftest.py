"""What all tests share, in `tests/` and in every member: the data, the order, what is left out.

Order: quick tests first, then those marked `slow`, then those marked `server` (a real model server), so
that a mistake shows in seconds. Left out: the tests of a member that opted out of the default set-up and
is not installed; the summary says which. A test whose material is absent is skipped with a reason that
names the place looked at.
"""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import pytest
from tree import ROOT, members

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with Ctrl-C ignored, and some tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

LEFT_OUT = [m for m in members() if not m.default_install and importlib.util.find_spec(m.import_name) is None]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data samples, kept beside the checkout and never copied into it."""
    return _material(Path(os.environ.get("CONCERTINO_TEST_DATA", ROOT.parent / "shared" / "data")))


@pytest.fixture(scope="session")
def shared_malformed(shared_data: Path) -> Path:
    """The folder of malformed model outputs, beside `shared_data`."""
    return _material(shared_data.parent / "malformed")


def _material(folder: Path) -> Path:
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; point CONCERTINO_TEST_DATA at the folder of data samples")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick, slow, server; the order within each stays as collected."""
    items.sort(key=lambda item: [item.get_closest_marker(late) is not None for late in ("server", "slow")])


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the members that are not installed."""
    return any(collection_path == member.path for member in LEFT_OUT) or None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out, and how to have it run."""
    for member in LEFT_OUT:
        terminalreporter.write_line(
            f"LEFT OUT {member.relative}: not installed; `.venv/bin/pip install -e {member.relative}` adds it"
        )
