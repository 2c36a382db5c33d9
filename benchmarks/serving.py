"""S28: what `concertino serve` adds to a run, what a streamed piece costs, 500 streams at once, memory that stays.

    python benchmarks/serving.py [--json] [--quick]

The same scripted runs (two replies of a model, one call, a trace on disk) are made by the same orchestrator in a
process of its own, and asked for over HTTP on this machine; both take turns. Server, orchestrator and client are three
processes, so each one's processor time is known: the server's comes from the kernel, and the client's is not in it.
The client is a socket that keeps its connection and counts bytes: what the official client costs is its own figure.

- *More per request*: the model takes 100 ms for a reply, as a quick one does. Milliseconds of the clock by which a
  request takes longer than the run without a server, at the middle and at 95 of 100.
- *Processor time*: the model takes no time. It hardly depends on what else the machine does.
- *Streams*: 500 at once, ten pieces a second each. A piece is the moment when the model gave it. Memory is what the
  server's process has grown by meanwhile.
- *Memory*: of the server's process, after a tenth of the requests and after all.
- *Others*: LiteLLM's proxy with an answer of its own (`python scripts/servers.py litellm`), and FastAPI that echoes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import Row, script
from served import PRESET, question

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))  # the environments of others

SERVED = Path(__file__).with_name("served.py")
TICK = os.sysconf("SC_CLK_TCK")
_STAMP = re.compile(rb'"content":" ?(\d{9,})')
_LITELLM_KEY = "sk-local-0123456789"


# -- processes -----------------------------------------------------------------------------------------------------


class Process:
    """A server in a process of its own.

    Args:
        port: where it listens; None if it says so itself.
    """

    def __init__(self, process: subprocess.Popen[str], port: int | None = None) -> None:
        self.process = process
        assert process.stdout is not None
        self.port = port or int(process.stdout.readline())

    @property
    def cpu(self) -> float:
        """Seconds of the processor that it has used."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICK

    @property
    def memory(self) -> float:
        """Resident memory in kB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return float(status.partition("VmRSS:")[2].split()[0])


@contextlib.contextmanager
def served(what: str, folder: Path) -> Iterator[Process]:
    """A process of `served.py`; it ends with its input."""
    command = [sys.executable, str(SERVED), what, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        try:
            yield Process(process) if what != "here" else Process(process, port=1)
        finally:
            process.stdin.close()
            process.wait(60)


def without_server(process: Process, **asked: int) -> tuple[list[float], float]:
    """Runs in the process without a server: the seconds of each, and those of the processor of all."""
    assert process.process.stdin is not None
    assert process.process.stdout is not None
    print(json.dumps(asked), file=process.process.stdin, flush=True)
    found = json.loads(process.process.stdout.readline())
    return found["took"], found["cpu"]


# -- the client ----------------------------------------------------------------------------------------------------


class Client:
    """A connection that is kept."""

    def __init__(self, port: int, key: str = "none") -> None:
        self.port, self.key = port, key

    async def __aenter__(self) -> Client:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.writer.close()

    async def ask(self, said: str, stream: bool = False) -> bytes:
        """The body of an answer."""
        return b"".join([piece async for piece in self.pieces(said, stream)])

    async def pieces(self, said: str, stream: bool) -> Any:
        """The body as it comes."""
        message = {"role": "user", "content": said}
        body = json.dumps({"model": PRESET, "messages": [message], "stream": stream}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
        head += f"content-type: application/json\r\nauthorization: Bearer {self.key}\r\n\r\n"
        self.writer.write(head.encode() + body)
        told = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        if not told.startswith(b"http/1.1 200"):
            raise SystemExit(f"the server refused: {told.decode()}")
        if b"chunked" not in told:
            yield await self.reader.readexactly(int(told.partition(b"content-length: ")[2].split()[0]))
            return
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            yield (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readexactly(2)


async def many(
    port: int, requests: int, clients: int, said: str, *, stream: bool = False, key: str = ""
) -> list[float]:
    """Seconds of each request."""
    left, took = iter(range(requests)), list[float]()

    async def one() -> None:
        async with Client(port, key) as client:
            for _ in left:
                began = time.perf_counter()
                answer = await client.ask(said, stream)
                took.append(time.perf_counter() - began)
                if stream and not answer.endswith(b"data: [DONE]\n\n"):
                    raise SystemExit(f"a stream broke off: {answer[-200:]!r}")

    await asyncio.gather(*(one() for _ in range(clients)))
    return took


def asked(server: Process, requests: int, clients: int, said: str, **more: Any) -> tuple[list[float], float]:
    """Seconds of each request, and those of the server's processor for all."""
    before = server.cpu
    took = asyncio.run(many(server.port, requests, clients, said, **more))
    return took, server.cpu - before


