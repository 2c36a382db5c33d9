"""Bodies of model servers that mean harm: each ends in one sentence, in bounded memory, however it is packed."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from concertino import ChatRequest, Message, Model, ProviderError

EVENTS, JSON = b"text/event-stream", b"application/json"
MB = 2**20
START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text"}}\n\n'
)
SENT = 90 * MB
"""What a server without an end sends before it gives up; more than a reply may have."""


def block(number: int) -> bytes:
    shown = {"type": "content_block_start", "index": number, "content_block": {"type": "tool_use", "name": "f"}}
    return b"event: content_block_start\ndata: " + json.dumps(shown).encode() + b"\n\n"


def endless(piece: bytes, before: bytes = b"") -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield before
        many = piece * (2**16 // len(piece) + 1)
        for _ in range(SENT // len(many)):
            yield many

    return pieces


def once(body: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: iter([body[place : place + 2**16] for place in range(0, len(body), 2**16)])


def bomb(before: bytes = b"", piece: bytes = b"a") -> Callable[[], Iterator[bytes]]:
    packer = zlib.compressobj(wbits=31)
    made = packer.compress(before) + b"".join(packer.compress(piece * MB) for _ in range(SENT // MB)) + packer.flush()
    return once(made)


Attack = tuple[int, bytes, bytes, Callable[[], Iterator[bytes]], str]
ATTACKS: dict[str, Attack] = {
    "anthropic: a line without an end": (200, EVENTS, b"", endless(b"a", START + b"data: "), "8,388,608 bytes"),
    "anthropic: lines without an event's end": (200, EVENTS, b"", endless(b"a\n", START), "8,388,608 bytes"),
    "anthropic: an event of many lines": (200, EVENTS, b"", once(START + b"id: 1\n" * 2000 + b"\n"), "1,000 lines"),
    "anthropic: an event of many values": (
        200,
        EVENTS,
        b"",
        once(START + b'data: {"type":"ping","x":[' + b"1," * 110_000 + b"1]}\n\n"),
        "100,000 JSON values",
    ),
    "anthropic: endless comments": (200, EVENTS, b"", endless(b": ping\n\n", START), "1,048,576 bytes"),
    "anthropic: a packed stream that grows": (200, EVENTS, b"gzip", bomb(START + b"data: "), "8,388,608 bytes"),
    "anthropic: a packed answer that grows": (200, JSON, b"gzip", bomb(b'"'), "67,108,864 bytes"),
    "anthropic: a packed error that grows": (400, JSON, b"gzip", bomb(b'"'), "400"),
    "anthropic: an error without an end": (500, JSON, b"", endless(b"a"), "500"),
    "anthropic: an encoding nobody asked for": (200, JSON, b"br", once(b"a" * 100), "'br'; gzip is what"),
    "anthropic: an encoding in an encoding": (200, JSON, b"gzip, gzip", once(b"a" * 100), "gzip is what was asked"),
    "anthropic: damaged gzip": (200, JSON, b"gzip", once(b"\x1f\x8b\x08garbage" * 20), "invalid gzip"),
    "anthropic: an answer of many values": (200, JSON, b"", once(b"[" + b"[]," * 500_000 + b"1]"), "JSON values"),
    "anthropic: an answer of deep lists": (200, JSON, b"", once(b"[" * 150_000), "unexpected form"),
    "anthropic: binary garbage": (200, JSON, b"", once(bytes(range(256)) * 4000), "unexpected form"),
    "anthropic: more blocks than are taken": (
        200,
        EVENTS,
        b"",
        once(START + b"".join(map(block, range(1, 5001)))),
        "more than 5,000 blocks",
    ),
    "openai: a line without an end": (200, EVENTS, b"", endless(b"a", b"data: "), "8,388,608 bytes"),
    "openai: lines without an event's end": (200, EVENTS, b"", endless(b"data: a\n"), "8,388,608 bytes"),
    "openai: endless comments": (200, EVENTS, b"", endless(b": ping\n\n"), "1,048,576 bytes"),
    "openai: an answer without an end": (200, JSON, b"", endless(b"a"), "67,108,864 bytes"),
    "openai: an error without an end": (500, JSON, b"", endless(b"a"), "500"),
    "openai: a packed stream that grows": (200, EVENTS, b"gzip", bomb(b"data: "), "bytes"),
    "openai: a packed answer that grows": (200, JSON, b"gzip", bomb(b'"'), "bytes"),
    "openai: an event of many values": (
        200,
        EVENTS,
        b"",
        once(b'data: {"x":[' + b"1," * 510_000 + b"1]}\n\n"),
        "500,000 JSON values",
    ),
    "openai: binary garbage": (200, JSON, b"", once(bytes(range(256)) * 4000), "invalid JSON"),
    "openai: an answer of deep lists": (200, JSON, b"", once(b"[" * 150_000), "invalid JSON"),
}


@asynccontextmanager
async def hostile(attack: Attack) -> AsyncIterator[str]:
    status, kind, encoding, pieces, _ = attack

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            head = b"HTTP/1.1 %d X\r\nContent-Type: %b\r\nConnection: close\r\n" % (status, kind)
            writer.write(head + (b"Content-Encoding: %b\r\n" % encoding if encoding else b"") + b"\r\n")
            for piece in pieces():
                if writer.is_closing():
                    break
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass  # the reader has had enough
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def model_at(provider: str, address: str, **more: Any) -> Model:
    if provider == "openai":
        from concertino_openai.client import OpenAIModel

        return OpenAIModel(server="vllm", model="m", base_url=f"{address}/v1", **more)
    from concertino_anthropic.client import AnthropicModel

    return AnthropicModel(model="claude-opus-5-5", base_url=address, key_env="")


@pytest.fixture(autouse=True)
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lower one where the largest body is millions of pieces, which take a while."""
    if "comments" in request.node.name:
        monkeypatch.setattr("concertino_anthropic.bounded_stream.REPLY_BYTES", MB)


async def outcome_of(name: str) -> str:
    async with hostile(ATTACKS[name]) as address:
        model = model_at(name.partition(":")[0], address, **({"max_reply_bytes": MB} if "comments" in name else {}))
        try:
            with pytest.raises(ProviderError) as caught:
                await model.chat(ChatRequest([Message("user", "hi")]))
        finally:
            await model.close()
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
async def test_a_body_that_means_harm_is_one_short_error(name: str) -> None:
    told = await outcome_of(name)
    assert ATTACKS[name][4] in told
    assert len(told) < 1000
    assert "\n" not in told


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ATTACKS if "grows" in name or "a line without" in name])
async def test_its_memory_is_that_of_the_limits(name: str) -> None:
    tracemalloc.start()
    try:
        await outcome_of(name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A whole answer is taken up to 64 MiB, and joined once; of all others only an event.
    most = 200 if "answer" in name else 60
    assert peak < most * MB


async def test_a_packed_answer_of_ordinary_size_is_read() -> None:
    message: dict[str, Any] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    attack: Attack = (200, JSON, b"gzip", once(gzip.compress(json.dumps(message).encode())), "")
    async with hostile(attack) as address:
        model = model_at("anthropic", address)
        reply = await model.chat(ChatRequest([Message("user", "hi")]))
        await model.close()
    assert reply.text == "Hello"
