"""Model servers and MCP servers that write escapes, names and marks to the terminal of the person who uses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from terminal_attacks import ATTACKS, EVERYTHING, harm

if sys.platform == "win32":
    pytest.skip("terminals of POSIX", allow_module_level=True)

from pseudo_terminal import written_to_terminal

pytestmark = pytest.mark.slow
SUPPORT = Path(__file__).parents[2] / "support"
SERVER = SUPPORT / "hostile_mcp_server.py"
HOSTILE = EVERYTHING.replace("\ud800", "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, with traces and caches of its own."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(variable)
    return tmp_path


def on_terminal(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """What a command writes to a terminal, byte by byte."""
    paths = [str(SUPPORT), os.environ.get("PYTHONPATH", "")]
    given = {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "CONCERTINO_TRACES": str(folder / "runs"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HOME": str(folder),
        "CONCERTINO_PLUGINS": "openai",
        **environment,
    }
    code, written = written_to_terminal(arguments, given, columns=100)
    return code, written.decode("utf-8", "surrogateescape")


# -- model servers -----------------------------------------------------------------------------------------------------


class ModelServer:
    """Speaks chat completions, and hostile: `refuse` with 400, `stream` or `reply` with a text, `names` in its list."""

    def __init__(self) -> None:
        self.mode = "reply"
        hostile = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                names = ["evil", *ATTACKS.values()]
                self.answer(200, {"object": "list", "data": [{"id": name, "owned_by": name} for name in names]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if hostile.mode == "refuse":
                    self.answer(400, {"error": {"message": HOSTILE, "type": HOSTILE, "code": HOSTILE}})
                elif hostile.mode == "refuse_as_text":
                    self.send(400, "text/plain", HOSTILE.encode(), reason="\x1b]0;owned\x07")
                elif hostile.mode == "error_in_stream":
                    self.send(
                        200, "text/event-stream", f"data: {json.dumps({'error': {'message': HOSTILE}})}\n\n".encode()
                    )
                elif body.get("stream"):
                    deltas = [{"content": sign} for sign in [*ATTACKS.values(), HOSTILE]]
                    chunks = [{"choices": [{"index": 0, "delta": delta}], "model": HOSTILE} for delta in deltas]
                    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
                    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
                    self.send(200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode())
                else:
                    message = {"role": "assistant", "content": f"<answer>{HOSTILE}</answer>"}
                    self.answer(200, {"model": HOSTILE, "choices": [{"message": message, "finish_reason": HOSTILE}]})

            def answer(self, status: int, data: Any) -> None:
                self.send(status, "application/json", json.dumps(data).encode())

            def send(self, status: int, kind: str, body: bytes, reason: str | None = None) -> None:
                self.send_response(status, reason)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Write nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/v1"


@pytest.fixture
def model_server(folder: Path) -> Iterator[ModelServer]:
    """The server, with a pool file whose leader it is."""
    found = ModelServer()
    thread = threading.Thread(target=found.server.serve_forever, daemon=True)
    thread.start()
    (folder / "pool.toml").write_text(
        'members = []\n[models."openai/evil"]\n'
        f'base_url = "{found.address}"\nserver = "vllm"\nmodel = "evil"\n[roles]\norchestrator = "openai/evil"\n',
        encoding="utf-8",
    )
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


RUN = ["run", "How many?", "--pool", "pool.toml", "--no-trace"]


@pytest.mark.parametrize("mode", ["refuse", "refuse_as_text", "error_in_stream", "reply"])
@pytest.mark.parametrize(
    "options",
    [["--live"], ["--plain"], ["--quiet"], ["--json"], ["--events"], ["--debug", "--plain"], ["--log-level", "debug"]],
    ids=" ".join,
)
def test_what_a_model_server_says_is_shown_and_not_obeyed(
    folder: Path, model_server: ModelServer, mode: str, options: list[str]
) -> None:
    model_server.mode = mode
    code, written = on_terminal(folder, *RUN, *options)
    assert "owned" in written
    assert harm(written, live="--live" in options) == [], code


@pytest.mark.parametrize(
    "command",
    [["probe", "URL"], ["probe", "URL", "--json"], ["probe", "URL", "--toml", "x"], ["doctor", "--probe"]],
    ids=" ".join,
)
def test_what_a_model_server_lists_is_shown_and_not_obeyed(
    folder: Path, model_server: ModelServer, command: list[str]
) -> None:
    given = [model_server.address if word == "URL" else word for word in command]
    code, written = on_terminal(folder, *given, OPENAI_BASE_URL=model_server.address, OPENAI_API_KEY="none")
    assert written.strip()
    assert harm(written) == [], code


def test_a_model_whose_name_hides_something_is_not_offered(folder: Path, model_server: ModelServer) -> None:
    from concertino.cli.leaders import listed

    names = listed(model_server.address)
    assert names is not None
    assert sorted(names) == ["[bold red on white]x[/][link=http://127.0.0.1]y[/link]", "evil"]


# -- MCP servers -------------------------------------------------------------------------------------------------------


@pytest.fixture
def settings(folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A settings file with the hostile server, given by name: not one that only lies in the folder."""
    server = f'command = "{sys.executable}"\nargs = ["{SERVER}"]\nenv_from = ["PYTHONPATH"]\n'
    child = None
    if getattr(request, "param", "stdio") == "http":
        environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
        child = subprocess.Popen([sys.executable, SERVER, "http"], stdout=subprocess.PIPE, text=True, env=environment)
        assert child.stdout is not None
        server = f'url = "http://127.0.0.1:{child.stdout.readline().strip()}/mcp"\n'
    file = folder / "settings.toml"
    file.write_text(f"[providers.mcp.servers.evil]\n{server}", encoding="utf-8")
    yield file
    if child is not None and child.stdout is not None:
        child.kill()
        child.wait()
        child.stdout.close()


