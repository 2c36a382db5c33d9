"""Streams: every event of the documentation, cut anywhere, gives the reply that the plain answer gives."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
from aiohttp import web
from concertino import ProviderError, Reply, Thought, ToolCall
from concertino_anthropic.client import AnthropicModel
from concertino_anthropic.options import AnthropicSettings
from concertino_anthropic.reply import ReplyFold

from .asking import ADD, OPUS, asked, listen, request
from .stand_in import StandIn, Turn, call, events, serving, sse, stand_in, text, thinking

GREETING = "Grüße, 世界! 🎻\n\nVier\r\nZeilen\u2028eine."
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}
FULL = Turn(
    [
        thinking("Zuerst die Summe.\n\nDann das Produkt 🧮."),
        text(GREETING),
        REDACTED,
        call("add", {"a": 2, "b": 3, "name": "Ümit 🎻"}, "toolu_01"),
        thinking("Und noch eine."),
        call("add", {}, "toolu_02"),
    ],
    "tool_use",
)


async def ask_both(turn: Turn, seed: int | None) -> tuple[Reply, tuple[str, str, Reply]]:
    async with stand_in(turn) as one, stand_in(turn) as other:
        other.seed = seed
        async with asked(one, stream=False) as plain, asked(other) as streamed:
            whole = await plain.chat(request("?", tools=[ADD]))
            return whole, await listen(streamed, request("?", tools=[ADD]))


def alike(reply: Reply) -> Reply:
    """Without what names the server and the answer."""
    extra = {name: value for name, value in reply.extra.items() if name not in ("id", "request_id", "endpoint")}
    return Reply.from_json({**reply.to_json(), "extra": extra})


@pytest.mark.parametrize("seed", [None, *range(20)])
async def test_a_streamed_reply_equals_the_plain_one_however_it_is_cut(seed: int | None) -> None:
    whole, (thoughts, said, reply) = await ask_both(FULL, seed)
    assert alike(reply) == alike(whole)
    assert said == reply.text == GREETING
    assert thoughts == "Zuerst die Summe.\n\nDann das Produkt 🧮.Und noch eine."
    assert reply.reasoning == "Zuerst die Summe.\n\nDann das Produkt 🧮.\n\nUnd noch eine."
    assert [call.name for call in reply.tool_calls] == ["add", "add"]
    assert json.loads(str(reply.tool_calls[0].arguments)) == {"a": 2, "b": 3, "name": "Ümit 🎻"}
    assert reply.tool_calls[1] == ToolCall("add", "{}", "toolu_02")
    assert reply.finish_reason == "tool_calls"
    assert reply.usage.reasoning_tokens == 7 + 3 + 1
    assert reply.usage.output_tokens > reply.usage.reasoning_tokens


def fold_of(turn: Turn, seed: int) -> Reply:
    """The reply of a stream, without a server."""
    message = {
        "id": "msg_1",
        "model": OPUS,
        "content": [*turn.blocks],
        "stop_reason": turn.stop_reason,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {"input_tokens": 9, "output_tokens": 20, "output_tokens_details": {"thinking_tokens": 4}},
    }
    fold = ReplyFold(AnthropicSettings.of({"model": OPUS}, "test"), "prefix")
    shown = [fold.feed(json.loads(json.dumps(event))) for event in events(message, random.Random(seed))]
    reply = fold.reply(request("?"), len)
    assert "".join(piece for piece in shown if not isinstance(piece, Thought)) == reply.text
    return reply


@pytest.mark.slow
def test_ten_thousand_cuttings_of_a_stream_give_one_reply() -> None:
    first = fold_of(FULL, 0)
    assert all(fold_of(FULL, seed) == first for seed in range(1, 10_000))


async def test_events_that_are_newer_than_the_reader_change_nothing() -> None:
    message = {"id": "m", "model": OPUS, "content": [text("Hi")], "stop_reason": "end_turn", "stop_sequence": None}
    known = [*events({**message, "stop_details": None, "usage": {"output_tokens": 3, "output_tokens_details": {}}})]
    delta = {"type": "content_block_delta", "index": 1, "delta": {"type": "poem_delta", "poem": "Roses"}}
    block = {"type": "content_block_start", "index": 1, "content_block": {"type": "poem", "poem": ""}}
    strange: list[dict[str, Any]] = [{"type": "weather", "rain": True}, block, delta]
    said = b"".join(map(sse, [known[0], *strange, *known[1:]]))
    _, words, reply = await heard(said)
    assert (words, reply.text, reply.finish_reason) == ("Hi", "Hi", "stop")


async def heard(data: bytes, content_type: str = "text/event-stream", **options: Any) -> tuple[str, str, Reply]:
    """What a model gives whose server sends these bytes."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=data, headers={"Content-Type": content_type})

    async with serving(web.post("/v1/messages", answer)) as address:
        model = AnthropicModel(model=OPUS, base_url=address, key_env="", **options)
        try:
            return await listen(model, request("?", tools=[ADD]))
        finally:
            await model.close()


