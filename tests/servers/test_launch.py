"""The machinery that starts and stops servers, shown on a small web server, and once on a real one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import launch
import pytest
import servers
from record import payload
from script import exchange

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="servers are looked after through /proc")

WEB = "import http.server, sys; {before}; http.server.HTTPServer(('127.0.0.1', {port}), {handler}).serve_forever()"
HANDLER = "http.server.SimpleHTTPRequestHandler"


def command(before: str = "pass", handler: str = HANDLER) -> list[str]:
    """A web server's; the port is filled in by `launch`."""
    return [sys.executable, "-c", WEB.replace("{before}", before).replace("{handler}", handler)]


def start(tmp_path: Path, before: str = "pass") -> launch.Server:
    return begin(tmp_path, before).answering()


def begin(tmp_path: Path, before: str = "pass") -> launch.Starting:
    return launch._begin("web", tmp_path / "tiny", command(before), None, "/")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_stopped_server_is_gone_with_its_children_and_its_port(tmp_path: Path) -> None:
    child = "import subprocess; subprocess.Popen(['sleep', '60']); subprocess.Popen(['setsid', 'sleep', '0'])"
    with start(tmp_path, child) as server:
        processes = [process.pid for process in launch._session(server.pid)]
        assert len(processes) >= 2
        assert server.ask("/")[0] == 200
    assert not any(map(is_alive, processes))
    assert not launch._is_open(server.port)
    server.stop()  # once more does nothing


def test_a_server_that_ignores_the_request_to_end_is_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "STOP_SECONDS", 0.3)
    with start(tmp_path, "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)") as server:
        assert is_alive(server.pid)
    assert not is_alive(server.pid)


def test_shared_memory_that_stays_behind_is_an_error(tmp_path: Path) -> None:
    memory = Path("/dev/shm") / f"concertino-test-{os.getpid()}"
    memory.write_bytes(b"x" * 4096)
    keep = f"import mmap; file = open('{memory}', 'r+b'); kept = mmap.mmap(file.fileno(), 4096)"
    try:
        server = start(tmp_path, keep)
        with pytest.raises(launch.LeftBehind, match=rf"web server {server.pid} left behind: .*{memory}"):
            server.stop()
    finally:
        memory.unlink()


def test_a_server_that_was_begun_and_that_nobody_waited_for_is_stopped(tmp_path: Path) -> None:
    starting = begin(tmp_path, "import time; time.sleep(60)")
    pid = starting.server.pid
    assert is_alive(pid)
    starting.stop()
    assert not is_alive(pid)


def test_a_server_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    with pytest.raises(launch.NotReady, match=r"(?s)ended with status 3; the end of .*no such weights"):
        start(tmp_path, "print('no such weights'); sys.exit(3)")


def test_a_server_ends_with_the_tests_that_are_killed(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}; from pathlib import Path; import launch\n"
        f"server = launch._begin('web', Path({str(tmp_path / 'tiny')!r}), {command()!r}, None, '/').answering()\n"
        "print(server.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        assert is_alive(pid)
        tests.send_signal(signal.SIGKILL)
    assert launch._within(10, lambda: not is_alive(pid))


def test_a_python_that_is_not_there_is_a_reason_that_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCERTINO_TEST_VLLM", "/nowhere/bin/python")
    with pytest.raises(servers.Absent, match=r"CONCERTINO_TEST_VLLM=/nowhere/bin/python is no file"):
        launch.vllm(Path("tiny"))


@pytest.mark.slow
def test_an_environment_that_cannot_be_installed_is_a_reason_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "PLACES", tmp_path)
    monkeypatch.delenv("CONCERTINO_TEST_NONE", raising=False)
    absent = servers.Environment("none", "server at all", ("concertino-no-such-server",), "never", lambda place: None)
    monkeypatch.setattr(servers, "pip", _pip_without_an_index)
    with pytest.raises(servers.Absent):
        absent.prepare()
    assert not absent.place.exists()
    with pytest.raises(servers.Absent, match=r"no server at all: .*concertino-no-such-server.*scripts/servers.py none"):
        absent.python()


def _pip_without_an_index(venv: Path, *arguments: str, **options: object) -> None:
    from environment import pip

    pip(venv, arguments[0], "--no-index", *arguments[1:], log=servers.LOG, constrained=False)


@pytest.mark.server
def test_processor_time_is_that_of_the_server_and_stops_with_its_work(transformers_server: launch.Server) -> None:
    server = transformers_server
    before = server.cpu_seconds()
    status, _ = server.ask("/v1/chat/completions", payload(exchange("count"), max_tokens=400))
    worked = server.cpu_seconds() - before
    time.sleep(1)
    assert status == 200
    assert worked > 0.2
    assert server.cpu_seconds() - before - worked < 0.5


@pytest.mark.soak
def test_a_second_server_runs_beside_the_first_with_other_weights(
    transformers_server: launch.Server, tiny_model: Path
) -> None:
    with launch.transformers(tiny_model.parent / "tiny-changed") as changed:
        assert changed.port != transformers_server.port
        for server, reply in ((transformers_server, b'"pong"'), (changed, b'"pang"')):
            status, body = server.ask("/v1/chat/completions", {**payload(exchange("answer")), "model": server.model})
            assert status == 200
            assert reply in body
