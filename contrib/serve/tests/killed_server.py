"""A server that a test kills: `killed_server.py FOLDER PORT [WORKER]`. With a name it is a worker that shares a ledger.

Each call of its tool is a line of `FOLDER/calls`.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import concertino as ct
import uvicorn
from concertino_serve.run_ledger import RunLedger
from concertino_serve.serve_settings import Limits, McpOffer, Preset, ServeSettings
from concertino_serve.web_app import application_of
from concertino_serve.worker_group import ledger_file

WORDS = "one two three four five six seven eight nine ten"


class Model(ct.Model):
    """Calls the tool once, and the client's if it is told to; then says who asked and ten words, slowly."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        await asyncio.sleep(0.02)
        return ct.Reply(self._text(request), usage=ct.Usage(input_tokens=100, output_tokens=10))

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        text = self._text(request)
        for place in range(0, len(text), 6):
            await asyncio.sleep(0.01)
            yield text[place : place + 6]
        yield ct.Reply(text, usage=ct.Usage(input_tokens=100, output_tokens=10))

    def _text(self, request: ct.ChatRequest) -> str:
        found = re.search(r"client-\d+", "\n".join(message.text for message in request.messages))
        assert found is not None
        if "tool_response" in request.messages[-1].text:
            return "".join(ct.ParallelRounds().write_answer(f"{found[0]}: {WORDS}"))
        calls = [ct.Call("work", {"who": found[0]}, "a")]
        if "Call me back." in request.messages[-1].text:
            calls.append(ct.Call("local", {"who": found[0]}, "b"))
        return ct.ParallelRounds().write_turn(calls, "look")


def main(folder: Path, port: int, worker: str = "") -> None:
    @ct.tool(cost=ct.Cost(usd=0.01), retry_safe=True)
    async def work(who: str) -> str:
        """Work."""
        with (folder / "calls").open("a") as file:
            file.write(f"{who} begins\n")
        await asyncio.sleep(0.05)
        with (folder / "calls").open("a") as file:
            file.write(f"{who} ends\n")
        return "done"

    pool = ct.Pool.of(work, ct.ModelSpec("m/lead", Model)).bind(orchestrator="m/lead")
    presets = {"helper": Preset("helper", pool, strategy=ct.ParallelRounds())}
    offer = McpOffer(task_seconds=0.0)
    settings = ServeSettings(presets, traces=folder / "traces", limits=Limits(drain_seconds=1), mcp=offer)
    ledger = RunLedger(ledger_file(folder / "traces"), worker) if worker else None
    config = uvicorn.Config(
        application_of(settings, ledger=ledger).gate, port=port, log_config=None, timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