async def test_a_server_that_answers_a_stream_with_one_message_is_understood() -> None:
    usage = {"input_tokens": 5, "output_tokens": 2}
    message = {"id": "m", "model": OPUS, "content": [text("Hello")], "stop_reason": "end_turn", "usage": usage}
    _, said, reply = await heard(json.dumps(message).encode(), "application/json")
    assert (said, reply.text, reply.usage.input_tokens) == ("Hello", "Hello", 5)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
        ("a_newer_one", "a_newer_one"),
    ],
)
async def test_a_stop_reason_is_told_in_the_words_that_all_models_share(reason: str, expected: str) -> None:
    async with stand_in(Turn([text("Hi")], reason)) as server, asked(server) as model:
        assert (await model.chat(request("?"))).finish_reason == expected


async def test_a_call_that_the_length_cut_off_is_not_run_without_its_arguments() -> None:
    async with (
        stand_in(Turn([call("add", "")], "max_tokens"), Turn([call("add", '{"a": 2, "b"')], "max_tokens")) as server,
        asked(server) as model,
    ):
        (bare,) = (await model.chat(request("?", tools=[ADD]))).tool_calls
        (cut,) = (await model.chat(request("?", tools=[ADD]))).tool_calls
    assert bare.arguments == '{"name": "add", "arguments":'
    assert cut.arguments == '{"a": 2, "b"'


@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_that_is_declined_is_an_error_with_its_reason_and_its_price(stream: bool) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It may help an attack."}
    script = Turn([text("I'd")], "refusal", details), Turn([], "refusal")
    async with stand_in(*script) as server, asked(server, stream=stream) as model:
        with pytest.raises(ProviderError, match=r"declined the request \(cyber\): It may help") as raised:
            await model.chat(request("?"))
        with pytest.raises(ProviderError, match="it gave no explanation"):
            await model.chat(request("?"))
    assert raised.value.failure == "caller"
    assert raised.value.usage is not None
    assert raised.value.usage.input_tokens > 0


async def test_an_answer_without_a_word_is_an_answer() -> None:
    async with stand_in(Turn([])) as server, asked(server) as model:
        reply = await model.chat(request("?"))
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("", (), "stop")


async def test_text_is_told_while_the_server_still_writes() -> None:
    async with stand_in(Turn([text("a" * 400)])) as server, asked(server) as model:
        server.seed, server.pause = 3, 0.01
        pieces = model.stream(request("?"))
        first = await anext(pieces)
        assert isinstance(first, str)
        assert first in "a" * 12
        await pieces.aclose()


async def test_one_model_serves_one_loop_after_another() -> None:
    async with stand_in() as server:
        model = AnthropicModel(model=OPUS, base_url=server.address, key_env="ANTHROPIC_API_KEY")

        async def once() -> str:
            try:
                return (await model.chat(request("?"))).text
            finally:
                await model.close()

        texts = [await asyncio.to_thread(asyncio.run, once()) for _ in range(2)]
        assert texts == [texts[0]] * 2
        assert await once() == texts[0]


async def test_the_request_id_of_the_server_is_kept(server: StandIn) -> None:
    async with asked(server) as model:
        reply = await model.chat(request("?"))
    assert reply.extra["request_id"] == "req_0001"
    assert (reply.extra["id"], reply.extra["model"]) == ("msg_0001", OPUS)


@pytest.fixture
async def server() -> Any:
    async with stand_in() as server:
        yield server
