"""`bench run --on ray` writes the file that it writes elsewhere, on a cluster that only this machine can reach."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from plain_results import plain_results


def command(out: Path, on: str) -> list[str]:
    given = ["--tasks", "masbench/depth,level=3,limit=6", "--tasks", "environments/sudoku,limit=2", "--samples", "2"]
    given += ["--system", "rounds=parallel-rounds,model=toy/leader", "--system", "graph=agent-graph,model=toy/leader"]
    return [sys.executable, "-m", "concertino", "bench", "run", *given, "--out", str(out), "--on", on, "--json"]


def listening(ancestor: int) -> set[str]:
    """Addresses on which a process and those that it started listen, as Linux writes them."""
    sockets = set[str]()
    for pid in family(ancestor):
        try:
            sockets |= {link.readlink().name for link in Path("/proc", pid, "fd").iterdir() if link.is_symlink()}
        except OSError:
            continue  # it has ended
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()[1:]]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def family(ancestor: int) -> set[str]:
    """The ids of a process and of all that it started, and these in turn."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parents[process.name] = (process / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
    found, last = {str(ancestor)}, set[str]()
    while found != last:
        found, last = found | {pid for pid, parent in parents.items() if parent in found}, found
    return found


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files of this test alone, with a name that is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="ct-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def clusters(temporary: Path) -> list[Path]:
    """The folders of clusters."""
    return list(temporary.glob("ct-ray-*"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="what listens is read from Linux's tables")
def test_the_file_is_that_of_this_process_and_of_worker_processes_and_nothing_is_left(
    ray_paths: list[str], tmp_path: Path, temporary: Path
) -> None:
    for on in ("local", "local:2"):
        subprocess.run(command(tmp_path / f"{on}.jsonl", on), check=True, capture_output=True)
    running = subprocess.Popen(command(tmp_path / "ray.jsonl", "ray:2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    seen, begun = set[str](), False
    while running.poll() is None:
        seen |= listening(running.pid)
        begun = begun or bool(clusters(temporary))
        time.sleep(0.1)
    said, errors = running.communicate()
    assert running.returncode == 0, errors
    assert json.loads(said)["missing"] == 0
    assert (
        plain_results(tmp_path / "ray.jsonl")
        == plain_results(tmp_path / "local.jsonl")
        == plain_results(tmp_path / "local:2.jsonl")
    )
    assert seen
    assert seen <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert begun
    assert not clusters(temporary)
    assert not (Path.home() / ".ray" / "auth_token").exists() or os.environ.get("RAY_AUTH_TOKEN_PATH")


@pytest.mark.soak
def test_a_killed_command_is_continued_on_another_cluster(
    ray_paths: list[str], tmp_path: Path, temporary: Path
) -> None:
    out = tmp_path / "r.jsonl"
    first = subprocess.Popen(command(out, "ray:2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while first.poll() is None and (not out.exists() or len(out.read_bytes().splitlines()) < 4):
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    again = subprocess.run(command(out, "ray:2"), check=True, capture_output=True)
    assert json.loads(again.stdout)["missing"] == 0
    subprocess.run(command(tmp_path / "local.jsonl", "local"), check=True, capture_output=True)
    assert plain_results(out) == plain_results(tmp_path / "local.jsonl")
    # A process that is killed cannot remove the folder of its cluster.
    assert len(clusters(temporary)) == 1
