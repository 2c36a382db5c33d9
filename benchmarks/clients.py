"""S9: what a client of a model server costs, in CPU time per request, at 256 requests at once.

    python benchmarks/clients.py [--json] [--quick]

One server process answers every request with the same prepared bytes, plain (a body of about 1 KB) or as a stream of
20 chunks that are sent one by one. Each client runs in a process of its own, one after another, and its own CPU time
is taken, so that neither the server nor waiting counts. The floor is aiohttp that posts the body and reads the bytes,
and makes nothing of them. `openai` is the official package as it comes, its own limit of connections included, with its
retries switched off. Chunks leave 20 ms apart, so that clients read them one by one and not in heaps.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from measure import Row, script

AT_ONCE = 256
CHUNKS = 20
TEXT = "The quick brown fox jumps over the lazy dog. " * 8
MESSAGES = [{"role": "system", "content": "You are brief." * 10}, {"role": "user", "content": TEXT}]
USAGE = {"prompt_tokens": 120, "completion_tokens": CHUNKS, "total_tokens": 120 + CHUNKS}
CLIENTS = dict.fromkeys(("raw", "concertino", "executor", "openai"), 1024)
"""Requests that each client makes, as many for all; a quarter of them first, uncounted. *concertino* is the client
alone; *executor* is the same with the executor around it, as in a run: deadline, budget, retries, record."""

Ask = Callable[[], Awaitable[None]]


# -- the server ----------------------------------------------------------------------------------------------------


def _head(kind: str, more: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{more}\r\n".encode()


def _frame(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _event(delta: dict[str, str], finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }
    return _frame(b"data: " + json.dumps(chunk).encode() + b"\n\n")


def _stream() -> list[bytes]:
    words = [_event({"content": f"word{number} "}) for number in range(CHUNKS - 2)]
    return [_event({"role": "assistant", "content": ""}), *words, _event({}, "stop", usage=USAGE)]


class Answering(asyncio.Protocol):
    """Answers whatever is posted."""

    plain = json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT * 2}, "finish_reason": "stop"}],
            "usage": USAGE,
        }
    ).encode()
    chunks = _stream()
    end = _frame(b"data: [DONE]\n\n") + b"0\r\n\r\n"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if not found or len(body) < length:
            return
        self.received = b""
        if b'"stream":true' in body.replace(b": ", b":"):
            self.transport.write(_head("text/event-stream", "Transfer-Encoding: chunked\r\n"))
            self.send(0)
        else:
            self.transport.write(_head("application/json", f"Content-Length: {len(self.plain)}\r\n") + self.plain)

    def send(self, number: int) -> None:
        """One chunk, and the next one a little later."""
        if number < len(self.chunks):
            self.transport.write(self.chunks[number])
            asyncio.get_running_loop().call_later(0.02, self.send, number + 1)
        else:
            self.transport.write(self.end)


async def serve() -> None:
    """Serve until this process is ended, or whoever started it is."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answering, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


# -- the clients ---------------------------------------------------------------------------------------------------


async def raw(port: int, stream: bool) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    """The floor: aiohttp, and nothing read into the bytes."""
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None))
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    body = json.dumps({"model": "m", "messages": MESSAGES, "stream": stream}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}

    async def ask() -> None:
        async with session.post(url, data=body, headers=headers) as response:
            length = 0
            async for piece in response.content.iter_any():
                length += len(piece)
            assert length > 800, length

    return ask, session.close


async def concertino(port: int, stream: bool) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    """The provider by itself: request written, reply read, usage counted."""
    import concertino as ct
    from concertino_openai.client import OpenAIModel

    model = OpenAIModel(model="m", server="vllm", base_url=f"http://127.0.0.1:{port}/v1", stream=stream)
    request = ct.ChatRequest([ct.Message(m["role"], m["content"]) for m in MESSAGES])  # type: ignore[arg-type]

    async def ask() -> None:
        reply = await model.chat(request)
        assert reply.usage.output_tokens == CHUNKS, reply

    return ask, model.close