# -- what is measured ----------------------------------------------------------------------------------------------


def p95(values: list[float]) -> float:
    """The value that 95 of 100 do not pass."""
    return statistics.quantiles(values, n=20)[-1]


def more_per_request(server: Process, alone: Process, clients: int, quick: bool) -> list[Row]:
    """Milliseconds by which a request takes longer than a run."""
    requests, times = 20 * clients if clients == 1 or quick else 10 * clients, 2 if quick else 7
    middle: list[float] = []
    late: list[float] = []
    for number in range(times + 1):
        ours, _ = asked(server, requests, clients, question(100))
        bare, _ = without_server(alone, requests=requests, clients=clients, pause=100, pieces=0)
        if number:
            middle.append(1000 * (statistics.median(ours) - statistics.median(bare)))
            late.append(1000 * (p95(ours) - p95(bare)))
    what = f"a request, more than a run, {clients} client{'s' * (clients > 1)}"
    return [
        Row("S28", f"{what}, p50", statistics.median(middle), "ms", 2.0, None, min(middle), max(middle)),
        Row("S28", f"{what}, p95", statistics.median(late), "ms", 6.0, None, min(late), max(late)),
    ]


def processor_time(server: Process, alone: Process, clients: int, quick: bool) -> list[Row]:
    """Of a request, and of a run without a server."""
    requests, more, least = 200 if quick else 1500, list[float](), list[float]()
    for number in range(2 if quick else 5):
        _, spent = asked(server, requests, clients, question(0))
        _, bare = without_server(alone, requests=requests, clients=clients, pause=0, pieces=0)
        if number:
            more.append(1000 * (spent - bare) / requests)
            least.append(1000 * bare / requests)
    who = f"{clients} client{'s' * (clients > 1)}"
    what = f"processor time of a request, more than a run, {who}"
    return [Row("S28", what, statistics.median(more), "ms", None, statistics.median(least), min(more), max(more))]


def piece(server: Process, alone: Process, quick: bool) -> list[Row]:
    """What a piece of a stream costs the server more than telling it to a listener."""
    pieces, streams, found = 2000, 3 if quick else 20, list[float]()
    for number in range(2 if quick else 6):
        _, spent = asked(server, streams, 1, question(0, pieces), stream=True)
        _, begun = asked(server, streams, 1, question(0, 1), stream=True)
        _, bare = without_server(alone, requests=streams, clients=1, pause=0, pieces=pieces)
        _, least = without_server(alone, requests=streams, clients=1, pause=0, pieces=1)
        if number:
            found.append(1e6 * ((spent - begun) - (bare - least)) / streams / (pieces - 1))
    return [Row("S28", "a streamed piece", statistics.median(found), "us", 30.0, None, min(found), max(found))]


