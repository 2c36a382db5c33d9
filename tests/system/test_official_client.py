"""The official `openai` client and `concertino-openai` read the same from the same server: text, calls, usage.

Both ask the same seeded requests, one after another, each plain and streamed; what is compared is what a caller gets.
Where a server fails on a call that is not well-formed, the clients differ on purpose: ours gives the call as it stood.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import concertino as ct
import pytest
from concertino_openai.client import OpenAIModel
from script import SCRIPT, Exchange

openai = pytest.importorskip("openai", reason="the official client is not installed; `make setup` adds it")

SERVERS = {"transformers_server": "transformers", "vllm_server": "vllm", "llama_server": "llama-cpp-python"}
UNREAD = {"broken", "no-arguments", "no-object"}
"""Replies that some server fails to read as calls: ours makes a call of what it wrote, the official client fails."""

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]


class Seen(NamedTuple):
    """What a caller gets of a reply."""

    text: str
    calls: list[tuple[str, Any]]
    tokens: tuple[int, int] | None


def _value(arguments: str | dict[str, Any]) -> Any:
    return arguments if isinstance(arguments, dict) else json.loads(arguments or "{}")


async def official(client: Any, model: str, exchange: Exchange, stream: bool) -> Seen:
    """The official client, used as its documentation shows."""
    request = {"model": model, "messages": exchange.messages, "temperature": 0, "seed": 7, "max_tokens": 64}
    if exchange.tools:
        request["tools"] = exchange.tools
    if not stream:
        reply = await client.chat.completions.create(**request)
        message, usage = reply.choices[0].message, reply.usage
        calls = [(call.function.name, _value(call.function.arguments)) for call in message.tool_calls or ()]
        return Seen(message.content or "", calls, (usage.prompt_tokens, usage.completion_tokens) if usage else None)
    text, parts, tokens = "", {}, None
    chunks = await client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True})
    async for chunk in chunks:
        if chunk.usage:
            tokens = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                name, arguments = parts.get(call.index, ("", ""))
                parts[call.index] = name + (call.function.name or ""), arguments + (call.function.arguments or "")
    return Seen(text, [(name, _value(arguments)) for name, arguments in parts.values()], tokens)


async def ours(model: OpenAIModel, exchange: Exchange, stream: bool) -> Seen:
    """The provider, by itself."""
    messages = [_message(data) for data in exchange.messages]
    sampling = ct.Sampling(temperature=0, seed=7, max_tokens=64)
    request = ct.ChatRequest(messages, exchange.tools, sampling)
    if stream:
        *pieces, reply = [piece async for piece in model.stream(request)]
        assert isinstance(reply, ct.Reply)
        assert "".join(str(piece) for piece in pieces if not isinstance(piece, ct.Thought)) == reply.text
    else:
        reply = await model.chat(request)
    tokens = reply.usage.input_tokens, reply.usage.output_tokens
    calls = [(call.name, _value(call.arguments)) for call in reply.tool_calls]
    return Seen(reply.text, calls, None if reply.usage.estimated else tokens)


def _message(data: dict[str, Any]) -> ct.Message:
    calls = [
        ct.ToolCall(call["function"]["name"], call["function"]["arguments"], call["id"])
        for call in data.get("tool_calls", ())
    ]
    return ct.Message(data["role"], data.get("content") or "", tuple(calls), data.get("tool_call_id", ""))


@pytest.fixture(params=SERVERS)
async def clients(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Any, OpenAIModel, str, str]]:
    """Both clients of one server, the model's name there, and the kind of the server."""
    server = request.getfixturevalue(request.param)
    official_one = openai.AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0)
    own = OpenAIModel(
        server=SERVERS[request.param],
        model=server.model,
        base_url=server.base_url,
        key_env="",
        **({"null_content": False} if "llama" in SERVERS[request.param] else {}),
    )
    yield official_one, own, server.model, SERVERS[request.param]
    await official_one.close()
    await own.close()


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_both_clients_read_the_same_from_every_server(
    clients: tuple[Any, OpenAIModel, str, str], stream: bool
) -> None:
    client, model, name, kind = clients
    compared = 0
    for exchange in SCRIPT:
        if exchange.endless or exchange.name in UNREAD or exchange.reply.startswith("<think>"):
            continue
        theirs = await official(client, name, exchange, stream)
        mine = await ours(model, exchange, stream)
        if kind == "llama-cpp-python" and "<tool_call>" in theirs.text:
            # This server hands calls over as text; ours reads them, the official client leaves that to the caller.
            assert mine.calls, exchange.name
            continue
        assert mine.text.strip() == theirs.text.strip(), exchange.name
        assert mine.calls == theirs.calls, exchange.name
        if theirs.tokens is not None and mine.tokens is not None:
            assert mine.tokens == theirs.tokens, exchange.name
        compared += 1
    assert compared >= 4
