"""Scripts that try to get out, to take everything, to survive or to lie: judged by what they achieved."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from concertino_code.sandbox.jailed import JailedSandbox
from jail_suite import ATTACKS, assault, read_attacks

KNOWN_GAPS = {
    "landlock": {
        "own_ssh_and_docker",  # landlock does not hide that a file exists
        "own_unix_in_own_folder",  # sockets come in pairs only
        "own_tmpfs_bomb",  # an ordinary folder has no quota
        "own_inode_bomb",
        "f07_multiprocessing",  # no /dev/shm
        "own_memory_forked",  # the bound of processes counts those of other scripts too
        "own_memory_exec",
        "own_child_keeps_streams",  # no process may make a session of its own
    },
    "bubblewrap": {
        "own_inode_bomb",  # three folders of the full size, without a bound of files
        "own_tmpfs_bomb",
        "own_device_files",  # bwrap's /dev has terminals, of the jail's own
        "own_init_memory",  # its process 1 belongs to the script's user; it holds nothing but the exit status
        "own_oom_score",
    },
}


def _all_scripts(folder: Path) -> list[Any]:
    scripts = ATTACKS + read_attacks(folder)
    assert len(scripts) >= 100
    return scripts


async def test_every_fifth_of_our_own_attacks_achieves_nothing(sandbox: JailedSandbox) -> None:
    # All of them take half a minute; the slow test below runs them, and others.
    assert await assault(sandbox, ATTACKS[::5]) == {}


@pytest.mark.slow
async def test_all_attacks_achieve_nothing_in_random_order(sandbox: JailedSandbox, shared_attacks: Path) -> None:
    times = 3 if os.environ.get("CONCERTINO_FUZZ") else 1
    assert await assault(sandbox, _all_scripts(shared_attacks), repetitions=times, seed=os.getpid()) == {}


def _as_ordinary_user(level: str, folder: Path, **environment: str) -> dict[str, Any]:
    if os.getuid() != 0:
        pytest.skip("the tests already run as an ordinary user")
    command = [sys.executable, str(Path(__file__).parent / "ordinary_user.py"), level, "1", str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=110, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["user"] == 65534
    return result


@pytest.mark.slow
def test_all_attacks_achieve_nothing_against_an_ordinary_user(namespaces: None, shared_attacks: Path) -> None:
    result = _as_ordinary_user("namespaces", shared_attacks)
    assert result["refused"] == ""
    assert result["achieved"] == {}


@pytest.mark.slow
@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_a_weaker_level_holds_but_for_its_known_gaps(level: str, shared_attacks: Path) -> None:
    program = os.environ.get("CONCERTINO_CODE_BWRAP") or shutil.which("bwrap")
    if level == "bubblewrap" and program is None:
        pytest.skip("bwrap is not installed, and CONCERTINO_CODE_BWRAP names none")
    result = _as_ordinary_user(level, shared_attacks, **({"CONCERTINO_CODE_BWRAP": program} if program else {}))
    if level == "landlock" and "landlock: ABI" in result["refused"]:
        pytest.skip(result["refused"])
    assert result["refused"] == ""
    assert {name: what for name, what in result["achieved"].items() if name not in KNOWN_GAPS[level]} == {}
