"""The processes that `benchmarks/serving.py` measures, each with the same scripted pool.

    python benchmarks/served.py server FOLDER      a server of the pool; prints its address, ends with its input
    python benchmarks/served.py echo FOLDER        FastAPI that gives back what it was asked; the same
    python benchmarks/served.py here FOLDER        the same orchestrator without a server: a line of JSON in, one out

A question says how the model answers: `pause-pieces`, milliseconds before each reply or piece, and pieces of the
answer, 0 for one that is not streamed. Each run calls a tool once. A piece of the answer is the moment, on the clock
that all processes share, just before the model gave it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import concertino as ct

STRATEGY = ct.ParallelRounds()
CALL = STRATEGY.write_turn([ct.Call("price", {"fruit": "kiwi"}, "a")], "look")
USAGE = ct.Usage(input_tokens=100, output_tokens=10)
ANSWER = "A kilo costs $4. "
PRESET = "helper"


class Model(ct.Model):
    """Calls the tool, then answers."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The whole reply, after its pause."""
        pause, _ = _asked(request)
        await asyncio.sleep(pause)
        text = CALL if not _called(request) else "".join(STRATEGY.write_answer(ANSWER.strip()))
        return ct.Reply(text, usage=USAGE)

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        """The answer piece by piece."""
        pause, pieces = _asked(request)
        if not _called(request):
            yield CALL
            yield ct.Reply(CALL, usage=USAGE)
            return
        # All pieces of all answers would otherwise come at the same moment.
        await asyncio.sleep(pause * (time.monotonic_ns() % 1000) / 1000)
        begin, end = "".join(STRATEGY.write_answer("|")).split("|")
        said = [begin]
        yield begin
        due = time.monotonic()
        for _ in range(pieces):
            due += pause
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            said.append(f"{time.monotonic_ns()} ")
            yield said[-1]
        said[-1:] = [said[-1], end]
        yield end
        yield ct.Reply("".join(said), usage=USAGE)


def _asked(request: ct.ChatRequest) -> tuple[float, int]:
    for message in request.messages:
        if found := re.search(r"(\d+)-(\d+)\?", message.text):
            return int(found[1]) / 1000, int(found[2])
    raise SystemExit("the question says nothing of a pause")


def _called(request: ct.ChatRequest) -> bool:
    return "tool_response" in request.messages[-1].text


def pool() -> ct.Pool:
    """The model and its tool."""

    @ct.tool(cost=ct.Cost(usd=0.01))
    async def price(fruit: str) -> str:
        """What a kilo costs."""
        return "$4"

    spec = ct.ModelSpec("m/lead", Model, prices=ct.Prices(1.0, 10.0))
    return ct.Pool.of(price, spec).bind(orchestrator="m/lead")


def question(pause: int, pieces: int = 0) -> str:
    """What makes the model answer so."""
    return f"What does a kilo cost, {pause}-{pieces}?"


# -- without a server ----------------------------------------------------------------------------------------------


async def here(folder: Path) -> None:
    """Runs as they are asked for on the standard input: `{"requests", "clients", "pause", "pieces"}` in a line."""
    made, runs = pool(), ct.Runs(folder)
    leader = ct.Orchestrator("orchestrator", STRATEGY, executor=ct.Executor())
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        before = time.process_time()
        took = await _asked_for(partial(runs.start, leader, pool=made), json.loads(line))
        print(json.dumps({"took": took, "cpu": time.process_time() - before}), flush=True)


async def _asked_for(start: Callable[..., ct.RunHandle], asked: Mapping[str, int]) -> list[float]:
    """Seconds of each run."""
    left, took = iter(range(asked["requests"])), list[float]()

    async def client() -> None:
        for _ in left:
            began, heard = time.perf_counter(), list[object]()
            said = question(asked["pause"], asked["pieces"])
            run = await start(said, stream_text=bool(asked["pieces"]), on_event=partial(_hear, heard))
            took.append(time.perf_counter() - began)
            if not run.ok or len(heard) < asked["pieces"]:
                raise SystemExit(f"the run went wrong: {run.stop} {run.detail}, {len(heard)} pieces of {asked}")

    await asyncio.gather(*(client() for _ in range(asked["clients"])))
    return took


def _hear(heard: list[object], event: object) -> None:
    if isinstance(event, ct.events.TextDelta) and event.kind == "answer":
        heard.append(event)


# -- servers -------------------------------------------------------------------------------------------------------


def concertino_app(folder: Path) -> Any:
    """A server of the pool, with room for all that is measured."""
    from concertino_serve.serve_settings import Limits, Preset, ServeSettings
    from concertino_serve.web_app import application_of

    presets = {PRESET: Preset(PRESET, pool(), strategy=STRATEGY)}
    return application_of(ServeSettings(presets, traces=folder, limits=Limits(runs=1000))).gate


def echo_app() -> Any:
    """What FastAPI costs that does nothing: the request is validated, an answer of the same size is given back."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Message(BaseModel):
        role: str
        content: str

    class Body(BaseModel):
        model: str
        messages: list[Message]
        stream: bool = False

    app = FastAPI()

    async def echo(body: Body) -> dict[str, Any]:
        message = {"role": "assistant", "content": body.messages[-1].content, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"id": "1", "object": "chat.completion", "created": 1, "model": body.model, "choices": [choice]}
        return {**head, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}

    # A body whose classes are local cannot be named in an annotation that is a text.
    echo.__annotations__["body"] = Body
    app.post("/v1/chat/completions")(echo)
    return app


async def serve(app: Any) -> None:
    """Serve as the command does, until the program that started this process closes its input."""
    from concertino_serve.http_server import listen, server_of

    server = server_of(app, 5.0)
    with listen("127.0.0.1", 0) as listening:
        server.capture_signals = contextlib.nullcontext
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:  # noqa: ASYNC110 - uvicorn tells nobody
            await asyncio.sleep(0.01)
        print(listening.getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        server.should_exit = True
        await serving


def main() -> None:
    """What the command line names."""
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "here":
        asyncio.run(here(folder))
    else:
        asyncio.run(serve(concertino_app(folder) if what == "server" else echo_app()))


if __name__ == "__main__":
    main()
