"""`concertino serve` from the command line, the example of the page, and what its settings refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from concertino.cli import command_line
from concertino.core.errors import ConcertinoError, UsageError
from concertino_serve.serve_settings import read_serve_settings
from concertino_serve.worker_group import _STOP_SECONDS

from .serving_example import EXAMPLES, example_served

POOL = 'members = ["toy/solve"]\n\n[roles]\norchestrator = "toy/leader"\n'
PRESET = '[presets.helper]\npool = "pool.toml"\n'


def written(folder: Path, text: str) -> Path:
    (folder / "pool.toml").write_text(POOL)
    file = folder / "serve.toml"
    file.write_text(text)
    return file


def served(folder: Path, text: str, *options: str) -> Result:
    return CliRunner().invoke(command_line, ["serve", str(written(folder, text)), *options])


@pytest.mark.slow
def test_the_example_of_the_page_asks_the_settings_of_the_page(tmp_path: Path) -> None:
    with example_served(tmp_path) as told:
        given = {**os.environ, "OPENAI_BASE_URL": f"{told['address']}/v1", "OPENAI_API_KEY": "none"}
        asked = [sys.executable, EXAMPLES / "ask.py"]
        done = subprocess.run(asked, env=given, capture_output=True, text=True, timeout=120, check=False)
    assert told["models"] == ["helper", "careful"]
    lines = done.stdout.splitlines()
    assert lines[0] == "models: helper, careful", done.stderr
    assert lines[1].startswith("chat: ")
    assert any(line.startswith("call: toy/") for line in lines)
    assert lines[-1] == "read again: True"
    assert len(list((tmp_path / "runs").glob("*.trace.jsonl"))) == 2


def test_the_settings_of_the_deployment_page_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADA_KEY", "ada-canary-0123456789")
    read = read_serve_settings(written(tmp_path, (EXAMPLES / "deployed.toml").read_text()))
    assert (list(read.presets), read.hosts, read.limits.drain_seconds) == (["helper"], ("pool.example",), 20)
    stop = next(line for line in (EXAMPLES / "concertino.service").read_text().splitlines() if "StopSec=" in line)
    assert float(stop.partition("=")[2]) >= read.limits.drain_seconds + _STOP_SECONDS


@pytest.mark.parametrize("given", [("--stdio",), ("--workers", "0")])
def test_workers_that_make_no_sense_are_refused(given: tuple[str, ...], tmp_path: Path) -> None:
    done = served(tmp_path, PRESET, "--workers", "2", *given)
    assert done.exit_code == 2
    assert "--workers" in done.output


def test_it_refuses_to_listen_elsewhere_without_a_key(tmp_path: Path) -> None:
    done = served(tmp_path, PRESET, "--host", "0.0.0.0", "--port", "0")
    assert done.exit_code == 2
    assert "[keys.ada]" in done.output


def test_a_wrong_key_of_sealed_traces_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCERTINO_TRACE_KEY", "seal-canary-0123")
    done = served(tmp_path, PRESET, "--port", "0")
    assert done.exit_code == 2
    assert "CONCERTINO_TRACE_KEY: expected 32 bytes" in done.output
    assert "seal-canary" not in done.output


def test_a_folder_that_another_server_has_is_refused(tmp_path: Path) -> None:
    from concertino_serve.served_folder import ServedFolder

    held = ServedFolder(tmp_path / "runs")
    done = served(tmp_path, f'traces = "runs"\n{PRESET}', "--port", "0")
    held.release()
    assert done.exit_code == 2
    assert f"process {os.getpid()} serves the runs of this folder already" in done.output
    ServedFolder(tmp_path / "runs").release()


async def test_an_answer_does_not_wait_for_the_one_before_to_be_acknowledged() -> None:
    import asyncio
    import socket

    from concertino_serve.http_server import listen

    delays: list[int] = []

    def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        given = writer.get_extra_info("socket")
        delays.append(given.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listening = listen("127.0.0.1", 0)
    async with await asyncio.start_server(taken, sock=listening):
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        assert await reader.read() == b""
        writer.close()
    assert delays == [1]


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = served(tmp_path, PRESET, "--port", str(taken.getsockname()[1]))
    assert done.exit_code == 2
    assert "cannot be used" in done.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no preset"),
        ("[presets.a]\npool = 3\n", "pool = 3; expected a text"),
        (f"{PRESET}poool = 1\n", "unknown key 'poool'"),
        (f'{PRESET}model = "none/such"\n', "presets.helper"),
        (f'{PRESET}strategy = "none"\n', "presets.helper"),
        (f'{PRESET}budget = "usd"\n', "usd"),
        (f'{PRESET}on_disconnect = "explode"\n', "expected 'cancel' or 'continue'"),
        (f"{PRESET}[keys.ada]\n", "env is missing"),
        (f'{PRESET}[keys.ada]\nenv = "NO_SUCH_SERVE_KEY"\n', "NO_SUCH_SERVE_KEY is not set"),
        (f'{PRESET}[keys.ada]\nenv = "SHORT_SERVE_KEY"\n', "SHORT_SERVE_KEY is too short"),
        (f'{PRESET}[keys.ada]\nkey = "sk-123"\n', "unknown key 'key'"),
        (f"{PRESET}[limits]\nruns = 0\n", "expected 1 or more"),
        (f"hosts = 3\n{PRESET}", "expected a list of texts"),
    ],
    ids=lambda text: text.splitlines()[-1] if text else "empty",
)
def test_settings_that_are_wrong_are_refused_with_their_place(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT_SERVE_KEY", "abc")
    with pytest.raises(ConcertinoError) as refused:
        read_serve_settings(written(tmp_path, text))
    assert said in str(refused.value)
    assert "abc" not in str(refused.value)


def test_a_daily_limit_needs_presets_with_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import concertino_serve

    monkeypatch.setenv("ADA_SERVE_KEY", "ada-canary-0123456789")
    file = written(tmp_path, f'{PRESET}[keys.ada]\nenv = "ADA_SERVE_KEY"\nusd_per_day = 1\n')
    with pytest.raises(UsageError, match="no budget in usd"):
        concertino_serve.make_app(file)
