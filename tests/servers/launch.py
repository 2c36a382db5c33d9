"""Start real model servers for tests, and leave nothing of them behind.

    with launch.vllm(model, "--enable-lora", env={"VLLM_SERVER_DEV_MODE": "1"}) as server:
        server.base_url, server.model, server.cpu_seconds()

`model` makes the tiny model. `transformers`, `vllm` and `llama` each start one server with the model of a folder, on a
free port of the loopback interface, in a session of its own, wait until it answers, and warm it up. Session fixtures of
the same names with `_server` behind them share one instance each; they are in the root conftest. `begin_vllm` does not
wait: vLLM takes forty seconds on one processor to come up, and tests of other servers can run meanwhile.

The invariant: after `stop` no process of the server is alive, its port is closed, and no shared memory that it had
mapped is left; else `stop` raises `LeftBehind`, which fails the last test that used the server. A server ends with the
thread that started it, even if that is killed, since the kernel then signals it: start it in the main thread.

`Absent` (from `servers`) is the reason why a server cannot be started here at all; `NotReady` is raised where it should
have been.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from environment import VENV, exclusive
from servers import LLAMA, PLACES, VLLM, Absent
from tree import ROOT

HERE = Path(__file__).resolve().parent

CONTEXT = 4096
"""Tokens of prompt and reply together that every server accepts."""

START_SECONDS = 240.0
STOP_SECONDS = 20.0
_TICKS = os.sysconf("SC_CLK_TCK")

# A server that outlives a killed pytest would hold its memory until the machine is restarted.
_UNTIL_PARENT_ENDS = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); os.execv(sys.argv[1], sys.argv[1:])"

_CACHE = PLACES / "cache"
_SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HOME": str(_CACHE / "hf"),
    "XDG_CACHE_HOME": str(_CACHE),
    "TORCHINDUCTOR_CACHE_DIR": str(_CACHE / "inductor"),
    "TRITON_CACHE_DIR": str(_CACHE / "triton"),
    "VLLM_CACHE_ROOT": str(_CACHE / "vllm"),
    "VLLM_CONFIG_ROOT": str(_CACHE / "vllm-config"),
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


class NotReady(Exception):
    """A server that is installed did not come up; the message ends with its log."""


class LeftBehind(Exception):
    """A stopped server left something; the message lists what."""


@dataclass
class Server:
    """A running server.

    Attributes:
        kind: `transformers`, `vllm` or `llama`.
        base_url: ends in `/v1`.
        model: the name to ask for.
        pid: of the process that was started; its session and its group have the same number.
        log: the file with all that it printed.
    """

    kind: str
    base_url: str
    model: str
    process: subprocess.Popen[bytes]
    log: Path
    _memory: set[str] = field(default_factory=set)

    @property
    def pid(self) -> int:
        """Of the process that was started; its session and its group have the same number."""
        return self.process.pid

    @property
    def port(self) -> int:
        """The port it listens on, at 127.0.0.1."""
        return urlsplit(self.base_url).port or 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def cpu_seconds(self) -> float:
        """Processor time, user and system, of all its processes and of their ended children."""
        return sum(process.ticks for process in _session(self.pid)) / _TICKS

    def ask(self, path: str, body: Mapping[str, Any] | None = None, timeout: float = 60.0) -> tuple[int, bytes]:
        """Status and body of one plain request, `path` from the root of the server: POST with a body, else GET."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            if body is None:
                connection.request("GET", path)
            else:
                connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def stop(self) -> None:
        """Ask the whole group to end, then force it. Doing so again does nothing.

        Raises:
            LeftBehind: something of the server is still there.
        """
        if self.process.returncode is not None and not any(_session(self.pid)):
            return
        self._memory |= _mapped_memory(self.pid)
        for sign, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 5.0)):
            _signal_session(self.pid, sign)
            if _within(seconds, self._is_gone):
                break
        left = [f"process {process.pid} ({process.name})" for process in _session(self.pid)]
        left += [f"shared memory {path}" for path in sorted(self._memory) if Path(path).exists()]
        left += [f"port {self.port}, still open"] if _is_open(self.port) else []
        if left:
            raise LeftBehind(f"the {self.kind} server {self.pid} left behind: {'; '.join(left)}; its log: {self.log}")

    def _is_gone(self) -> bool:
        return self.process.poll() is not None and not any(_session(self.pid))


