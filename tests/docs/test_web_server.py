"""The example of how-to/use-in-a-web-server.md, asked through its ASGI interface, before a model server's stand-in."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from stand_in import StandIn
from waiting import wait_until

from .documents import EXAMPLES

CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
END = '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
QUESTION = {"text": "How warm is it in Rome?", "conversation": "of-a-test"}


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The application of the example, loaded anew."""
    monkeypatch.setenv("CONVERSATIONS", str(tmp_path))
    spec = importlib.util.spec_from_file_location("web_server", EXAMPLES / "web" / "server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "web_server", module)
    spec.loader.exec_module(module)
    return module.app


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with StandIn(CALL, END, "<answer>18 degrees, sunny.</answer>", "<answer>As before.</answer>") as standing:
        for name, value in standing.environment.items():
            monkeypatch.setenv(name, value)
        yield standing


class Client:
    """One request to an ASGI application; it leaves when `leave` is set."""

    def __init__(self, app: Any, body: Any) -> None:
        self.app, self.body = app, json.dumps(body).encode()
        self.status = 0
        self.chunks: list[str] = []
        self.leave = asyncio.Event()
        self._asked = False

    async def receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message.get("body"):
            self.chunks.append(message["body"].decode())

    async def ask(self) -> None:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/ask",
            "raw_path": b"/ask",
            "query_string": b"",
            "root_path": "",
            "headers": [(b"content-type", b"application/json")],
            "client": None,
            "server": ("test", 80),
            "state": {},
        }
        await self.app(scope, self.receive, self.send)

    @property
    def events(self) -> list[tuple[str, Any]]:
        blocks = [block.split("\n") for block in "".join(self.chunks).split("\n\n") if block]
        return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in blocks]


@contextlib.asynccontextmanager
async def running(app: Any) -> AsyncIterator[None]:
    async with app.router.lifespan_context(app):
        yield


async def test_an_answer_is_streamed_piece_by_piece_and_a_second_question_continues(app: Any, server: StandIn) -> None:
    async with running(app):
        first, second = Client(app, QUESTION), Client(app, {**QUESTION, "text": "And tomorrow?"})
        await first.ask()
        await second.ask()
    pieces = [data for kind, data in first.events if kind == "text"]
    assert len(pieces) > 1
    assert "".join(pieces) == "18 degrees, sunny."
    assert [data for kind, data in first.events if kind == "call"] == ["weather OK"]
    kind, end = first.events[-1]
    assert (kind, end["answer"], end["stop"]) == ("end", "18 degrees, sunny.", "answered")
    assert end["tokens"] > 300
    assert second.events[-1][1]["answer"] == "As before."
    assert "18 degrees, sunny." in str(server.requests[-1]["messages"])


async def test_a_client_that_leaves_ends_the_run(app: Any, server: StandIn) -> None:
    async with running(app):
        client = Client(app, QUESTION)
        server.hold.clear()  # the first reply is not given
        asked = asyncio.ensure_future(client.ask())
        await wait_until(lambda: server.requests, "the model was asked")
        client.leave.set()
        await asyncio.wait_for(asked, 60)
        server.hold.set()
        again = Client(app, {**QUESTION, "text": "Again?"})  # waits until the session is free: the run is over
        await asyncio.wait_for(again.ask(), 60)
    assert not any(kind == "end" for kind, _ in client.events)
    assert len(server.requests) == 1 + 2, "the run that was left goes on asking"
    assert again.events[-1][0] == "end"


async def test_a_name_that_could_lead_out_of_the_folder_is_refused(app: Any, server: StandIn) -> None:
    async with running(app):
        client = Client(app, {**QUESTION, "conversation": "../../etc/passwd"})
        await client.ask()
    assert client.status == 422
    assert server.requests == []
