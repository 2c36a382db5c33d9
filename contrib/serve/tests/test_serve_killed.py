"""A server that is killed, or stopped, under its clients: what they had read stays true, and nothing is paid twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from concertino import Trace, TraceError
from concertino.traces.sealing import new_key
from waiting import wait_until

from .killed_server import WORDS

SCRIPT = Path(__file__).with_name("killed_server.py")
KILLS = int(os.environ.get("CONCERTINO_SERVE_KILLS", "50"))


class Killed:
    """A server in a process of its own, always on the same port.

    Args:
        worker: its name, if it shares a ledger.
    """

    def __init__(self, folder: Path, worker: str = "") -> None:
        self.folder = folder
        self.worker = [worker] * bool(worker)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        await asyncio.to_thread(self._begin)
        await wait_until(self._answers)

    def _begin(self) -> None:
        self.process = subprocess.Popen([sys.executable, SCRIPT, str(self.folder), str(self.port), *self.worker])

    def _answers(self) -> bool:
        assert self.process.poll() is None, "the server has ended"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5):
            return True
        return False

    def stop(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(30)

    def calls(self) -> list[str]:
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def paid(self) -> set[str]:
        """The clients whose call has its result on record; what has none yet may be made again."""
        found = set[str]()
        for path in (self.folder / "traces").glob("*.trace.jsonl"):
            with contextlib.suppress(TraceError):  # killed before its first record
                trace = Trace.load(path)
                if list(trace.of_kind("result")):
                    found.add(trace.question.removeprefix("I am ").partition(".")[0])
        return found

    async def read(self, who: str, most: int | None = None) -> bytes:
        """What a client reads of its stream until it ends, breaks, or has that many frames."""
        body = {"model": "helper", "stream": True, "messages": [{"role": "user", "content": f"I am {who}."}]}
        read = b""
        with contextlib.suppress(httpx2.TransportError):
            async with (
                httpx2.AsyncClient(verify=False, timeout=30) as client,
                client.stream(
                    "POST", f"{self.url}/v1/chat/completions", json=body, headers={"idempotency-key": who}
                ) as answer,
            ):
                async for piece in answer.aiter_raw():
                    read += piece
                    if most is not None and read.count(b"\n\n") >= most:
                        break
        return read[: read.rfind(b"\n\n") + 2] if b"\n\n" in read else b""


def text_of(stream: bytes) -> str:
    chunks: list[Any] = [json.loads(frame[6:]) for frame in stream.split(b"\n\n") if frame[6:7] == b"{"]
    return "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])


class Readers:
    """Clients that come back with the same key until each has its whole stream, however often a server is killed.

    Args:
        read: asks for one client, and gives what came before the connection ended.
    """

    def __init__(self, clients: int, read: Callable[[str], Awaitable[bytes]]) -> None:
        self.names = [f"client-{number}" for number in range(clients)]
        self.seen: dict[str, bytes] = {}
        self._read = read
        self._paid: list[tuple[int, set[str]]] = []

    @contextlib.asynccontextmanager
    async def coming_back(self) -> AsyncIterator[asyncio.Future[Any]]:
        """While the block lasts they ask; the future is done when each has its stream."""
        tasks = [asyncio.create_task(self._ask(who)) for who in self.names]
        try:
            yield asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _ask(self, who: str) -> None:
        while not self.seen.get(who, b"").endswith(b"[DONE]\n\n"):
            read, before = await self._read(who), self.seen.get(who, b"")
            assert read.startswith(before) or before.startswith(read), (before, read)
            self.seen[who] = max(before, read, key=len)
            await asyncio.sleep(0.05)

    def note(self, server: Killed) -> None:
        """A kill: what was called and paid until now."""
        self._paid.append((len(server.calls()), server.paid()))

    def check(self, server: Killed) -> None:
        """Each has the text that is right for it, and nothing was paid twice."""
        assert [text_of(self.seen[who]) for who in self.names] == [f"{who}: {WORDS}" for who in self.names]
        for until_then, known in self._paid:
            lines = server.calls()[until_then:]
            begun = {line.removesuffix(" begins") for line in lines if line.endswith("begins")}
            assert not begun & known, "a call whose result was on record was made again"


async def killed_under(folder: Path, clients: int, points: list[float], number: int = signal.SIGKILL) -> None:
    """Kill a server again and again under its clients."""
    server = Killed(folder)
    await server.start()
    readers = Readers(clients, server.read)
    try:
        async with readers.coming_back() as all_have_theirs:
            for seconds in points:
                await asyncio.sleep(seconds)
                server.stop(number)
                readers.note(server)
                await server.start()
            await all_have_theirs
        again = [await server.read(who) for who in readers.names]
    finally:
        server.stop(signal.SIGTERM)
    assert again == [readers.seen[who] for who in readers.names]
    readers.check(server)


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [False, True])
async def test_a_stream_goes_on_where_a_kill_broke_it(
    sealed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sealed:
        pytest.importorskip("cryptography", reason="sealing needs the package cryptography")
        monkeypatch.setenv("CONCERTINO_TRACE_KEY", new_key())
    server = Killed(tmp_path)
    await server.start()
    broken = await server.read("client-1", most=6)
    assert text_of(broken)
    server.stop(signal.SIGKILL)
    await server.start()
    try:
        whole = await server.read("client-1")
        again = await server.read("client-1")
    finally:
        server.stop(signal.SIGTERM)
    assert whole.startswith(broken)
    assert again == whole
    assert text_of(whole) == f"client-1: {WORDS}"
    assert server.calls() == ["client-1 begins", "client-1 ends"]


async def ask_back(server: Killed, who: str) -> str:
    """The answer of a run that calls its client's tool; the client comes back until it has it."""
    talk: list[Any] = [{"role": "user", "content": f"I am {who}. Call me back."}]
    function = {"name": "local", "parameters": {"type": "object", "properties": {"who": {"type": "string"}}}}
    headers = {"idempotency-key": who}
    while True:
        body = {"model": "helper", "messages": talk, "tools": [{"type": "function", "function": function}]}
        try:
            async with httpx2.AsyncClient(verify=False, timeout=30) as client:
                answer = await client.post(f"{server.url}/v1/chat/completions", json=body, headers=headers)
        except httpx2.TransportError:
            await asyncio.sleep(0.05)
            continue
        if answer.status_code != 200:
            assert answer.status_code in (409, 503), answer.content
            await asyncio.sleep(0.05)
            continue
        message = answer.json()["choices"][0]["message"]
        if "tool_calls" not in message:
            return str(message["content"])
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["local"]
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "here"} for call in message["tool_calls"]]
        talk, headers = [*talk, message, *results], {}


