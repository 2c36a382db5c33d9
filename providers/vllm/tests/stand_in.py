"""A program that behaves like `vllm serve` as far as its life goes, and starts in a tenth of a second.

It parses the arguments that concertino gives, starts a child as vLLM starts its engine, holds shared memory, leaves a
socket in its temporary folder, and answers the few paths that a start needs. `STAND_IN` (JSON) says what else it does:

    delay: 1.5              seconds before it listens
    say: ["line", ...]      lines for the log
    die: 1                  ends with this code instead of listening
    die_after: 0.5          ends so many seconds after it was ready
    deaf: true              ignores SIGTERM, its child too
    stray: true             starts a child in a session of its own
    taken: 2                finds its port taken so often (counted in `counter`)
    counter: "file"         a line for every start
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

WISH: dict[str, Any] = json.loads(os.environ.get("STAND_IN", "{}"))
SLEEP = (
    "import signal, sys, time\nif sys.argv[1] == 'deaf': signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = ""

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.answer({"data": [{"id": self.model, "parent": None}]})
        elif self.path == "/metrics":
            self.answer('vllm:num_requests_running{engine="0"} 0.0\nvllm:num_requests_waiting{engine="0"} 0.0\n')
        elif self.path == "/environment":
            self.answer(dict(os.environ))
        else:
            self.answer("")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.path == "/v1/chat/completions":
            time.sleep(float(body.get("extra_seconds", 0)))
            self.stream(body)
        else:
            self.answer({"choices": [{"text": "", "finish_reason": "length"}], "usage": {}})

    def stream(self, body: Any) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        choice = {"index": 0, "delta": {"content": f"pid {os.getpid()}"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        for event in ({"model": body["model"], "choices": [choice]}, {"choices": [], "usage": usage}):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def answer(self, content: Any) -> None:
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb")
    parser.add_argument("model")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    args, _ = parser.parse_known_args()
    counter = WISH.get("counter")
    if counter:
        with Path(counter).open("a") as file:
            file.write(f"{os.getpid()}\n")
        if len(Path(counter).read_text().split()) <= WISH.get("taken", 0):
            print("OSError: [Errno 98] Address already in use", flush=True)
            sys.exit(1)
    name = f"{os.environ['CONCERTINO_TEST_MARK']}-{os.getpid()}"
    held = shared_memory.SharedMemory(name, create=True, size=4096)
    for line in WISH.get("say", ()):
        print(line, flush=True)
    engine = subprocess.Popen([sys.executable, "-c", SLEEP, "deaf" if WISH.get("deaf") else ""])

    def end(*_: object) -> None:
        """As vLLM does: first the engine, then itself."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        engine.terminate()
        engine.wait()
        held.close()
        held.unlink()
        os._exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if WISH.get("deaf") else end)
    if WISH.get("stray"):
        subprocess.Popen([sys.executable, "-c", SLEEP, "deaf"], start_new_session=True)
    left = socket.socket(socket.AF_UNIX)
    left.bind(f"{os.environ['TMPDIR']}/0123456789abcdef0123456789abcdef0123")
    time.sleep(WISH.get("delay", 0))
    if "die" in WISH:
        sys.exit(WISH["die"])
    Handler.model = args.model
    server = Listener((args.host, args.port), Handler)
    if "die_after" in WISH:
        threading.Timer(WISH["die_after"], os._exit, (3,)).start()
    print("Application startup complete.", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
