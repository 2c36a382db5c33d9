"""A stand-in for Anthropic's Messages API, made from the vendor's documentation, on a port of the loopback interface.

No test of this folder asks the real API. What the stand-in knows was read, in November 2026, in the source of the SDK
`anthropic` 2.14 (types of requests, events and errors) and on these pages of https://platform.claude.com/docs/en:
`api/messages/create`, `api/errors`, `api/migration-2026-10-21`, `build-with-claude/streaming`,
`build-with-claude/thinking`, `build-with-claude/preserved-thinking`, `build-with-claude/prompt-caching`,
`build-with-claude/structured-outputs`, `build-with-claude/handling-stop-reasons`.

It refuses what those pages say is refused, with their words; it signs thoughts for the conversation that they were
thought in, and checks the signature when they come back; it keeps a prompt cache. What it answers is a script, or else
a count of words. It counts requests and gives everything back at its end.

Invariant: it never takes a request that the documented API refuses.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Block = dict[str, Any]
WORDS = [" one", " two", " three", " four", " five", " six", " seven", " eight", " nine", " ten", " eleven", " twelve"]
CONTEXT = 8000
KEY = "sk-ant-api03-of-the-stand-in"
VERSION = "2026-10-21"
SIGNED = "EosnCkYICxIM"
FIELDS = {
    "cache_control", "max_tokens", "messages", "metadata", "model", "output_config", "service_tier", "stop_sequences",
    "stream", "system", "thinking", "tool_choice", "tools",
}  # fmt: skip


class Refused(Exception):
    """The request is refused."""

    def __init__(self, message: str, status: int = 400, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


@dataclass
class Turn:
    """What the model says next; a signature of a thought is written by the server."""

    blocks: Sequence[Block]
    stop_reason: str = "end_turn"
    stop_details: Mapping[str, Any] | None = None


def text(value: str) -> Block:
    return {"type": "text", "text": value}


def thinking(value: str) -> Block:
    return {"type": "thinking", "thinking": value, "signature": ""}


def call(name: str, arguments: Any, call_id: str = "toolu_01") -> Block:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


@dataclass
class StandIn:
    """The server, while it runs."""

    script: list[Turn | Callable[[Mapping[str, Any]], Turn]] = field(default_factory=list)
    address: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    cache: set[str] = field(default_factory=set)
    seed: int | None = None
    pause: float = 0.0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(request.headers)
        try:
            _check_headers(request.headers)
            check(body)
        except Refused as refused:
            self.refused.append(str(refused))
            error = {"type": refused.kind, "message": str(refused)}
            answer = {"type": "error", "error": error, "request_id": "req_refused"}
            return web.json_response(answer, status=refused.status, headers={"request-id": "req_refused"})
        turn = self.script.pop(0) if self.script else counted(body)
        turn = turn(body) if callable(turn) else turn
        message = self._message(body, turn)
        headers = {"request-id": f"req_{len(self.bodies):04}"}
        if not body.get("stream"):
            return web.json_response(message, headers=headers)
        response = web.StreamResponse(headers={**headers, "Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for piece in self._cut(b"".join(map(sse, events(message, self._random())))):
            await response.write(piece)
            await asyncio.sleep(self.pause)
        await response.write_eof()
        return response

    def _message(self, body: Mapping[str, Any], turn: Turn) -> dict[str, Any]:
        signature = sign(body, len(body["messages"]))
        blocks = [{**each, "signature": signature} if each["type"] == "thinking" else each for each in turn.blocks]
        if body.get("thinking", {}).get("display", "omitted") == "omitted":
            blocks = [{**each, "thinking": ""} if each["type"] == "thinking" else each for each in blocks]
        usage = {**self._cached(body), "output_tokens": max(1, sum(map(_written, turn.blocks)))}
        thought = sum(_written(each) for each in turn.blocks if each["type"] in ("thinking", "redacted_thinking"))
        usage["output_tokens_details"] = {"thinking_tokens": thought}
        return {
            "id": f"msg_{len(self.bodies):04}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": blocks,
            "stop_reason": turn.stop_reason,
            "stop_sequence": None,
            "stop_details": turn.stop_details,
            "usage": usage,
        }

    def _cached(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The tokens of the prompt: read from the cache up to the longest known beginning, written up to a mark."""
        digest, tokens, read, marked = hashlib.sha256(), 0, 0, 0
        known, fresh = set(self.cache), []
        for block in _prompt_blocks(body):
            digest.update(_canonical(block))
            tokens += _tokens(block)
            if digest.hexdigest() in known:
                read = tokens
            if "cache_control" in block:
                fresh.append(digest.hexdigest())
                marked = tokens
        self.cache.update(fresh)
        written = max(0, marked - read)
        return {
            "input_tokens": tokens - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
        }

    def _random(self) -> random.Random | None:
        return None if self.seed is None else random.Random(self.seed)

    def _cut(self, data: bytes) -> Iterator[bytes]:
        chance = self._random()
        if chance is None:
            yield data
            return
        while data:
            size = chance.choice((1, 2, 3, 7, 50, 400))
            yield data[:size]
            data = data[size:]


