"""A server that gives back what it was sent, headers first: to models, to search services and to MCP clients.

The first word of a path says how: `/content/v1/chat/completions` puts it into the text of a reply, `/e401/…` into the
body of an error. Nothing that it does may make a client let a key slip.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """What is sent."""

    body: Any
    status: int = 200
    kind: str = "application/json"
    place: str = ""

    @property
    def data(self) -> bytes:
        """The body as bytes."""
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


class Mirror(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._do({})

    def do_DELETE(self) -> None:
        self._send(Answer(""))

    def do_POST(self) -> None:
        self._do(json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}"))

    def _do(self, sent: dict[str, Any]) -> None:
        _, way, rest = self.path.split("/", 2)
        seen = "; ".join(f"{name}: {value}" for name, value in self.headers.items())
        if rest.startswith("mcp"):
            self._send(mcp(way, seen, sent) if sent else Answer("", 405))
        elif way in WRONG or way.startswith("e"):
            self._send(wrong(way, seen))
        elif rest.endswith("messages"):
            self._send(Answer(message(seen)))
        elif rest.endswith("completions"):
            self._send(stream(way, seen) if sent.get("stream") else Answer(completion(way, seen)))
        else:
            self._send(Answer(results(seen)))

    def _send(self, answer: Answer) -> None:
        data = answer.data
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Echo", self.headers.get("Authorization", ""))
        if answer.place:
            self.send_header("Location", answer.place)
        self.end_headers()
        self.wfile.write(data)


WRONG = ("page", "broken", "strange", "moved")
"""Ways to answer with something else than what was asked for; also `e` and a status."""


def wrong(way: str, seen: str) -> Answer:
    """What no client can use."""
    if way == "page":
        return Answer(f"<html><title>{seen}</title>{seen}</html>", 500, "text/html")
    if way == "broken":
        return Answer(f'{{"choices": [{{"message": "{seen}')
    if way == "strange":
        return Answer({"echo": seen})
    if way == "moved":
        return Answer("", 302, place=f"http://127.0.0.1:9/{seen}".replace(" ", ""))
    return Answer({"type": "error", "error": {"type": "api_error", "message": seen, "code": seen}}, int(way[1:]))


def completion(way: str, seen: str) -> dict[str, Any]:
    """A reply of a model in the form of OpenAI."""
    said: dict[str, Any] = {"role": "assistant", "content": f"<answer>{seen}</answer>"}
    if way == "call":
        function = {"name": "look", "arguments": json.dumps({"x": seen})}
        said = {"role": "assistant", "tool_calls": [{"id": seen[:200], "type": "function", "function": function}]}
    elif way == "thought":
        said["reasoning_content"] = seen
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": seen,
        "model": "m",
        "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        "usage": usage,
    }


def stream(way: str, seen: str) -> Answer:
    """The same, letter by letter; `call` breaks off with an error."""
    field = "reasoning_content" if way == "thought" else "content"
    events: list[dict[str, Any]] = [_piece({field: letter}) for letter in f"<answer>{seen}</answer>"]
    if way == "call":
        events.insert(20, {"error": {"message": seen}})
    events.append(_piece({"content": "<answer>x</answer>"} if way == "thought" else {}, "stop"))
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return Answer(f"{text}data: [DONE]\n\n", kind="text/event-stream")


def _piece(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def message(seen: str) -> dict[str, Any]:
    """A reply of a model in the form of Anthropic."""
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {**head, "content": [{"type": "text", "text": f"<answer>{seen}</answer>"}], "usage": usage}


def results(seen: str) -> dict[str, Any]:
    """What search services find."""
    row = {"url": "https://example.org/a", "link": "https://example.org/a", "title": seen}
    row |= {"content": seen, "snippet": seen, "description": seen}
    return {"results": [row], "organic": [row], "web": {"results": [row]}}


def mcp(way: str, seen: str, sent: dict[str, Any]) -> Answer:
    """What an MCP server says."""
    head = {"jsonrpc": "2.0", "id": sent.get("id")}
    calls = sent["method"] == "tools/call"
    if "id" not in sent:
        return Answer("", 202)
    if way == "e401" or (way == "e500" and calls):
        return Answer(seen, int(way[1:]), "text/plain")
    if way == "error" and calls:
        return Answer({**head, "error": {"code": -32000, "message": seen, "data": {"echo": seen}}})
    schema = {"type": "object", "properties": {"text": {"type": "string", "description": seen}}}
    said: dict[str, dict[str, Any]] = {
        "initialize": {
            "protocolVersion": "2025-03-26",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "mirror", "version": "1"},
            "instructions": seen,
        },
        "tools/list": {"tools": [{"name": "look", "description": f"Sees {seen}", "inputSchema": schema}]},
        "tools/call": {"content": [{"type": "text", "text": seen}], "isError": way == "failed"},
    }
    found = said.get(sent["method"], {})
    if way == "data" and calls:
        found["structuredContent"] = {"echo": {seen: [seen]}}
    return Answer({**head, "result": found})


@contextmanager
def reflecting() -> Iterator[str]:
    """The address of a server that lives as long as the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