def streams(server: Process, quick: bool) -> list[Row]:
    """Many streams at once."""
    number, seconds = 500, 3 if quick else 10

    async def all_of_them() -> tuple[list[float], float, float]:
        late, most, before = list[float](), 0.0, server.memory

        async def one() -> None:
            async with Client(server.port) as client:
                async for data in client.pieces(question(100, 10 * seconds), True):
                    now = time.monotonic_ns()
                    late.extend((now - int(stamp)) / 1e6 for stamp in _STAMP.findall(data))

        reading = [asyncio.create_task(one()) for _ in range(number)]
        while not all(task.done() for task in reading):
            await asyncio.sleep(0.5)
            most = max(most, server.memory)
        await asyncio.gather(*reading)
        if len(late) != number * 10 * seconds:
            raise SystemExit(f"{len(late)} of {number * 10 * seconds} pieces came")
        return late, (most - before) / number, server.cpu

    before, began = server.cpu, time.monotonic()
    late, each, after = asyncio.run(all_of_them())
    share = (after - before) / (time.monotonic() - began)
    what = f"{number} streams, ten pieces a second"
    return [
        Row("S28", f"{what}: a piece comes later by, p50", statistics.median(late), "ms"),
        Row("S28", f"{what}: by, p99", statistics.quantiles(late, n=100)[-1], "ms", 100.0),
        Row("S28", f"{what}: memory of each", each, "kB", 60.0),
        Row("S28", f"{what}: cores of the server", share, ""),
    ]


def memory(folder: Path, quick: bool) -> list[Row]:
    """What stays after many requests."""
    requests = 1000 if quick else 20_000
    with served("server", folder) as server:
        asked(server, requests // 10, 20, question(0))
        before = server.memory
        asked(server, requests - requests // 10, 20, question(0))
        grown = 100 * (server.memory / before - 1)
    note = f"of {before / 1024:.0f} MB"
    return [Row("S28", f"memory after {requests} requests, more than after a tenth", grown, "%", 5.0, note=note)]


# -- others --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def litellm(folder: Path) -> Iterator[Process]:
    """LiteLLM's proxy with an answer of its own.

    Raises:
        Absent: its environment was not prepared.
    """
    from servers import LITELLM

    program = LITELLM.python().with_name("litellm")
    params = {"model": "openai/none", "api_key": "none", "mock_response": "A kilo costs $4."}
    settings = folder / "litellm.yaml"
    settings.write_text(json.dumps({"model_list": [{"model_name": PRESET, "litellm_params": params}]}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "--config", settings, "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    given = {**os.environ, "LITELLM_MASTER_KEY": _LITELLM_KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with (folder / "litellm.log").open("w") as log:
        process = subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        until = time.monotonic() + 120
        while time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                asyncio.run(many(port, 1, 1, "What?", key=_LITELLM_KEY))
                break
            time.sleep(0.5)
        yield Process(process, port)
    finally:
        process.terminate()
        process.wait(60)


def others(folder: Path, quick: bool) -> list[Row]:
    """The same requests to servers that run nothing."""
    from servers import Absent

    found, requests = list[Row](), 100 if quick else 500
    for name, begin in (("FastAPI, an echo", lambda: served("echo", folder)), ("LiteLLM", lambda: litellm(folder))):
        for clients in (1, 20):
            what = f"{name}: processor time of a request, {clients} client{'s' * (clients > 1)}"
            try:
                with begin() as server:
                    key = _LITELLM_KEY
                    asked(server, requests // 5, clients, question(0), key=key)
                    took, spent = asked(server, requests, clients, question(0), key=key)
            except Absent as absent:
                found.append(Row("S28", what, None, "ms", note=str(absent)))
                continue
            note = f"{1000 * statistics.median(took):.1f} ms by the clock at p50, {1000 * p95(took):.1f} at p95"
            found.append(Row("S28", what, 1000 * spent / requests, "ms", note=note))
    return found


def rows(quick: bool) -> list[Row]:
    """All figures."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with served("server", folder / "served") as server, served("here", folder / "here") as alone:
            for clients in (1, 20):
                found += processor_time(server, alone, clients, quick)
                found += more_per_request(server, alone, clients, quick)
            found += piece(server, alone, quick)
        with served("server", folder / "streams") as server:
            asked(server, 20, 20, question(0, 20), stream=True)
            found += streams(server, quick)
        found += memory(folder / "memory", quick)
        found += others(folder, quick)
    return found


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