@dataclass
class Starting:
    """A server that was started, and may not answer yet. Use `ready`, and `stop` where nobody did.

    Attributes:
        server: what it is going to be.
        health: the path that answers with 200 once it is up.
        first: settings of the request that warms it up.
    """

    server: Server
    health: str
    first: Mapping[str, Any]

    def ready(self) -> Server:
        """The server, once it answers and is warm.

        Raises:
            NotReady: it did not come up, and is stopped.
        """
        server = self.answering()
        try:
            _warm_up(server, self.first)
        except BaseException:
            server.stop()
            raise
        return server

    def answering(self) -> Server:
        """The server, once it answers, as `ready`."""
        server, process = self.server, self.server.process
        try:
            if not _within(START_SECONDS, lambda: process.poll() is not None or _answers(server, self.health), 0.1):
                late = f"the {server.kind} server did not answer within {START_SECONDS:.0f} s"
                raise NotReady(f"{late};{_end_of(server.log)}")
            if process.poll() is not None:
                ended = f"the {server.kind} server ended with status {process.returncode}"
                raise NotReady(f"{ended};{_end_of(server.log)}")
        except BaseException:
            server.stop()
            raise
        return server

    def stop(self) -> None:
        """Stop the server; nothing where that was done. Raises LeftBehind as `Server.stop` does."""
        self.server.stop()


def model() -> Path:
    """The folder of the tiny model, made once for the tree and kept. Beside it are its variants (`tiny_model`).

    Raises:
        Absent: torch or transformers is not in `.venv`.
        NotReady: it could not be made; the message has the reason.
    """
    sources = ("script.py", "template.jinja", "tiny_model.py")
    key = hashlib.sha256(b"".join((HERE / source).read_bytes() for source in sources)).hexdigest()[:16]
    folder = PLACES / "models" / key
    if not folder.is_dir():
        _require("torch", "transformers")
        with exclusive("tiny-model"):
            if not folder.is_dir():  # other tests may have made it meanwhile
                folder.parent.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
                    _make_model(Path(temporary, "all"))
                    Path(temporary, "all").rename(folder)
    return folder / "tiny"


