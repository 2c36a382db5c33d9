"""What takes more than two minutes and concerns the whole tree; run by `make soak`, which keeps the figures."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tree import ROOT, tree_files

pytestmark = pytest.mark.soak

Record = Callable[[str, object], None]
VARIABLE = "CONCERTINO_FUZZ"
FUZZED = [
    file.relative_to(ROOT).as_posix()
    for file in tree_files()
    if file.name.startswith("test_") and file.name != "test_soak.py" and VARIABLE in file.read_text(encoding="utf-8")
]
EXAMPLES = "5000"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Other programs that want a processor each, all the time."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@pytest.mark.parametrize("time_of_three", [1, 2, 3])
def test_the_suite_passes_while_two_other_programs_keep_the_processors_busy(
    time_of_three: int, record_property: Record
) -> None:
    began = time.monotonic()
    with busy_processes(2):
        done = run("scripts/suite.py", "test")
    record_property("seconds", round(time.monotonic() - began))
    record_property("last_line", done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout[-10_000:]


def test_no_confirmed_record_is_lost_in_two_hundred_kills(record_property: Record) -> None:
    done = run("benchmarks/crash.py", "--json")
    record_property("figures", done.stdout)
    assert done.returncode == 0, done.stdout


def test_every_benchmark_still_runs(record_property: Record) -> None:
    done = run("benchmarks/run.py", "--quick")
    record_property("last_line", done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout[-10_000:]


@pytest.mark.parametrize("file", FUZZED)
def test_thousands_of_examples_find_nothing_that_dozens_did_not(file: str, record_property: Record) -> None:
    done = run("-m", "pytest", "-p", "no:cacheprovider", "--timeout=0", file, "-m", "not soak", **{VARIABLE: EXAMPLES})
    record_property("last_line", done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout[-10_000:]


@pytest.mark.parametrize("page", ["tutorial/train-an-orchestrator.md", "how-to/train-on-your-own.md"])
def test_the_trainings_of_a_page_run_at_their_own_size(page: str, record_property: Record) -> None:
    """`make test-slow` follows the page with smaller ones (`tests/docs/smaller`): here they take minutes."""
    limits = ["-p", "no:cacheprovider", "--timeout=0", "-o", "session_timeout=", "-o", "faulthandler_timeout=0"]
    done = run("-m", "pytest", *limits, "tests/docs/test_pages.py", "-k", page, CONCERTINO_WHOLE_PAGES="1")
    record_property("last_line", done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout[-10_000:]