COMMANDS = [
    ["mcp", "list"],
    ["mcp", "list", "--json"],
    ["mcp", "call", "evil", "echo", '{"text": "x"}'],
    ["mcp", "call", "evil", "fail"],
    ["mcp", "call", "evil", "no\x1b[2Jtool"],
    ["tools"],
    ["tools", "--json"],
    ["tools", "show", "mcp/evil.echo"],
    ["pool", "show"],
    ["plugins", "--load"],
    ["doctor"],
    ["call", "mcp/evil.echo", '{"text": "x"}'],
    ["call", "mcp/evil.echo", '{"text": "x"}', "--json"],
    ["call", "mcp/evil.fail", "{}"],
]
BY_HTTP = [command for command in COMMANDS if command[0] in ("mcp", "call") and "--json" not in command]


@pytest.mark.parametrize(
    ("settings", "command"),
    [*(("stdio", command) for command in COMMANDS), *(("http", command) for command in BY_HTTP)],
    indirect=["settings"],
    ids=ascii,
)
def test_what_an_mcp_server_says_is_shown_and_not_obeyed(folder: Path, settings: Path, command: list[str]) -> None:
    code, written = on_terminal(
        folder, *command, CONCERTINO_CONFIG=str(settings), CONCERTINO_PLUGINS="mcp", CONCERTINO_LOG="debug"
    )
    assert "evil" in written
    assert "cannot be used" not in written.lower()
    assert harm(written) == [], code


def test_tools_that_look_alike_are_told_apart_and_said_to(folder: Path, settings: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "concertino", "mcp", "list", "--json"],
        env={**os.environ, "CONCERTINO_CONFIG": str(settings), "PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    (server,) = json.loads(done.stdout)
    names = [tool["name"] for tool in server["tools"]]
    assert len(set(names)) == len(names) == 5
    assert all(name.isascii() and name.isprintable() for name in names)
    assert "mcp/evil.echo" in names
    assert sum("characters that nobody sees" in note["reason"] for note in server["notes"]) == 3
    assert all(each["tool"].isprintable() and each["reason"].isprintable() for each in server["refused"])
