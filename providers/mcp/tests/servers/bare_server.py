"""A server without the MCP SDK, for its life and for bad manners: it starts at once, and does as its first word says.

    python bare_server.py MODE [FILE]

`good` behaves. FILE, if given, counts the starts and the calls, one line each.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
FILE = sys.argv[2] if len(sys.argv) > 2 else ""
WRITING = threading.Lock()
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
READS = {"readOnlyHint": True}
GROWN: list[dict[str, Any]] = []


def count(word: str) -> None:
    if FILE:
        with Path(FILE).open("a", encoding="utf-8") as file:
            file.write(f"{word}\n")


def complain(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def put(line: bytes) -> None:
    with WRITING, contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def say(message: dict[str, Any]) -> None:
    put(json.dumps({"jsonrpc": "2.0", **message}).encode())


def tool(name: str, schema: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"{name}: does what its name says to the text that it is given.",
        "inputSchema": schema or TEXT,
        "annotations": READS,
        **more,
    }


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def tools() -> list[dict[str, Any]]:
    if MODE == "many":
        return [tool(f"tool_{number}") for number in range(5000)]
    if MODE == "bombs":
        wide = {"type": "object", "properties": {"x": {"enum": list(range(5000))}}}
        doubling = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(24)}
        doubling["d24"] = {"type": "string"}
        return [
            tool("fine"),
            tool("deep", nested(20)),
            tool("deeper", nested(180)),
            tool("wide", wide),
            tool("doubling", {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": doubling}),
            tool("remote", {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/x.json"}}}),
            tool("no object", {"type": "object", "properties": 7}),
            tool("bad output", outputSchema={"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/"}}}),
        ]
    if MODE == "names":
        odd = ["a.b", "a_b", "ä b/c", "x" * 100, "x" * 100 + "y", "twice", "twice", "", "-dash"]
        return [tool(name) for name in odd]
    return [
        tool("echo"),
        tool("pid"),
        tool("wait"),
        tool("children"),
        tool("large", {"type": "object"}),
        tool("die"),
        tool("die_writing", annotations={}),
        tool("garble"),
        tool("nothing"),
        tool("structured"),
        tool("grow"),
        tool("nested"),
        tool("boast"),
        *GROWN,
    ]


def text(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(value)}]}


def large(size: int, request: Any, last: bool) -> None:
    """A result of any size, with its id as the first thing or as the last."""
    result = b'"result":{"content":[{"type":"text","text":"' + b"x" * size + b'"}]}'
    parts = [result, b'"jsonrpc":"2.0"', b'"id":%d' % request]
    put(b"{" + b",".join(parts if last else [*parts[1:], result]) + b"}")


def boast(token: Any) -> None:
    """Progress without end, then too many words."""
    for done, words in ((float("nan"), ""), (float("inf"), ""), (1, "x" * 100_000)):
        params = {"progressToken": token, "progress": done, "total": done, "message": words}
        say({"method": "notifications/progress", "params": params})


def call(name: str, arguments: dict[str, Any], request: Any) -> dict[str, Any] | None:
    given = arguments.get("text", "")
    count(f"call {name}")
    if name in ("die", "die_writing"):
        complain("about to die")
        os._exit(3)
    if name == "wait":
        threading.Thread(
            target=lambda: (time.sleep(float(given)), say({"id": request, "result": text("waited")}))
        ).start()
        return None
    if name == "children":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        return text(f"{os.getpid()} {child.pid}")
    if name == "large":
        large(int(arguments.get("bytes", 0)), request, bool(arguments.get("last")))
        return None
    if name == "garble":
        put(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"te' % request)
        return None
    if name == "nothing":
        return {"contents": "?"}
    if name == "grow":
        GROWN.append(tool("grown"))
        say({"method": "notifications/tools/list_changed"})
    if name == "nested":
        return {"content": [], "structuredContent": nested(180)}
    if name == "structured":
        return {"content": [], "structuredContent": {"a": [1, 2]}}
    return text({"pid": os.getpid(), "boast": "boasted"}.get(name, given))


def answer(message: dict[str, Any]) -> None:
    method, request = message.get("method"), message.get("id")
    if method == "notifications/cancelled":
        count(f"cancelled {message['params']['requestId']}")
    if request is None:
        return
    if method == "initialize":
        result: dict[str, Any] | None = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "bare", "version": "0"},
        }
    elif method == "tools/list":
        count("list")
        result = {"tools": tools()}
    elif method == "tools/call":
        if message["params"]["name"] == "boast":
            boast(message["params"]["_meta"]["progressToken"])
        result = call(message["params"]["name"], message["params"].get("arguments", {}), request)
    else:
        if MODE == "old":
            os._exit(9)  # it ends at the first method that it does not know, as some do
        say({"id": request, "error": {"code": -32601, "message": f"no method {method}"}})
        return
    if result is not None:
        say({"id": request, "result": result})


def misbehave() -> None:
    if MODE == "exit":
        complain("cannot open the database")
        os._exit(4)
    if MODE == "silent":
        complain("thinking")
        time.sleep(600)
    while MODE == "garbage":
        put(b"no JSON at all")
    while MODE == "endless":
        sys.stdout.buffer.write(b"x" * 65536)
    if MODE == "noisy":
        for _ in range(2000):
            complain("y" * 1000)
        put(b"Welcome to the server!")


count("start")
misbehave()
for line in sys.stdin:
    answer(json.loads(line))
    if MODE == "blocked" and '"tools/list"' in line:
        time.sleep(600)  # it reads no more
if MODE == "deaf":
    time.sleep(600)  # it does not end with its input
