"""A server in the event loop of a test, and the settings of small pools."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import concertino as ct
import openai
from concertino.strategies import Strategy
from concertino_serve.http_server import listen, server_of
from concertino_serve.run_ledger import RunLedger
from concertino_serve.serve_settings import Preset, ServeSettings
from concertino_serve.web_app import Application, application_of


class Scripted(ct.Model):
    """Says what a function of the messages gives; as a stream in pieces of some characters.

    Attributes:
        asked: how often it was asked.
        pause: seconds before each piece.
    """

    def __init__(self, say: Callable[[list[ct.Message]], str], piece: int = 7, pause: float = 0.0) -> None:
        self.say, self.piece, self.pause, self.asked = say, piece, pause, 0

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self.asked += 1
        await asyncio.sleep(self.pause)
        return self._reply(self.say(list(request.messages)))

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        self.asked += 1
        text = self.say(list(request.messages))
        for place in range(0, len(text), self.piece):
            await asyncio.sleep(self.pause)
            yield text[place : place + self.piece]
        yield self._reply(text)

    def _reply(self, text: str) -> ct.Reply:
        return ct.Reply(text, usage=ct.Usage(input_tokens=100, output_tokens=10, cached_tokens=20))


def calls_then(answer: str, strategy: Any = None) -> Callable[[list[ct.Message]], str]:
    """Calls `price` once, then answers."""
    strategy = strategy or ct.ParallelRounds()

    def say(messages: list[ct.Message]) -> str:
        if "tool_response" in messages[-1].text:
            return "".join(strategy.write_answer(answer))
        return str(strategy.write_turn([ct.Call("price", {"fruit": "kiwi"}, "a")], "look"))

    return say


@dataclass
class Counter:
    """How often the tool was called."""

    calls: int = 0


def pool_of(model: ct.Model, counter: Counter | None = None, pause: float = 0.0) -> ct.Pool:
    count = counter or Counter()

    @ct.tool(cost=ct.Cost(usd=0.01))
    async def price(fruit: str) -> str:
        """What a kilo costs."""
        count.calls += 1
        await asyncio.sleep(pause)
        if fruit == "plum":
            raise ValueError("nobody sells plums")
        return "$4"

    spec = ct.ModelSpec("m/lead", lambda: model, prices=ct.Prices(1.0, 10.0))
    return ct.Pool.of(price, spec).bind(orchestrator="m/lead")


def settings_of(
    folder: Path, model: ct.Model, *, counter: Counter | None = None, pause: float = 0.0, **changes: Any
) -> ServeSettings:
    preset = {"strategy": ct.ParallelRounds(), **changes.pop("preset", {})}
    made = Preset("helper", pool_of(model, counter, pause), **preset)
    return replace(ServeSettings({"helper": made}, traces=folder), **changes)


@dataclass
class Here:
    """A server that runs."""

    url: str
    app: Application

    def client(self, key: str = "none", **options: Any) -> openai.AsyncOpenAI:
        # Without certificates: reading them takes longer than most of these tests.
        web = openai.DefaultAsyncHttpxClient(verify=False, timeout=options.pop("timeout", 60))
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, http_client=web, **options)


@contextlib.asynccontextmanager
async def served(settings: ServeSettings, drain: float = 5.0, ledger: RunLedger | None = None) -> AsyncIterator[Here]:
    """The server of some settings, or a worker with a ledger, on a free port of this machine."""
    app = application_of(settings, ledger=ledger)
    listening = listen("127.0.0.1", 0)
    server = server_of(app.gate, drain)
    server.capture_signals = contextlib.nullcontext
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.005)
        assert not task.done(), task.result()
    try:
        yield Here(f"http://127.0.0.1:{listening.getsockname()[1]}", app)
    finally:
        server.should_exit = True
        await task
        listening.close()


__all__ = ["Counter", "Here", "Scripted", "Strategy", "calls_then", "pool_of", "served", "settings_of"]
