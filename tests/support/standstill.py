"""A machine with few processors sometimes lets a process wait for one for seconds; this says how long, and what then.

A model server at work can take both processors of a small machine for itself, and the test that is to leave it after a
quarter of a second leaves it after six. So servers of tests have a lower priority (`launch.lower_priority`). Where
that is not enough, a test marked `alone` or `server` that failed while its process waited is run again: it has told
something about the machine. The invariant: a test that fails in all tries fails, whatever the machine did, and the summary shows each
try but the last.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

TRIES = 4
WAITED = 0.25
"""Seconds that a process has to have waited for a processor for its failed test to be run again."""

_AGAIN = pytest.StashKey[list[str]]()


def waited() -> float:
    """Seconds that the main thread could have run since it began, and had no processor; 0 where no kernel says so."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test that says something about time, and again if it failed while it waited for a processor."""
    if not any(item.get_closest_marker(mark) for mark in ("alone", "server")):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for left in reversed(range(TRIES)):
        before = waited()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        stood = waited() - before
        if not left or stood < WAITED or not any(report.failed for report in reports):
            break
        again = item.config.stash.setdefault(_AGAIN, [])
        again.append(f"{item.nodeid}: failed while it waited {stood:.1f} s for a processor")
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests were run again, and why."""
    for line in terminalreporter.config.stash.get(_AGAIN, []):
        terminalreporter.write_line(f"RUN AGAIN {line}")
