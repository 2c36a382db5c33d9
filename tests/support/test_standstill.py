"""Which failed tests are run again: those about time, when the machine kept their process waiting; not for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import standstill

pytest_plugins = ["pytester"]

SUITE = """
import itertools, sys
import pytest

pytest_plugins = ["standstill"]
seen = []

def pytest_configure():
    clock = itertools.count(0.0, {wait})
    sys.modules["standstill"].waited = lambda: next(clock)

@pytest.fixture
def tries():
    return seen

@pytest.fixture
def fresh():
    return []
"""
FAILS_ONCE = """
    assert not fresh
    fresh.append(1)
    tries.append(1)
    assert len(tries) > 1
"""
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one test of its own process; `wait` is for how many seconds the machine keeps it waiting."""

    def run(mark: str, body: str, wait: float) -> pytest.RunResult:
        monkeypatch.setenv("PYTHONPATH", str(Path(standstill.__file__).parent))
        pytester.makeconftest(SUITE.format(wait=wait))
        pytester.makeini("[pytest]\nmarkers =\n  alone: a\n  server: b\n  slow: c\n")
        pytester.makepyfile(f"import pytest\n@pytest.mark.{mark}\ndef test_it(tries, fresh):\n{body}")
        return pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")

    return run


@pytest.mark.parametrize("mark", ["alone", "server"])
def test_a_test_about_time_that_failed_while_it_waited_is_run_again_with_new_fixtures(run: Run, mark: str) -> None:
    result = run(mark, FAILS_ONCE, wait=6.0)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["RUN AGAIN *::test_it: failed while it waited 6.0 s for a processor"])


def test_a_test_that_fails_in_every_try_fails(run: Run) -> None:
    result = run("alone", "    tries.append(1)\n    assert not tries", wait=6.0)
    result.assert_outcomes(failed=1)
    assert len([line for line in result.outlines if line.startswith("RUN AGAIN")]) == standstill.TRIES - 1
    assert "assert not [1, 1, 1, 1]" in result.stdout.str()


@pytest.mark.parametrize(("mark", "wait"), [("alone", 0.1), ("slow", 6.0)])
def test_a_failure_that_is_not_the_machines_stands(run: Run, mark: str, wait: float) -> None:
    result = run(mark, FAILS_ONCE, wait)
    result.assert_outcomes(failed=1)
    assert "RUN AGAIN" not in result.stdout.str()


def test_how_long_this_process_waited_only_grows() -> None:
    before = standstill.waited()
    assert 0.0 <= before <= standstill.waited()
