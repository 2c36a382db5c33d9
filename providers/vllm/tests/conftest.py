"""What the tests of this provider share: a stand-in for `vllm`, and a look at what is left of processes."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import concertino_vllm
import pytest
from concertino import ModelSpec

STAND_IN = Path(__file__).with_name("stand_in.py")
MARKS = ("stand_in.py", "_watchdog.py", "time.sleep(600)", "vllm serve", "VLLM::", "EngineCore")
PATIENCE = 20.0
"""Seconds within which whatever is to end has to end."""

Declare = Callable[..., ModelSpec]


@pytest.fixture
def executable(tmp_path: Path) -> Path:
    """A `vllm` command that is the stand-in."""
    command = tmp_path / "bin" / "vllm"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{STAND_IN}' \"$@\"\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return command


@pytest.fixture
def declare(executable: Path, system: System) -> Iterator[Declare]:
    """Declare a model on a stand-in: `wish` is what the stand-in is to do, the rest are options."""
    specs: list[ModelSpec] = []

    def declare(wish: dict[str, Any] | None = None, **options: Any) -> ModelSpec:
        env = {"STAND_IN": json.dumps(wish or {}), **options.pop("env", {})}
        options = {"model": "someone/some-model", "executable": executable, "grace_seconds": 5, **options}
        specs.append(concertino_vllm.model("coder", env=env, **options))
        return specs[-1]

    yield declare
    for spec in specs:
        concertino_vllm.server(spec).stop().result(PATIENCE)


@pytest.fixture
def system() -> Iterator[System]:
    """The system's processes and shared memory; what is new at the end of a test fails it."""
    if sys.platform != "linux":
        pytest.skip("looks at /proc and /dev/shm, which only Linux has")
    system = System()
    yield system
    system.settle()
    assert system.new() == set()


class System:
    """Servers' processes, shared memory and scratch folders."""

    def __init__(self) -> None:
        self._before = self._now()

    def _now(self) -> set[str]:
        return {f"process {pid}: {command}" for pid, command in self.processes()} | {
            f"shared memory {path}" for path in Path("/dev/shm").iterdir()
        }

    def processes(self) -> list[tuple[int, str]]:
        """Living processes of servers, as pid and command."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue
                if any(mark in command for mark in MARKS) and self.alive(int(entry.name)):
                    found.append((int(entry.name), command))
        return found

    def alive(self, pid: int) -> bool:
        """Whether a process is there and no zombie."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    def new(self) -> set[str]:
        """What is there now and was not before."""
        return self._now() - self._before

    def new_processes(self) -> list[int]:
        """Pids that are there now and were not before."""
        return [pid for pid, command in self.processes() if f"process {pid}: {command}" not in self._before]

    def settle(self) -> float:
        """Wait until nothing is new, or patience ends; seconds that it took."""
        began = time.monotonic()
        while self.new() and time.monotonic() - began < PATIENCE:
            time.sleep(0.05)
        return time.monotonic() - began

    def run_python(self) -> list[str]:
        """A Python that finds this provider."""
        return [sys.executable]


@pytest.fixture
def owner_environment(executable: Path) -> dict[str, str]:
    """The environment for a program that owns a server."""
    return {**os.environ, "CONCERTINO_VLLM": str(executable), "STAND_IN": "{}"}