def _make_model(folder: Path) -> None:
    """Make it in a process of its own: torch stays out of this one."""
    command = [str(VENV / "bin" / "python"), str(HERE / "tiny_model.py"), str(folder)]
    done = subprocess.run(command, env={**os.environ, **_SETTINGS}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReady(f"the tiny model was not made; {' '.join(command)} ended with:\n{done.stderr[-2000:]}")


def _require(*packages: str) -> None:
    for package in packages:
        if not any(VENV.glob(f"lib/python*/site-packages/{package}")):
            raise Absent(f"{package} is not in .venv; `make test` puts it there")


def transformers(model: Path, *flags: str, env: Mapping[str, str] | None = None) -> Server:
    """Start `transformers serve` from the tree's environment.

    Raises:
        Absent: it is not installed.
        NotReady: it did not come up.
    """
    python = VENV / "bin" / "python"
    _require("transformers")
    (_CACHE / "hf" / "hub").mkdir(parents=True, exist_ok=True)  # without it the list of models is an error
    command = [str(python), "-m", "transformers.cli.transformers", "serve", model.name]
    command += ["--device", "cpu", "--dtype", "float32", "--host", "127.0.0.1", "--port", "{port}"]
    return _begin("transformers", model, [*command, *flags], env, "/health").ready()


def vllm(model: Path, *flags: str, env: Mapping[str, str] | None = None) -> Server:
    """Start vLLM, with automatic tool choice and a queue of eight; later flags win over these.

    Raises:
        Absent: it is not installed, for the reason given.
        NotReady: it did not come up.
    """
    return begin_vllm(model, *flags, env=env).ready()


def begin_vllm(model: Path, *flags: str, env: Mapping[str, str] | None = None) -> Starting:
    """Start vLLM as `vllm` does, without waiting for it.

    Raises:
        Absent: it is not installed, for the reason given.
    """
    command = [str(VLLM.python()), "-m", "vllm.entrypoints.cli.main", "serve", model.name]
    command += ["--served-model-name", model.name, "--host", "127.0.0.1", "--port", "{port}"]
    command += ["--dtype", "float32", "--enforce-eager", "--max-model-len", str(CONTEXT), "--max-num-seqs", "32"]
    command += ["--kv-cache-memory-bytes", str(64 << 20), "--block-size", "32", "--enable-prompt-tokens-details"]
    command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--max-num-queued-reqs", "8"]
    first = {"logprobs": True, "top_logprobs": 1}  # the first request for them compiles
    return _begin("vllm", model, [*command, *flags], env, "/health", first)


def llama(model: Path, *flags: str, env: Mapping[str, str] | None = None) -> Server:
    """Start llama.cpp's server; the weights are written as GGUF beside the folder of the model.

    Raises:
        Absent: it is not installed, for the reason given.
        NotReady: it did not come up.
    """
    python, weights = str(LLAMA.python()), model.with_suffix(".gguf")
    if not weights.is_file():
        partial = weights.with_suffix(f".{os.getpid()}")
        subprocess.run([python, str(HERE / "tiny_gguf.py"), str(model), str(partial)], check=True)
        partial.replace(weights)
    command = [python, "-m", "llama_cpp.server", "--model", weights.name, "--model_alias", model.name]
    command += ["--n_ctx", str(CONTEXT), "--n_threads", "1", "--host", "127.0.0.1", "--port", "{port}"]
    return _begin("llama", model, [*command, *flags], env, "/v1/models").ready()


def _begin(
    kind: str,
    model: Path,
    command: list[str],
    env: Mapping[str, str] | None,
    health: str,
    first: Mapping[str, Any] | None = None,
) -> Starting:
    """Start a command in the folder of the models."""
    if sys.platform != "linux":
        raise Absent(f"servers are looked after through /proc, which {sys.platform} has not")
    port = _free_port()
    log = _new_log(kind, port)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("COVERAGE_", "COV_CORE_"))}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", _UNTIL_PARENT_ENDS, *(word.format(port=port) for word in command)],
            cwd=model.parent,
            env={**inherited, **_SETTINGS, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    lower_priority(process.pid)
    server = Server(kind, f"http://127.0.0.1:{port}/v1", model.name, process, log)
    return Starting(server, health, first or {})


def lower_priority(pid: int) -> None:
    """Have the session of a process wait when others want the processors, as far as the kernel has sessions wait."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text("10")


def _new_log(kind: str, port: int) -> Path:
    """Where a server writes; the logs of the last ten starts are kept."""
    folder = PLACES / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob(f"{kind}-*.log"), key=lambda file: file.stat().st_mtime)[:-9]:
        old.unlink(missing_ok=True)
    return folder / f"{kind}-{port}.log"


def _warm_up(server: Server, settings: Mapping[str, Any]) -> None:
    """One request as tests make them, so that what is loaded or compiled once is not part of a test."""
    request = {"model": server.model, "messages": [{"role": "user", "content": "Say ping."}], "max_tokens": 2}
    status, body = server.ask("/v1/chat/completions", {**request, **settings}, START_SECONDS)
    if status != 200:
        raise NotReady(f"the {server.kind} server answered {status} to its first request: {body[:500]!r}")


def _answers(server: Server, path: str) -> bool:
    try:
        return server.ask(path, timeout=5)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def _within(seconds: float, condition: Callable[[], bool], pause: float = 0.05) -> bool:
    """Whether a condition comes to hold in that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Process(NamedTuple):
    """What /proc says of one living process."""

    pid: int
    name: str
    group: int
    ticks: int  # of processor time, with that of its ended children


def _session(session: int) -> Iterator[Process]:
    """Every living process of a session."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue  # it ended meanwhile
            name, _, rest = stat.partition(" (")[2].rpartition(") ")
            state, _, group, its_session, *more = rest.split()
            if its_session == str(session) and state not in "ZX":
                yield Process(int(folder.name), name, int(group), sum(map(int, more[7:11])))


def _signal_session(session: int, sign: signal.Signals) -> None:
    """To the group first, which is nearly all; then to those that made groups of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, sign)
    for process in _session(session):
        if process.group != session:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, sign)


def _mapped_memory(pid: int) -> set[str]:
    """Files of shared memory that processes of a session have mapped now."""
    found = set()
    for process in _session(pid):
        try:
            lines = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        found |= {line.split(maxsplit=5)[5] for line in lines if " /dev/shm/" in line and "(deleted)" not in line}
    return found


def _end_of(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return f" the end of {log.relative_to(ROOT)}:\n" + "\n".join(lines[-30:])