def counted(body: Mapping[str, Any]) -> Turn:
    """What the model says without a script: it calls the first tool it is offered, or counts in words."""
    if body.get("tools") and body.get("tool_choice", {}).get("type") != "none":
        return Turn([call(body["tools"][0]["name"], {"a": 2, "b": 3})], "tool_use")
    words, reason = list(WORDS), "end_turn"
    for stop in body.get("stop_sequences", ()):
        kept = [word for n, word in enumerate(words) if stop not in "".join(words[: n + 1])]
        reason, words = ("stop_sequence", kept) if len(kept) < len(words) else (reason, words)
    if len(words) > body["max_tokens"]:
        words, reason = words[: body["max_tokens"]], "max_tokens"
    return Turn([text("".join(words))], reason)


# -- events ------------------------------------------------------------------------------------------------------------


def sse(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def events(message: Mapping[str, Any], chance: random.Random | None = None) -> Iterator[dict[str, Any]]:
    """A message as the events of a stream, its contents cut at random."""
    begun = {**message, "content": [], "stop_reason": None, "stop_details": None}
    begun["usage"] = {**message["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(message["content"]):
        if chance is not None and chance.random() < 0.5:
            yield {"type": "ping"}
        empty, deltas = _deltas(block, chance)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")}
    totals = {name: message["usage"][name] for name in ("output_tokens", "output_tokens_details")}
    yield {"type": "message_delta", "delta": delta, "usage": totals}
    yield {"type": "message_stop"}


def _deltas(block: Block, chance: random.Random | None) -> tuple[Block, list[Block]]:
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": each} for each in cut(block["text"], chance)]
    if block["type"] == "thinking":
        thoughts = [{"type": "thinking_delta", "thinking": each} for each in cut(block["thinking"], chance)]
        return {**block, "thinking": "", "signature": ""}, [
            *thoughts,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if block["type"] == "tool_use":
        written = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"], ensure_ascii=False)
        pieces = ["", *cut(written if block["input"] else "", chance)]
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": each} for each in pieces]
    return block, []


def cut(value: str, chance: random.Random | None) -> list[str]:
    if chance is None:
        return [value] if value else []
    pieces = []
    while value:
        size = chance.randint(1, 12)
        pieces.append(value[:size])
        value = value[size:]
    return pieces


# -- what is refused ---------------------------------------------------------------------------------------------------


def _check_headers(headers: Mapping[str, str]) -> None:
    if headers.get("Authorization") != f"Bearer {KEY}":
        raise Refused("invalid x-api-key", 401, "authentication_error")
    if headers.get("anthropic-version") != VERSION:
        raise Refused(f"anthropic-version: {headers.get('anthropic-version')} is not a valid version")


def check(body: Mapping[str, Any]) -> None:
    """Refuse what the documentation says is refused."""
    for name in ("temperature", "top_p", "top_k"):
        if name in body:
            raise Refused(f"{name}: Extra inputs are not permitted")
    if unknown := sorted(set(body) - FIELDS):
        raise Refused(f"{unknown[0]}: Extra inputs are not permitted")
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        raise Refused("max_tokens: Field required")
    if not body.get("messages"):
        raise Refused("messages: at least one message is required")
    tokens = sum(map(_tokens, _prompt_blocks(body)))
    if tokens > CONTEXT:
        raise Refused(f"prompt is too long: {tokens} tokens > {CONTEXT} maximum")
    _check_thinking(body)
    _check_messages(body)
    _check_thoughts(body)


def _check_thinking(body: Mapping[str, Any]) -> None:
    given = body.get("thinking", {})
    if given.get("type") == "enabled" and not 1024 <= given["budget_tokens"] < body["max_tokens"]:
        raise Refused("`max_tokens` must be greater than `thinking.budget_tokens`")
    if given.get("type") in ("enabled", "disabled") and "5-5" in body["model"]:
        raise Refused(f'"thinking.type.{given["type"]}" is not supported for this model.')
    if given.get("type") == "adaptive" and "haiku-4" in body["model"]:
        raise Refused("adaptive thinking is not supported on this model")
    if body.get("tool_choice", {}).get("type") in ("any", "tool") and "5-5" in body["model"]:
        raise Refused('tool_choice: type "tool" and "any" are not supported for this model.')


def _check_messages(body: Mapping[str, Any]) -> None:
    messages = body["messages"]
    if messages[0]["role"] != "user":
        raise Refused('messages: first message must use the "user" role')
    if messages[-1]["role"] != "user":
        raise Refused("This model does not support assistant message prefill.")
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        results = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        if sorted(results) != sorted(open_calls):
            raise Refused(f"messages.{place}: `tool_use` ids were found without `tool_result` blocks: {open_calls}")
        kinds = [block["type"] for block in message["content"]]
        if results and kinds[: len(results)] != ["tool_result"] * len(results):
            raise Refused(f"messages.{place}: tool_result blocks must come first")
        open_calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        for block in message["content"]:
            _check_block(block, f"messages.{place}")
        if open_calls and not body.get("tools"):
            raise Refused("Requests which include `tool_use` or `tool_result` blocks must define tools.")


def _check_block(block: Block, place: str) -> None:
    if block["type"] == "text" and not block["text"].strip():
        raise Refused(f"{place}: text content blocks must contain non-whitespace text")
    if block["type"] == "tool_use" and not isinstance(block["input"], dict):
        raise Refused(f"{place}.tool_use.input: Input should be a valid dictionary")
    if block["type"] == "image" and block["source"].get("media_type", "image/png") not in (
        "image/jpeg",
        "image/png",
        "image/gif",
        "image/webp",
    ):
        raise Refused(f"{place}.image.source.media_type: Input should be an image type")
    for inner in block.get("content", ()):
        _check_block(inner, place)


def _check_thoughts(body: Mapping[str, Any]) -> None:
    for place, message in enumerate(body["messages"]):
        for number, block in enumerate(message["content"]):
            if block["type"] == "thinking" and block["signature"] != sign(body, place):
                raise Refused(
                    f"messages.{place}.content.{number}: Invalid `signature` in `thinking` block. The block is bound "
                    "to a different conversation."
                )


def sign(body: Mapping[str, Any], before: int) -> str:
    """The signature of a thought: of the model, and of all that was sent before it, but earlier thoughts and marks."""
    system = [_bare(block) for block in body.get("system", ())]
    messages: list[tuple[str, list[Block]]] = []
    for message in body["messages"][:before]:
        content = [_bare(block) for block in message["content"] if "thinking" not in block["type"]]
        # Turns of one role are one turn to the API.
        if messages and messages[-1][0] == message["role"]:
            messages[-1][1].extend(content)
        else:
            messages.append((message["role"], content))
    whole = json.dumps([body["model"], system, body.get("tools", []), messages], sort_keys=True)
    return SIGNED + hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def _bare(block: Block) -> Block:
    return {name: value for name, value in block.items() if name != "cache_control"}


def _prompt_blocks(body: Mapping[str, Any]) -> Iterator[Block]:
    yield from body.get("tools", ())
    yield from body.get("system", ())
    for message in body["messages"]:
        yield from message["content"]


def _tokens(block: Block) -> int:
    return len(json.dumps(_bare(block), ensure_ascii=False)) // 8 + 1


def _written(block: Block) -> int:
    """Tokens of a reply: a word each."""
    said = block.get("text") or block.get("thinking") or json.dumps(block.get("input") or block.get("data") or "")
    return len(said.split())


def _canonical(block: Block) -> bytes:
    return json.dumps(_bare(block), sort_keys=True).encode("utf-8", "surrogatepass")


@asynccontextmanager
async def serving(*routes: web.RouteDef) -> AsyncIterator[str]:
    """Serve on a free port for as long as the block lasts; gives the address."""
    app = web.Application(client_max_size=2**26)
    app.add_routes(routes)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def stand_in(*script: Turn | Callable[[Mapping[str, Any]], Turn]) -> AsyncIterator[StandIn]:
    """Run one for as long as the block lasts; whatever it refused, a test that does not look for it must not see."""
    server = StandIn(list(script))
    async with serving(web.post("/v1/messages", server.answer)) as address:
        server.address = address
        yield server
