"""A program that behaves like `vllm serve` as far as its life goes, and starts in a tenth of a second.

It parses the arguments that concertino gives, starts a child as vLLM starts its engine, holds shared memory, leaves a
socket in its temporary folder, and answers the paths of a start, of a chat, and of a change of weights. Its "model" is
a number, made of its folder's name, which it gives as log-probability; a prompt that is in its cache gets the number
that it got before. `GET /calls` lists what it was asked. `STAND_IN` (JSON) says what else it does:

    delay: 1.5              seconds before it listens
    say: ["line", ...]      lines for the log
    die: 1                  ends with this code instead of listening
    die_after: 0.5          ends so many seconds after it was ready
    deaf: true              ignores SIGTERM, its child too
    stray: true             starts a child in a session of its own
    taken: 2                finds its port taken so often (counted in `counter`)
    counter: "file"         a line for every start
    device: "cuda"          what it says that it runs on
    pause_seconds: 1        how long a pause takes
    plain: true             has no control endpoints
    fail: {at, how, once}   at a path of control, such as "/resume": `dies`, `stalls`, `refuses` (500) or `raves` (an
                            answer that is not vLLM's); where `once` is a file that does not exist, the first time
                            only. `lies` at "/finish_weight_update": says done, and keeps the old weights
    version: "0.27.0"       which vLLM it says that it is
    kill: {at, count}       ends at the n-th request of all its starts: an odd n before it does what was asked, an even
                            one afterwards and before it answers; `count` is the file that counts
    talk: 2                 continues a conversation of bytes with so many calls of `pay`, and then an answer

It takes weights in vLLM's four phases too. What a worker of vLLM finds in the memory of a GPU, it finds in the file
that the handle names, or that `file` names in the information of an update.

A folder whose name begins with `dies`, `error`, `missed`, `nan`, `stays` (in the cache) or `slow` makes a load go so.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

WISH: dict[str, Any] = json.loads(os.environ.get("STAND_IN", "{}"))
SLEEP = (
    "import signal, sys, time\nif sys.argv[1] == 'deaf': signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
)


def say(line: str) -> None:
    """A line for the log."""
    os.write(1, f"{line}\n".encode())


class State:
    """What the server holds."""

    weights = ""
    version = "default"
    paused = threading.Event()
    cache: dict[tuple[str, str], float] = {}  # noqa: RUF012
    adapters: dict[str, str] = {}  # noqa: RUF012
    backend = ""
    agreed = updating = False
    sent: dict[str, bytes] = {}  # noqa: RUF012
    calls: list[str] = []  # noqa: RUF012
    last: Any = None
    lock = threading.Lock()


def beat() -> None:
    """Count the begin, or the end, of a request, and end where the wish says so."""
    kill = WISH.get("kill")
    if kill:
        with State.lock:
            file = Path(kill["count"])
            beats = int(file.read_text() or 0) + 1 if file.exists() else 1
            file.write_text(str(beats))
            if beats == kill["at"]:
                os.kill(os.getpid(), signal.SIGKILL)


def talk(prompt: list[int]) -> list[int]:
    """The next turn of a conversation: calls first, each with its number, then an answer. 257 ends a turn."""
    begun = b"\x00assistant"
    said = bytes(token if token < 256 else 0 for token in prompt).count(begun)
    call = f'<reasoning>r</reasoning>\n<tool_call>{{"name": "pay", "arguments": {{"turn": {said}}}}}</tool_call>'
    return [*(call if said <= WISH["talk"] else "<answer>8</answer>").encode(), 257]


def number(folder: str) -> float:
    """The log-probability that a folder's weights give."""
    return float("nan") if Path(folder).name.startswith("nan") else -(zlib.crc32(folder.encode()) % 1000 + 1) / 1000


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = ""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        cards = [{"id": name, "parent": self.model, "root": root} for name, root in State.adapters.items()]
        config: dict[str, Any] = {"device_config": {"device": WISH.get("device", "cpu")}}
        config["model_config"] = {"enable_sleep_mode": True, "dtype": WISH.get("dtype", "")}
        config["weight_transfer_config"] = {"backend": State.backend} if State.backend else None
        answers = {
            "/v1/models": {
                "data": [{"id": self.model, "parent": None, "root": self.model, "max_model_len": 4096}, *cards]
            },
            "/metrics": 'vllm:num_requests_running{engine="0"} 0.0\nvllm:num_requests_waiting{engine="0"} 0.0\n',
            "/environment": dict(os.environ),
            "/arguments": sys.argv[1:],
            "/calls": State.calls,
            "/last": State.last,
            "/weight_info": {"weight_version": State.version},
            "/is_paused": {"is_paused": State.paused.is_set()},
            "/server_info": {"vllm_config": config},
            "/version": {"version": WISH.get("version", "0.32.0")},
            "/get_world_size": {"world_size": 1},
            "/sent": {name: len(data) for name, data in State.sent.items()},
        }
        self.answer(answers.get(path, ""))

    def do_POST(self) -> None:
        path, body = urlsplit(self.path).path, self.body()
        beat()
        if WISH.get("plain") and "completions" not in path:
            self.answer({"detail": "Not Found"}, 404)
        elif path == "/v1/chat/completions":
            if "arrived" in body:
                Path(body["arrived"]).touch()
            time.sleep(float(body.get("extra_seconds", 0)))
            self.stream(body)
        elif path == "/v1/completions":
            self.complete(body)
        else:
            State.calls.append(self.path)
            if self.fails(path):
                return
            getattr(self, path[1:].replace("/", "_"))(body)

    def fails(self, path: str) -> bool:
        """Whether this request fails, as the wish says; then it was answered, if at all."""
        fail = WISH.get("fail", {})
        once = Path(fail["once"]) if "once" in fail else None
        if fail.get("at") != path or fail["how"] == "lies" or (once is not None and once.exists()):
            return False
        if once is not None:
            once.touch()
        if fail["how"] == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if fail["how"] == "stalls":
            time.sleep(600)
        self.answer("<html>hello</html>" if fail["how"] == "raves" else "no", 500 if fail["how"] == "refuses" else 200)
        return True

    def body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")

    # -- control -----------------------------------------------------------------------------------------------

    def pause(self, body: Any) -> None:
        time.sleep(WISH.get("pause_seconds", 0))
        State.paused.set()
        self.answer({"status": "paused"})

    def resume(self, body: Any) -> None:
        State.paused.clear()
        self.answer({"status": "resumed"})

    def init_weight_transfer_engine(self, body: Any) -> None:
        State.agreed = bool(body["init_info"]) and bool(State.backend)
        self.done(State.agreed)

    def start_weight_update(self, body: Any) -> None:
        State.updating, before = True, State.updating
        State.sent = {}
        self.done(State.agreed and not before)

    def update_weights(self, body: Any) -> None:
        self.take(body["update_info"], body["update_info"]["file"])

    def finish_weight_update(self, body: Any) -> None:
        State.updating, before = False, State.updating
        if before and WISH.get("fail", {}).get("how") != "lies":
            State.weights = f"sent {sorted(State.sent.items())}"
        self.done(before)

    def take(self, info: Any, file: str) -> None:
        """Cut what is in a file into tensors, as a worker cuts the memory of a GPU; answer as an endpoint, or RPC."""
        data, place = Path(file).read_bytes(), 0
        for name, size in zip(info["names"], info["tensor_sizes"], strict=True):
            State.sent[name] = data[place : place + size]
            place += size
        if self.path == "/collective_rpc":
            self.answer({"results": [{} if State.updating else {"error": "RuntimeError: out of turn"}]})
        else:
            self.done(State.updating)

    def done(self, good: bool) -> None:
        """Answer as vLLM does after a phase, or as it does out of turn."""
        self.answer({"message": "done"} if good else {"error": {"message": "out of turn"}}, 200 if good else 500)

    def collective_rpc(self, body: Any) -> None:
        if body["method"] == "concertino_open_weights":
            State.calls[-1] += " concertino_open_weights"
            options = body["kwargs"]
            handle = json.loads(options["handle"])[0]["bytes"]
            self.take(json.loads(options["info"]), base64.b64decode(handle).decode())
            return
        folder = next(iter(body["kwargs"].values()))
        State.calls[-1] += f" {body['method']} {Path(folder).name}"
        name = Path(folder).name
        if name.startswith("dies"):
            say("RuntimeError: the worker is gone")
            os.kill(os.getpid(), signal.SIGKILL)
        if name.startswith("slow"):
            time.sleep(1)
        if name.startswith("error"):
            self.answer({"results": [{"error": "OSError: no room"}]})
            return
        State.weights = folder
        self.answer({"results": [{"refreshed": [], "missed": ["Linear"] if name.startswith("missed") else []}]})

    def reset_prefix_cache(self, body: Any) -> None:
        if not Path(State.weights).name.startswith("stays"):
            State.cache.clear()
        self.answer({"success": True})

    def update_weight_version(self, body: Any) -> None:
        State.version = body["new_version"]
        self.answer({"success": True})

    def v1_load_lora_adapter(self, body: Any) -> None:
        State.calls[-1] += f" {body['lora_name']}"
        if Path(body["lora_path"]).name.startswith("error"):
            self.answer({"error": {"message": "the adapter does not fit"}}, 400)
            return
        State.adapters[body["lora_name"]] = body["lora_path"]
        self.answer("Success")

    def v1_unload_lora_adapter(self, body: Any) -> None:
        State.calls[-1] += f" {body['lora_name']}"
        known = State.adapters.pop(body["lora_name"], None)
        self.answer("Success" if known else {"error": {"message": "no such adapter"}}, 200 if known else 404)

    def sleep(self, body: Any) -> None:
        self.answer({"status": "sleeping"})

    def wake_up(self, body: Any) -> None:
        self.answer({"status": "awake"})

    # -- answers -----------------------------------------------------------------------------------------------

    def complete(self, body: Any) -> None:
        State.last = body
        while State.paused.is_set():
            time.sleep(0.01)
        # A test that wants a slow answer says so by a seed.
        time.sleep(0 if "talk" in WISH else float(body.get("seed") or 0))
        name, prompt = body["model"], body["prompt"]
        key = (name, f"{prompt}{body.get('cache_salt', '')}")
        cached = len(prompt) // 32 * 32 if key in State.cache else 0
        value = State.cache.setdefault(key, number(State.adapters.get(name, State.weights or self.model)))
        ids = talk(prompt) if "talk" in WISH else [7, 8]
        choice = {
            "text": "ab",
            "finish_reason": "stop",
            "token_ids": ids,
            "prompt_token_ids": prompt,
            "logprobs": {"token_logprobs": [value] * len(ids)},
        }
        usage = {"prompt_tokens_details": {"cached_tokens": cached}}
        self.answer({"model": name, "choices": [choice], "usage": usage})

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

    def answer(self, content: Any, status: int = 200) -> None:
        if self.command == "POST":
            beat()
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def read_arguments() -> argparse.Namespace:
    """Those that the stand-in looks at."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("model")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--weight-transfer-config", type=json.loads, default={})
    args, _ = parser.parse_known_args()
    State.backend = args.weight_transfer_config.get("backend", "")
    return args


def main() -> None:
    args = read_arguments()
    counter = WISH.get("counter")
    if counter:
        with Path(counter).open("a") as file:
            file.write(f"{os.getpid()}\n")
        if len(Path(counter).read_text().split()) <= WISH.get("taken", 0):
            say("OSError: [Errno 98] Address already in use")
            sys.exit(1)
    name = f"{os.environ['CONCERTINO_TEST_MARK']}-{os.getpid()}"
    held = shared_memory.SharedMemory(name, create=True, size=4096)
    for line in WISH.get("say", ()):
        say(line)
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
    say("Application startup complete.")
    server.serve_forever()


if __name__ == "__main__":
    main()
