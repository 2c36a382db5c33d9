"""A well-behaved OpenAI-shaped server for conformance: it counts in words, honours what it is asked, and can stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from .fault_server import serving

WORDS = [" one", " two", " three", " four", " five", " six", " seven", " eight", " nine", " ten", " eleven", " twelve"]
CONTEXT = 8000


class Answer:
    """What the server says to a request."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.prompt = sum(len(str(message["content"])) // 4 + 1 for message in body["messages"])
        self.calls = [_call(tool["function"]["name"]) for tool in body.get("tools", [])[:1]]
        words, finish = list(WORDS) if not self.calls else [], "stop"
        for stop in body.get("stop", []):
            words = [word for n, word in enumerate(words) if stop not in "".join(words[: n + 1])]
        most = body.get("max_tokens") or body.get("max_completion_tokens") or 4096
        if len(words) > most:
            words, finish = words[:most], "length"
        self.words, self.finish = words, "tool_calls" if self.calls else finish
        self.logprobs = bool(body.get("logprobs"))

    @property
    def usage(self) -> dict[str, int]:
        written = max(1, len(self.words))
        return {"prompt_tokens": self.prompt, "completion_tokens": written, "total_tokens": self.prompt + written}

    def choice(self, kind: str, content: dict[str, Any], words: list[str], finish: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, kind: content, "finish_reason": finish}
        if self.logprobs and words:
            choice["logprobs"] = {"content": [{"token": word, "logprob": -0.5} for word in words]}
            choice["token_ids"] = [WORDS.index(word) for word in words]
        return choice


def _call(name: str) -> dict[str, Any]:
    arguments = json.dumps({"a": 2, "b": 3})
    return {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


async def chat(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    answer = Answer(body)
    if answer.prompt > CONTEXT:
        error = {"message": f"maximum context length is {CONTEXT}", "code": "context_length_exceeded"}
        return web.json_response({"error": error}, status=400)
    head = {"id": "chatcmpl-1", "model": body["model"], "object": "chat.completion"}
    if not body.get("stream"):
        content: dict[str, Any] = {"role": "assistant", "content": "".join(answer.words) or None}
        if answer.calls:
            content["tool_calls"] = answer.calls
        choice = answer.choice("message", content, answer.words, answer.finish)
        return web.json_response({**head, "choices": [choice], "usage": answer.usage})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)

    async def say(data: Any) -> None:
        await response.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        await asyncio.sleep(0)

    for word in answer.words:
        await say({**head, "choices": [answer.choice("delta", {"content": word}, [word], None)]})
    if answer.calls:
        await say({**head, "choices": [answer.choice("delta", {"tool_calls": answer.calls}, [], None)]})
    await say({**head, "choices": [answer.choice("delta", {}, [], answer.finish)]})
    if (body.get("stream_options") or {}).get("include_usage"):
        await say({**head, "choices": [], "usage": answer.usage})
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


async def models(request: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": "echo", "max_model_len": CONTEXT}]})


@asynccontextmanager
async def echo_server() -> AsyncIterator[str]:
    """Run one for as long as the block lasts; gives the address up to `/v1`."""
    async with serving(web.post("/v1/chat/completions", chat), web.get("/v1/models", models)) as address:
        yield f"{address}/v1"
