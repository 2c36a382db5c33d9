"""Streams of a server that means harm: what they cost, and how long the event loop stands still.

    python benchmarks/hostile_streams.py [--json] [--quick]

A server in a process of its own answers with so many pieces of one shape, as fast as the socket takes them. While a
model of concertino-openai reads them, a heartbeat sleeps 1 ms at a time. *Lag* is the most CPU time of the process
between two beats, so that the work of others does not count; its floor is the same by the clock, with their work. CPU
is that of the reading process; it should grow with the pieces, not with their square.

The shapes: fragments of one call; a call each, by index and by id; the name with each fragment; blank text, which may
come before a call; all fragments in one event, or in one whole answer.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import concertino as ct
from concertino_openai.client import OpenAIModel
from measure import Row, script

SIZES = (5_000, 40_000, 640_000)
LAG_MS = 50.0
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
TOOL = {"name": "add", "description": "", "parameters": {"type": "object", "properties": {}}}


def _fragment(**fields: object) -> str:
    return json.dumps(fields)


def _event(delta: str) -> bytes:
    return f'data: {{"choices":[{{"index":0,"delta":{delta}}}]}}\n\n'.encode()


def _each(fragment: Callable[[int], str]) -> Callable[[int], Iterator[bytes]]:
    """An event for each fragment."""
    return lambda count: (_event(f'{{"tool_calls":[{fragment(number)}]}}') for number in range(count))


def _in_one_event(count: int) -> Iterator[bytes]:
    yield _event('{"tool_calls":[' + ",".join([ONE] * count) + "]}")


def _in_one_answer(count: int) -> Iterator[bytes]:
    calls = ",".join([ONE] * count)
    yield f'{{"choices":[{{"index":0,"message":{{"tool_calls":[{calls}]}}}}]}}'.encode()


ONE = _fragment(index=0, function={"arguments": " "})
SHAPES: dict[str, Callable[[int], Iterator[bytes]]] = {
    "fragments of one call": _each(lambda _: ONE),
    "calls by index": _each(lambda n: _fragment(index=n, function={"name": "f", "arguments": "{}"})),
    "calls by id": _each(lambda n: _fragment(id=str(n), function={"name": "f", "arguments": "{}"})),
    "the name with each fragment": _each(lambda _: _fragment(function={"name": "f", "arguments": "[1,"})),
    "blank text": lambda count: (_event('{"content":" "}') for _ in range(count)),
    "fragments in one event": _in_one_event,
    "fragments in one answer": _in_one_answer,
}


# -- the server ----------------------------------------------------------------------------------------------------


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The path says the shape's number and how many pieces."""
    line = (await reader.readline()).split()[1].split(b"/")
    shape, count = list(SHAPES.items())[int(line[1])], int(line[2])
    writer.write(WHOLE if shape[0].endswith("answer") else EVENTS)
    try:
        for number, piece in enumerate(shape[1](count)):
            if writer.is_closing():
                return  # the reader has had enough
            writer.write(piece)
            if number % 200 == 0:
                await writer.drain()
        if not shape[0].endswith("answer"):
            writer.write(b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
        await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def serve() -> None:
    """Serve on a free port, and say which."""
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# -- the reader ----------------------------------------------------------------------------------------------------


async def _most_lag(until: asyncio.Event) -> tuple[float, float]:
    """Seconds between two beats at most: CPU time of the process, and by the clock."""
    cpu = clock = 0.0
    while not until.is_set():
        began, worked = time.perf_counter(), time.process_time()
        await asyncio.sleep(0.001)
        cpu = max(cpu, time.process_time() - worked)
        clock = max(clock, time.perf_counter() - began - 0.001)
    return cpu, clock


async def read(port: int, shape: int, count: int) -> tuple[float, tuple[float, float], str]:
    """CPU-seconds, the most lag, and what became of it."""
    model = OpenAIModel(server="vllm", model="m", base_url=f"http://127.0.0.1:{port}/{shape}/{count}/v1")
    done = asyncio.Event()
    beat = asyncio.create_task(_most_lag(done))
    began = time.process_time()
    try:
        reply = await model.chat(ct.ChatRequest([ct.Message("user", "hi")], tools=[TOOL]))
        told = f"{len(reply.tool_calls):,} calls, {len(reply.text):,} characters"
    except ct.ProviderError as error:
        told = str(error).partition("/v1 ")[2][:60]
    spent = time.process_time() - began
    done.set()
    lag = await beat
    await model.close()
    return spent, lag, told


async def _measured(port: int, sizes: tuple[int, ...]) -> list[Row]:
    rows = []
    await read(port, 0, 10)  # imports and the first connection
    for number, shape in enumerate(SHAPES):
        for size in sizes:
            spent, lag, told = await read(port, number, size)
            rows.append(Row("S18", f"{size:,} {shape}: CPU ({told})", spent * 1000, "ms"))
            rows.append(Row("S18", f"{size:,} {shape}: lag", lag[0] * 1000, "ms", LAG_MS, lag[1] * 1000))
    return rows


def rows(quick: bool) -> list[Row]:
    """All figures."""
    command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            return asyncio.run(_measured(int(server.stdout.readline()), SIZES[:2] if quick else SIZES))
        finally:
            server.terminate()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve())
    else:
        sys.exit(script(rows, __doc__))
