"""`.ci/run`: the order of its steps, what a failed one changes, and its summary. `make` is a stand-in."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tree import ROOT

MAKE = """#!/bin/sh
echo "$1" >>made
echo "output of $1"
case " $SLOW " in *" $1 "*) sleep 60 ;; esac
case " $BROKEN " in *" $1 "*) exit 2 ;; esac
"""
TARGETS = ["full", "lint", "docs", "wheels", "test", "test-slow"]
PREPARED = ["server-environments", "servers"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout that holds nothing but the script, and a `make` that only writes down what it was asked for."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    make = tmp_path / "bin" / "make"
    make.parent.mkdir()
    make.write_text(MAKE, encoding="utf-8")
    make.chmod(0o755)
    return tmp_path


def start(clone: Path, broken: str = "", slow: str = "") -> subprocess.Popen[str]:
    path = f"{clone / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        [clone / ".ci" / "run"], cwd="/", stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PATH": path, "BROKEN": broken, "SLOW": slow},
    )  # fmt: skip


def run(clone: Path, broken: str = "", slow: str = "") -> tuple[str, int]:
    """What it printed, and its exit status."""
    process = start(clone, broken, slow)
    printed, _ = process.communicate(timeout=50)
    return printed, process.returncode


def made(clone: Path) -> list[str]:
    return (clone / "made").read_text(encoding="utf-8").split()


def summary(printed: str) -> dict[str, str]:
    """The result of each step, from the table at the end."""
    rows = printed.partition("\nstep ")[2].splitlines()[1:]
    return {row.split()[0]: row.split()[1] for row in rows}


def test_the_servers_are_ready_before_the_first_test_starts(clone: Path) -> None:
    printed, status = run(clone)
    assert status == 0
    assert [target for target in made(clone) if target not in PREPARED] == TARGETS
    assert [target for target in made(clone) if target in PREPARED] == PREPARED
    assert made(clone).index("servers") < made(clone).index("test")
    assert "output of servers\n" in printed
    steps = ["setup", "lint", "docs", "wheels", "servers", "test", "test-slow", "all"]
    assert summary(printed) == dict.fromkeys(steps, "passed")


@pytest.mark.parametrize("step", ["lint", "wheels", "servers", "test", "test-slow"])
def test_a_step_that_fails_stops_no_other_and_fails_the_whole(clone: Path, step: str) -> None:
    printed, status = run(clone, broken=step)
    assert status == 1
    assert sorted(made(clone)) == sorted(TARGETS + PREPARED)
    assert [name for name, result in summary(printed).items() if result == "FAILED"] == [step, "all"]


def test_without_an_environment_nothing_else_is_run_and_no_server_is_prepared_on(clone: Path) -> None:
    printed, status = run(clone, broken="full", slow="server-environments")
    assert status == 1
    assert "lint" not in made(clone)
    assert summary(printed) == {"setup": "FAILED", "all": "FAILED"}


def test_a_run_that_is_stopped_leaves_nothing_of_what_it_started(clone: Path) -> None:
    process = start(clone, slow="server-environments lint")
    while not (clone / "made").is_file() or len(made(clone)) < 3:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGTERM)  # as a runner of jobs does; what is prepared has a group of its own
    printed, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert summary(printed)["lint"] == "STOPPED"
    patience = time.monotonic() + 20  # a process that was told to end needs a moment on a busy machine
    while (left := _alive(clone)) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not left


def _alive(clone: Path) -> list[str]:
    """Commands of processes that work in the checkout."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "cwd").readlink() == clone:
                found.append((folder / "cmdline").read_text())
        except OSError:
            continue  # it ended meanwhile
    return [command for command in found if command]
