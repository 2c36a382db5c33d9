"""What the tests of this provider share: a stand-in for `vllm`, and a look at what is left of processes."""

from __future__ import annotations

import contextlib
import json
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import concertino_vllm
import pytest
from concertino import ModelSpec

STAND_IN = Path(__file__).with_name("stand_in.py")
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
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    """What the test started; whatever of it is left at the end fails the test."""
    if sys.platform != "linux":
        pytest.skip("looks at /proc and /dev/shm, which only Linux has")
    system = System(f"concertino{uuid.uuid4().hex[:12]}")
    monkeypatch.setenv("CONCERTINO_TEST_MARK", system.mark)
    yield system
    system.settle()
    assert system.left() == set()


class System:
    """Processes that inherited the mark of one test, and the shared memory that they held."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self._held: set[Path] = set()

    def processes(self) -> list[int]:
        """Pids of the living ones."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and self.mark.encode() in (entry / "environ").read_bytes():
                    found += [int(entry.name)] if self.alive(int(entry.name)) else []
        return found

    def alive(self, pid: int) -> bool:
        """Whether a process is there and no zombie."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    def servers(self) -> list[int]:
        """Those of servers: all but a program under test and its children."""
        return [pid for pid in self.processes() if "owner.py" not in self.command(pid)]

    def command(self, pid: int) -> str:
        """Program and arguments."""
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""

    def look(self) -> set[Path]:
        """The shared memory that the processes hold now; it is looked for again at the end."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                for link in Path(f"/proc/{pid}/fd").iterdir():
                    with contextlib.suppress(OSError):
                        target = str(link.readlink())
                        if target.startswith("/dev/shm/") and not target.endswith("(deleted)"):
                            self._held.add(Path(target))
        return self._held

    def left(self) -> set[str]:
        """What is left."""
        memory = {str(path) for path in {*self._held, *Path("/dev/shm").glob(f"{self.mark}*")} if path.exists()}
        return {f"{pid}: {self.command(pid)}" for pid in self.servers()} | memory

    def settle(self) -> float:
        """Wait until nothing is left, or patience ends; seconds that it took."""
        began = time.monotonic()
        while self.left() and time.monotonic() - began < PATIENCE:
            time.sleep(0.02)
        return time.monotonic() - began