async def killed_between(folder: Path, clients: int, points: list[float]) -> None:
    """Kill it while runs wait for their clients, and while they go on."""
    server = Killed(folder)
    await server.start()
    names = [f"client-{number}" for number in range(clients)]
    tasks = [asyncio.create_task(ask_back(server, who)) for who in names]
    paid: list[tuple[int, set[str]]] = []
    try:
        for seconds in points:
            await asyncio.sleep(seconds)
            server.stop(signal.SIGKILL)
            paid.append((len(server.calls()), server.paid()))
            await server.start()
        found = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        server.stop(signal.SIGTERM)
    assert found == [f"{who}: {WORDS}" for who in names]
    assert len(list((folder / "traces").glob("*.trace.jsonl"))) == clients
    for until, known in paid:
        begun = {line.removesuffix(" begins") for line in server.calls()[until:] if line.endswith("begins")}
        assert not begun & known, "a call whose result was on record was made again"


@pytest.mark.slow
async def test_a_run_that_waits_for_its_client_outlives_a_kill(tmp_path: Path) -> None:
    await killed_between(tmp_path, 3, [0.3, 0.3])


@pytest.mark.slow
async def test_a_run_that_had_not_begun_when_the_server_was_killed_hides_no_run_that_had(tmp_path: Path) -> None:
    server = Killed(tmp_path)
    await server.start()
    whole = await server.read("client-1")
    server.stop(signal.SIGKILL)
    begun = next((tmp_path / "traces").glob("*.trace.jsonl"))
    for end in ("", ".request"):
        # The newest by its name; of the trace it has the first line alone, which names no run.
        other = begun.with_name(begun.name.replace(begun.name[:15], "99999999-999999") + end)
        data = begun.with_name(begun.name + end).read_bytes()
        other.write_bytes(data if end else data.partition(b"\n")[0] + b"\n")
        other.chmod(0o600)
    await server.start()
    try:
        again = await server.read("client-1")
    finally:
        server.stop(signal.SIGTERM)
    assert again == whole
    assert server.calls() == ["client-1 begins", "client-1 ends"]


@pytest.mark.slow
async def test_a_stop_suspends_the_runs_and_the_next_start_goes_on_with_them(tmp_path: Path) -> None:
    server = Killed(tmp_path)
    await server.start()
    reading = asyncio.create_task(server.read("client-1"))
    await wait_until(server.calls)
    server.stop(signal.SIGTERM)
    await reading
    await server.start()
    try:
        whole = await server.read("client-1")
    finally:
        server.stop(signal.SIGTERM)
    assert text_of(whole) == f"client-1: {WORDS}"
    assert Counter(server.calls())["client-1 ends"] == 1


@pytest.mark.slow
async def test_a_second_server_on_the_folder_takes_no_run_and_ends(tmp_path: Path) -> None:
    first, second = Killed(tmp_path), Killed(tmp_path)
    await first.start()
    try:
        reading = asyncio.create_task(first.read("client-1"))
        await wait_until(first.calls)
        await asyncio.to_thread(second._begin)
        assert await asyncio.to_thread(second.process.wait, 30) != 0
        assert text_of(await reading) == f"client-1: {WORDS}"
    finally:
        first.stop(signal.SIGTERM)
    assert first.calls() == ["client-1 begins", "client-1 ends"]
    assert len(list((tmp_path / "traces").glob("*.trace.jsonl"))) == 1


@pytest.mark.soak
async def test_a_server_that_is_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(0)
    for round_ in range(KILLS // 5):
        folder = tmp_path / str(round_)
        folder.mkdir()
        await killed_under(folder, 20, [chance.uniform(0.02, 0.4) for _ in range(5)])


@pytest.mark.soak
async def test_runs_that_wait_for_their_clients_outlive_kills(tmp_path: Path) -> None:
    chance = random.Random(1)
    for round_ in range(KILLS // 5):
        folder = tmp_path / str(round_)
        folder.mkdir()
        await killed_between(folder, 10, [chance.uniform(0.02, 0.4) for _ in range(5)])
