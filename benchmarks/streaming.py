"""S17: text as it is written: how far a listener is behind the provider, and what it costs.

    python benchmarks/streaming.py [--json] [--quick]

A server in a process of its own answers chat completions over HTTP on this machine. Each piece of text is the moment,
on the clock that all processes share, just before it was written to the socket; so a piece says itself how late it is.

- *Behind*: pieces leave 5 ms apart. The listener is the caller of `Orchestrator.stream`; the floor is aiohttp alone,
  with each piece parsed as JSON. They take turns.
- *Cost*: pairs of runs, with and without a listener, over the same stream; their difference in processor time, per
  piece of text. Each piece is told twice, as text and as a part of the answer. Pieces leave 1 ms apart, so that they
  are not read in heaps. In the same process means: without HTTP, from a model that yields the pieces.
- *Nobody listens*: calls of any function that tells of text, in a run without a listener.
- *Cut*: streams that real servers sent, and replies in the form of every strategy, cut at random bytes; wrong is a run
  in which what was told is not the reply, or the run's answer (`providers/openai/tests/cut_trials.py`).
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp
import concertino as ct
import concertino_openai
from concertino.executor import text_teller
from concertino.strategies.base import answer_reader
from concertino.testing import ScriptedModel
from concertino_openai.client import OpenAIModel
from measure import Row, script
from scripted import turn

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the trials

from providers.openai.tests import cut_trials  # noqa: E402

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PIECES = 20


# -- the server ----------------------------------------------------------------------------------------------------


class Stamping(asyncio.Protocol):
    """Answers whatever is posted; the name of the model says how many pieces, and how many µs lie between them."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if found and len(body) >= length:
            self.received = b""
            pause, pieces = json.loads(body)["model"].split("-")
            self.transport.write(HEAD)
            self.sending = asyncio.ensure_future(self.send(int(pause) / 1e6, int(pieces)))

    async def send(self, pause: float, pieces: int) -> None:
        """The pieces, one after each pause."""
        for number in range(pieces):
            await asyncio.sleep(pause)
            self._write({"content": f"{'<answer>' if number == 0 else ' '}{time.monotonic_ns()}"})
        self._write({"content": "</answer>"})
        self._write({}, "stop")
        self.transport.write(_frame(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    def _write(self, delta: dict[str, str], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        self.transport.write(_frame(b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"))


def _frame(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def serve() -> None:
    """Serve until whoever started this process closes its input."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Stamping, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


# -- how far behind ------------------------------------------------------------------------------------------------


_STAMP = re.compile(r"\d{9,}")
Lags = dict[str, list[float]]
"""Milliseconds behind the server's write, of each piece, by what was told."""


def _behind(text: str) -> list[float]:
    """Of every piece in a text, which may have come in heaps."""
    now = time.monotonic_ns()
    return [(now - int(stamp)) / 1e6 for stamp in _STAMP.findall(text)]


async def raw(url: str, session: aiohttp.ClientSession) -> Lags:
    """The floor: bytes as they come, each event parsed."""
    body = json.dumps({"model": f"5000-{PIECES}", "messages": [], "stream": True}).encode()
    seen: list[float] = []
    async with session.post(f"{url}/chat/completions", data=body) as response:
        async for data in response.content.iter_any():
            for line in data.split(b"\n"):
                if line.startswith(b"data: {"):
                    seen += _behind(json.loads(line[6:])["choices"][0]["delta"].get("content", ""))
    return {"first text": seen[:1], "each text": seen}


async def told(leader: ct.Orchestrator, pool: ct.Pool) -> Lags:
    """What the caller of `stream` hears."""
    seen: Lags = {"text": [], "answer": [], "reasoning": []}
    async for event in leader.stream("What?", pool=pool):
        if isinstance(event, ct.events.TextDelta):
            seen[event.kind] += _behind(event.text)
    if len(seen["text"]) != PIECES:
        raise SystemExit(f"{len(seen['text'])} of {PIECES} pieces were told")
    return {"first text": seen["text"][:1], "each text": seen["text"], "first of the answer": seen["answer"][:1]}


@ct.agent(models=("default",))
async def think(*, ctx: ct.Context) -> str:
    """Think."""
    return (await ctx.model("default").chat("What?")).text


def leaders(url: str) -> dict[str, Callable[[], Awaitable[Lags]]]:
    """The orchestrator's own model, one behind a router, and one that an agent asks."""
    options: dict[str, Any] = {"server": "vllm", "base_url": url, "verify_model": False}
    model = concertino_openai.model("timed", model=f"5000-{PIECES}", **options)
    other = concertino_openai.model("other", model=f"5000-{PIECES}", **options)
    pool = ct.Pool.of(think, model, other, ct.router("routed", model.name, other.name)).bind(default=model.name)
    turns = [turn(("think", {})), turn(("final_answer", {})), "<answer>done</answer>"]
    return {
        "": lambda: told(ct.Orchestrator(model.name), pool),
        ", behind a router": lambda: told(ct.Orchestrator("routed"), pool),
        ", of an agent's model": lambda: told(ct.Orchestrator(ScriptedModel(*turns)), pool),
    }


async def late(port: int, quick: bool) -> list[Row]:
    """Milliseconds behind; the floor and all listeners take turns."""
    url = f"http://127.0.0.1:{port}/v1"
    found: dict[str, dict[str, list[float]]] = {}
    async with aiohttp.ClientSession() as session:
        systems = {"floor": lambda: raw(url, session), **leaders(url)}
        for number in range(10 if quick else 101):
            for name, ask in systems.items():
                lags = await ask()
                for what, values in lags.items() if number else ():  # the first one opens connections
                    found.setdefault(name, {}).setdefault(what, []).extend(values)
    floor = found.pop("floor")
    made = []
    for name, lags in found.items():
        for what, bar in (("first text", 5.0), ("each text", None)):
            middle, below = statistics.median(lags[what]), statistics.median(floor[what])
            made.append(Row("S17", f"{what}{name}: behind the provider, median", middle, "ms", bar, below))
            tail, below = (statistics.quantiles(each[what], n=20)[-1] for each in (lags, floor))
            made.append(Row("S17", f"{what}{name}: 95 of 100 within", tail, "ms", bar, below))
    first = statistics.median(found[""]["first of the answer"])
    return [*made, Row("S17", "first text of the answer: behind the provider, median", first, "ms", 5.0)]


# -- what it costs -------------------------------------------------------------------------------------------------


@ct.tool
async def nothing() -> str:
    """Do nothing."""
    return ""


async def one_run(model: ct.Model, listening: bool) -> tuple[float, int]:
    """Processor time of one run in seconds, and the pieces of text that were told."""
    heard = [0]

    def listen(event: object) -> None:
        if isinstance(event, ct.events.TextDelta) and event.kind == "text":
            heard[0] += 1

    began = time.process_time()
    pool = ct.Pool.of(nothing)
    run = await ct.Orchestrator(model).start("What?", pool=pool, on_event=listen, stream_text=listening)
    spent = time.process_time() - began
    if not run.ok:
        raise SystemExit(f"the run went wrong: {run.stop} {run.detail}")
    return spent, heard[0]


async def pairs(model: ct.Model, count: int, pieces: int) -> list[float]:
    """µs per piece of text that listening adds, one figure for each pair of runs."""
    found: list[float] = []
    await one_run(model, listening=True)
    for number in range(10 * count):
        order = (True, False) if number % 2 else (False, True)
        spent = {listening: await one_run(model, listening) for listening in order}
        # On a busy machine pieces are read in heaps, and a heap is one piece.
        if spent[True][1] > 0.8 * pieces:
            found.append((spent[True][0] - spent[False][0]) / spent[True][1] * 1e6)
        if len(found) == count:
            break
    return found


class Yielding(ct.Model):
    """Yields so many pieces, whether somebody listens or not, as a model behind HTTP does."""

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The reply at the end of the stream."""
        async for part in self.stream(request):
            if isinstance(part, ct.Reply):
                return part
        raise AssertionError("a stream ends with its reply")

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        """The pieces, then the reply."""
        yield "<answer>"
        for _ in range(self.pieces):
            yield "word "
        yield "</answer>"
        yield ct.Reply(f"<answer>{'word ' * self.pieces}</answer>")


async def over_http(port: int, count: int) -> list[float]:
    """The pairs over HTTP."""
    options: dict[str, Any] = {"server": "vllm", "base_url": f"http://127.0.0.1:{port}/v1", "verify_model": False}
    model = OpenAIModel(model="1000-1000", **options)
    try:
        return await pairs(model, count, 1000)
    finally:
        await model.close()


def costs(port: int, quick: bool) -> list[Row]:
    """µs per piece."""
    count = 3 if quick else 15
    made = []
    for name, found in (
        ("over HTTP", asyncio.run(over_http(port, count))),
        ("in the same process", asyncio.run(pairs(Yielding(10_000), count, 10_000))),
    ):
        what = f"a piece of text, told as text and as answer, {name}"
        if found:
            made.append(Row("S17", what, statistics.median(found), "us", 15.0, None, min(found), max(found)))
        else:
            made.append(Row("S17", what, None, "us", 15.0, note="the machine is too busy: pieces came in heaps"))
    return made


def calls_that_tell() -> int:
    """Calls of functions that tell of text, in a run to which nobody listens."""
    files = {module.__file__ for module in (text_teller, answer_reader)}
    found = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal found
        found += event == "call" and frame.f_code.co_filename in files

    model = Yielding(100)
    sys.setprofile(count)
    try:
        asyncio.run(one_run(model, listening=False))
        quiet, found = found, 0
        asyncio.run(one_run(model, listening=True))
    finally:
        sys.setprofile(None)
    if found < 100:
        raise SystemExit("the count is blind: it sees no calls where somebody listens either")
    return quiet


# -- streams that are cut ------------------------------------------------------------------------------------------


async def cuttings(count: int) -> list[Row]:
    """Recorded streams, twice as many as composed ones: in how many something else was told."""
    streams, names = cut_trials.recorded_streams(), list(cut_trials.STRATEGIES)
    recorded = [await cut_trials.recorded_trial(streams[seed % len(streams)], seed) for seed in range(2 * count)]
    composed = [
        await cut_trials.composed_trial(names[seed % len(names)], seed // len(names) % 2 == 0, seed)
        for seed in range(count)
    ]
    for wrong in [*filter(None, recorded), *filter(None, composed)][:5]:
        print(wrong, file=sys.stderr)
    wrong_ones = [float(sum(map(bool, found))) for found in (recorded, composed)]
    return [
        Row("S17", f"{len(recorded):,} cuttings of recorded streams: told other text", wrong_ones[0], "", 0.0),
        Row("S17", f"{len(composed):,} runs of five strategies, cut: told another answer", wrong_ones[1], "", 0.0),
    ]


def rows(quick: bool) -> list[Row]:
    """All figures."""
    here = str(Path(__file__).resolve())
    with subprocess.Popen([sys.executable, here, "--serve"], stdin=-1, stdout=-1, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        try:
            made = [*asyncio.run(late(port, quick)), *costs(port, quick)]
        finally:
            server.terminate()
    quiet = Row("S17", "calls of functions that tell of text, where nobody listens", float(calls_that_tell()), "", 0.0)
    return [*made, quiet, *asyncio.run(cuttings(100 if quick else 5000))]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve())
    else:
        sys.exit(script(rows, __doc__))
