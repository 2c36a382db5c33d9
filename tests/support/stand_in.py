"""A stand-in for a model server: it speaks OpenAI's chat completions and says the replies that it was given, in order.

    with StandIn("Hello.") as server:
        ...                      # a program whose OPENAI_BASE_URL is server.address
    server.requests              # what it was asked
    server.hold.clear()          # from now on no reply is given, until server.hold.set()

The invariant: it never makes up a reply. A request too many is refused with 400, which is not repeated, so a program
that asks more often than its test expects fails. It listens on 127.0.0.1, on a free port, in threads of its own.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

PIECE = 12
"""Characters of one piece of a streamed reply."""

PAUSE = 0.003
"""Seconds between two pieces, so that they arrive as pieces."""


class StandIn:
    """The server, running from `__enter__` to `__exit__`. `requests` are the bodies that it was sent."""

    def __init__(self, *replies: str) -> None:
        self.requests: list[Mapping[str, Any]] = []
        self.hold = threading.Event()
        self.hold.set()
        self._left = list(replies)
        self._lock = threading.Lock()
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # pieces leave at once

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stand_in._answer(self, body)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Write nothing: what a test prints is its own."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        """For OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The two variables by which a program finds it."""
        return {"OPENAI_BASE_URL": self.address, "OPENAI_API_KEY": "of-a-stand-in"}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler, body: Mapping[str, Any]) -> None:
        with self._lock:
            self.requests.append(body)
            reply = self._left.pop(0) if self._left else None
        self.hold.wait()
        if reply is None:
            _send(handler, 400, "application/json", json.dumps({"error": {"message": "no reply is left"}}))
        elif body.get("stream"):
            _stream(handler, _events(reply, body["model"]))
        else:
            _send(handler, 200, "application/json", json.dumps(_whole(reply, body["model"])))


def _send(handler: BaseHTTPRequestHandler, status: int, kind: str, text: str) -> None:
    content = text.encode()
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def _stream(handler: BaseHTTPRequestHandler, events: list[str]) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    with contextlib.suppress(ConnectionError):  # the client may leave at any time
        for event in events:
            content = event.encode()
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
            time.sleep(PAUSE)
        handler.wfile.write(b"0\r\n\r\n")


def _events(reply: str, model: str) -> list[str]:
    pieces = [reply[start : start + PIECE] for start in range(0, len(reply), PIECE)]
    deltas = [{"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in pieces]
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": model}
    chunks = [{**head, "choices": [choice]} for choice in (*deltas, last)]
    chunks.append({**head, "choices": [], "usage": _usage(reply)})
    return [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]


def _whole(reply: str, model: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model}
    return {**head, "choices": [choice], "usage": _usage(reply)}


def _usage(reply: str) -> dict[str, int]:
    written = max(1, len(reply) // 4)
    return {"prompt_tokens": 100, "completion_tokens": written, "total_tokens": 100 + written}
