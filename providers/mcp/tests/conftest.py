"""Servers for tests, a pool of one server, and figures printed at the end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import concertino as ct
import concertino_mcp
import pytest

HERE = Path(__file__).parent
FULL = HERE / "servers" / "full_server.py"
BARE = HERE / "servers" / "bare_server.py"
FIGURES: list[str] = []


@pytest.fixture(scope="session")
def figure() -> Callable[[str], None]:
    """Takes a line that is printed when all tests are over."""
    return FIGURES.append


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in FIGURES:
        terminalreporter.write_line(f"FIGURE {line}")


@pytest.fixture(autouse=True)
def _no_server_is_left() -> Iterator[None]:
    """Every test ends without a process of its servers."""
    _OTHERS.update(guards())
    yield
    concertino_mcp.close()
    assert guards() == []


_OTHERS: set[int] = set()
"""Guards that were there before a test: of a sandbox, say, that waits for its next script."""


def guards() -> list[int]:
    """Processes that guard servers of this process."""
    found: list[int] = []
    for folder in Path("/proc").iterdir() if Path("/proc").is_dir() else []:
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            is_guard = any(word.endswith(b"/guard.py") for word in words[:5])
            if is_guard and any(f'"owner": {os.getpid()},'.encode() in word for word in words):
                found.append(int(folder.name))
    return [pid for pid in found if pid not in _OTHERS]


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def read(file: Path) -> str:
    """What a server noted so far."""
    return file.read_text(encoding="utf-8") if file.exists() else ""


def bare(mode: str = "good", file: Path | None = None, **options: Any) -> dict[str, Any]:
    """The options of a server without manners."""
    command = [sys.executable, "-S", str(BARE), mode, *([str(file)] if file else [])]
    return {"command": command, "start_timeout": 20.0, **options}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Where a server writes what it heard."""
    return tmp_path / "notes.txt"


@pytest.fixture
def full(notes: Path) -> dict[str, Any]:
    """The options of the server with everything, over stdio."""
    return {"command": [sys.executable, str(FULL), str(notes)], "start_timeout": 60.0}


class HttpServer:
    """The server with everything, over HTTP."""

    def __init__(self, notes: Path, port: int) -> None:
        self.notes = notes
        self.port = port
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, str(FULL), str(self.notes), str(self.port)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the HTTP server did not start")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def http_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    server = HttpServer(tmp_path_factory.mktemp("http") / "notes.txt", free_port())
    server.start()
    yield server
    server.stop()


class Members:
    """The members of one server, called through the real executor."""

    def __init__(self, specs: list[Any]) -> None:
        self.specs = {spec.function.tool: spec for spec in specs}
        self.pool = ct.Pool.of(*specs)

    def __getitem__(self, tool: str) -> Any:
        return self.specs[tool]

    async def call(self, tool: str, /, **arguments: Any) -> ct.Observation:
        async with ct.Executor() as executor:
            return (await executor.run([ct.Call(self.specs[tool].name, arguments)], self.pool))[0]

    async def call_all(self, *calls: tuple[str, dict[str, Any]]) -> list[ct.Observation]:
        async with ct.Executor() as executor:
            return await executor.run([ct.Call(self.specs[tool].name, given) for tool, given in calls], self.pool)


async def open_members(name: str = "s", **options: Any) -> Members:
    """Members of a server that was just started."""
    return Members(await concertino_mcp.server_async(name, **options))


def code(seen: ct.Observation) -> str:
    return seen.error.code if seen.error else ""