async def executor(port: int, stream: bool) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    """The provider under an agent, with all that an executor does: schema, gates, deadline, prices, records."""
    import concertino as ct
    import concertino_openai

    @ct.agent(timeout=None)
    async def answer(*, ctx: ct.Context) -> str:
        """Answer."""
        return (await ctx.model("default").chat(messages)).text

    messages = [ct.Message(m["role"], m["content"]) for m in MESSAGES]  # type: ignore[arg-type]
    options = {"server": "vllm", "base_url": f"http://127.0.0.1:{port}/v1", "stream": stream}
    pool = ct.Pool.of(answer, concertino_openai.model("m", model="m", **options))
    runner = ct.Executor()

    async def ask() -> None:
        (seen,) = await runner.run([ct.Call("answer", {})], pool)
        assert seen.ok, seen

    return ask, runner.aclose


async def openai(port: int, stream: bool) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    """The official package."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)

    async def ask() -> None:
        if not stream:
            reply = await client.chat.completions.create(model="m", messages=MESSAGES)  # type: ignore[call-overload]
            assert reply.usage.completion_tokens == CHUNKS, reply
            return
        options = {"include_usage": True}
        chunks = await client.chat.completions.create(  # type: ignore[call-overload]
            model="m", messages=MESSAGES, stream=True, stream_options=options
        )
        seen = None
        async for chunk in chunks:
            seen = chunk.usage or seen
        assert seen is not None
        assert seen.completion_tokens == CHUNKS

    return ask, client.close


def cpu() -> float:
    """Seconds of CPU time that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def client(name: str, port: int, stream: bool, count: int) -> dict[str, float]:
    """Ask so many times, 256 at once; CPU milliseconds per request, and requests per second."""
    ask, close = await globals()[name](port, stream)

    async def worker(times: int) -> None:
        for _ in range(times):
            await ask()

    share = max(1, count // AT_ONCE)
    await asyncio.gather(*(worker(max(1, share // 4)) for _ in range(AT_ONCE)))
    began, used = time.perf_counter(), cpu()
    await asyncio.gather(*(worker(share) for _ in range(AT_ONCE)))
    done = share * AT_ONCE
    result = {"ms": 1000 * (cpu() - used) / done, "per_second": done / (time.perf_counter() - began)}
    await close()
    return result


# -- the comparison ------------------------------------------------------------------------------------------------


def rows(quick: bool) -> list[Row]:
    """All clients in turn against one server, in both modes; of several rounds the median."""
    here = str(Path(__file__).resolve())
    with subprocess.Popen([sys.executable, here, "--serve"], stdin=-1, stdout=-1, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        try:
            found: dict[tuple[str, str], list[dict[str, float]]] = {}
            for _ in range(1 if quick else 2):
                for mode in ("plain", "stream"):
                    for name, count in CLIENTS.items():
                        command = [
                            sys.executable,
                            here,
                            "--client",
                            name,
                            port,
                            mode,
                            str(count // (8 if quick else 1)),
                        ]
                        done = subprocess.run(command, capture_output=True, text=True, check=False)
                        if done.returncode:
                            raise SystemExit(f"{name} {mode} failed\n{done.stderr[-3000:]}")
                        found.setdefault((name, mode), []).append(json.loads(done.stdout))
        finally:
            server.terminate()
    return report(found)


def report(found: dict[tuple[str, str], list[dict[str, float]]]) -> list[Row]:
    """The rows, with the bars: at most twice raw aiohttp, at least four times cheaper than `openai` in a stream."""
    ms = {key: statistics.median(run["ms"] for run in runs) for key, runs in found.items()}
    made = []
    for mode in ("plain", "stream"):
        floor = ms["raw", mode]
        made += [Row("S9", f"{name}, {mode}: CPU per request", ms[name, mode], "ms", floor=floor) for name in CLIENTS]
        made.append(Row("S9", f"concertino / raw aiohttp, {mode}", ms["concertino", mode] / floor, "x", 2.0))
        made.append(Row("S9", f"concertino with its executor / raw aiohttp, {mode}", ms["executor", mode] / floor, "x"))
        bar = 0.25 if mode == "stream" else None
        made.append(Row("S9", f"concertino / openai, {mode}", ms["concertino", mode] / ms["openai", mode], "x", bar))
    speed = statistics.median(run["per_second"] for run in found["concertino", "stream"])
    made.append(Row("S9", "streamed requests per second, one process (server on the same cores)", speed, "1/s"))
    return made


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve())
    elif sys.argv[1:2] == ["--client"]:
        name, port, mode, count = sys.argv[2:6]
        print(json.dumps(asyncio.run(client(name, int(port), mode == "stream", int(count)))))
    else:
        sys.exit(script(rows, __doc__))
