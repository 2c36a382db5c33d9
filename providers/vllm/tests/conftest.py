"""What the tests of this provider share: a stand-in for `vllm`, and a look at what is left of processes."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import shutil
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import concertino_vllm
import pytest
from concertino import ModelSpec

STAND_IN = Path(__file__).with_name("stand_in.py")
OWNER = Path(__file__).with_name("owner.py")
PATIENCE = 20.0
"""Seconds within which whatever is to end has to end."""

Declare = Callable[..., ModelSpec]


async def until(happened: Callable[[], Any]) -> None:
    """Wait until a function, or the coroutine that it gives, says that something has happened."""
    async with asyncio.timeout(PATIENCE):
        while True:
            seen = happened()
            if await seen if inspect.isawaitable(seen) else seen:
                return
            await asyncio.sleep(0.02)


@pytest.fixture
def executable(tmp_path: Path) -> Path:
    """A `vllm` command that is the stand-in."""
    command = tmp_path / "bin" / "vllm"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{STAND_IN}' \"$@\"\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return command


@pytest.fixture
def declare(executable: Path, system: System, tmp_path: Path) -> Iterator[Declare]:
    """Declare a model on a stand-in: `wish` is what the stand-in is to do, the rest are options."""
    specs: list[ModelSpec] = []

    def declare(wish: dict[str, Any] | None = None, **options: Any) -> ModelSpec:
        env = {"STAND_IN": json.dumps(wish or {}), **options.pop("env", {})}
        options = {"model": "someone/some-model", "executable": executable, "grace_seconds": 5, **options}
        options.setdefault("log", tmp_path / "server.log")
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

    def files_when(self, expected: list[str] | None, folder: Path) -> list[str]:
        """Files of a folder, once they are those expected, or patience ends.

        The guard has no mark, and removes files after the last process of the server has ended.
        """
        began = time.monotonic()
        while True:
            files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
            if expected is None or files == expected or time.monotonic() - began > PATIENCE:
                return files
            time.sleep(0.02)


class Owner:
    """A program under test, and what it says.

    `leaves` are the files that stay: the log of a server that ended by itself, and nothing else. None: not looked at.
    """

    leaves: list[str] | None = []  # noqa: RUF012

    def __init__(self, way: str, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(OWNER), way],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )

    @cached_property
    def said(self) -> dict[str, Any]:
        """What it says once its server answers."""
        return self.next()

    @property
    def pid(self) -> int:
        """Of its server."""
        return int(self.said["pid"])

    def next(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read().decode())
        said: dict[str, Any] = json.loads(line)
        return said

    def guard(self) -> int:
        return int(Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[1])

    def children(self) -> list[int]:
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def run_owner(system: System, request: pytest.FixtureRequest) -> Iterator[Callable[..., Owner]]:
    """Start a program that owns a server: on a stand-in that does what `wish` says, or with the `options` given."""
    owners: list[Owner] = []

    def run(way: str, wish: dict[str, Any] | None = None, child_seconds: str = "1", **options: Any) -> Owner:
        if "executable" not in options:
            options["executable"] = request.getfixturevalue("executable")
        options.setdefault("env_from", ["STAND_IN"])
        env = {
            **os.environ,
            "STAND_IN": json.dumps(wish or {}),
            "OPTIONS": json.dumps(options, default=str),
            "CHILD_SECONDS": child_seconds,
            "TMPDIR": "/tmp",
        }
        owners.append(Owner(way, env))
        assert owners[-1].said
        return owners[-1]

    yield run
    for owner in owners:
        owner.end()
    _clear(owners, system)


def _clear(owners: list[Owner], system: System) -> None:
    """Look at what owners that ended have left, and remove it."""
    system.settle()
    for owner in owners:
        folder = Path(owner.said["log"]).parent
        files = system.files_when(owner.leaves, folder)
        shutil.rmtree(folder, ignore_errors=True)
        assert owner.leaves is None or files == owner.leaves


# -- the real vLLM -------------------------------------------------------------------------------------------


FIGURES: list[str] = []


@pytest.fixture
def figure() -> Callable[[str], None]:
    """Put a measured figure into the summary of the test run."""
    return FIGURES.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures."""
    for line in FIGURES:
        terminalreporter.write_line(f"FIGURE {line}")


@pytest.fixture(scope="session")
def real_options() -> dict[str, Any]:
    """Options with which the real vLLM serves the tiny model on CPU; skips where there is none."""
    from servers import PLACES, VLLM, Absent

    try:
        python = VLLM.python()
    except Absent as absent:
        pytest.skip(str(absent))
    cache = PLACES / "cache"
    return {
        "executable": python.parent / "vllm",
        "args": [
            *("--served-model-name", "tiny", "--dtype", "float32", "--enforce-eager", "--max-model-len", "4096"),
            *("--max-num-seqs", "32", "--kv-cache-memory-bytes", str(64 << 20), "--block-size", "32"),
            *("--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--max-num-queued-reqs", "8"),
        ],
        "env": {
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(cache / "hf"),
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
            "TRITON_CACHE_DIR": str(cache / "triton"),
            "VLLM_CACHE_ROOT": str(cache / "vllm"),
            "VLLM_CONFIG_ROOT": str(cache / "vllm-config"),
        },
        "startup_seconds": 240,
    }


@pytest.fixture(scope="session")
def vllm_policy(
    real_options: dict[str, Any], tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ModelSpec]:
    """The tiny model as a policy on a vLLM of its own, which all tests of the session share; it leaves nothing."""
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    system = System(f"concertino{uuid.uuid4().hex[:12]}")
    env = {**real_options["env"], "CONCERTINO_TEST_MARK": system.mark}
    options = {**real_options, "env": env, "training": True, "lora_rank": 8, "keep": True, "log": log}
    spec = concertino_vllm.model("policy", model=tiny_model, **options)
    yield spec
    system.look()
    concertino_vllm.server(spec).stop().result(PATIENCE)
    assert system.left() == set()


@pytest.fixture(scope="module")
def real_owner(real_options: dict[str, Any], tiny_model: Path) -> Iterator[tuple[Owner, System]]:
    """A program that owns a real server, which may not answer yet, and a look at what the two started."""
    system = System(f"concertino{uuid.uuid4().hex[:12]}")
    options = json.dumps({"model": tiny_model, **real_options}, default=str)
    owner = Owner("wait", {**os.environ, "OPTIONS": options, "CONCERTINO_TEST_MARK": system.mark, "TMPDIR": "/tmp"})
    yield owner, system
    try:
        assert owner.said  # it may just have come up, where no test asked
    finally:
        owner.end()
    _clear([owner], system)
    assert system.left() == set()
