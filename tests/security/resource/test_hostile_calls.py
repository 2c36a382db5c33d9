"""Streamed tool calls of a server that means harm: linear in time, bounded in number, the loop never held up."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from concertino import ChatRequest, FailureClass, Message, ProviderError, Reply
from concertino.text import JSON_VALUES, TooManyValues, read_stranger_json
from concertino_openai.chat.accumulator import ReplyAccumulator
from concertino_openai.chat.json_end import JsonEnd
from concertino_openai.chat.stream import StreamDecoder, read_plain
from concertino_openai.chat.tool_calls import CALLS, CallFragments, TooManyCalls
from concertino_openai.client import OpenAIModel
from concertino_openai.options import OpenAISettings

SETTINGS = OpenAISettings.of({"server": "vllm", "model": "m"}, "test")
TOOL = {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def fold() -> ReplyAccumulator:
    return ReplyAccumulator(SETTINGS.dialect, True, SETTINGS.endpoint)


def event(delta: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


def fragment(**fields: Any) -> bytes:
    return event({"tool_calls": [fields]})


def decode(pieces: Iterable[bytes]) -> Reply:
    accumulator = fold()
    decoder = StreamDecoder(accumulator, SETTINGS, tools=True)
    for piece in pieces:
        decoder.feed(piece)
    decoder.feed(FINISH)
    decoder.finish()
    return accumulator.reply(ChatRequest([Message("user", "x")], tools=[TOOL]), len)[1]


def seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


LINEAR: dict[str, Callable[[int], bytes]] = {
    "fragments of one index": lambda n: fragment(index=0, function={"arguments": "a"}),
    "fragments without index and id": lambda n: fragment(function={"arguments": "a"}),
    "fragments of one id": lambda n: fragment(id="c", function={"arguments": "a"}),
    "the name with each fragment of an endless list": lambda n: fragment(function={"name": "f", "arguments": "[1,"}),
    "the name with each fragment of an endless text": lambda n: fragment(
        function={"name": "f", "arguments": '"a'[n > 0 :]}
    ),
    "the name with each fragment of an endless word": lambda n: fragment(function={"name": "f", "arguments": "-"}),
    "the name with each empty fragment": lambda n: fragment(function={"name": "f", "arguments": ""}),
    "thoughts of one index": lambda n: event({"reasoning_details": [{"index": 0, "type": "t", "text": "a" * 20}]}),
    "blank text, which may come before a call": lambda n: event({"content": " "}),
    "half a tag again and again": lambda n: event({"content": "<tool_ca"}),
    "lines of text": lambda n: event({"content": "a\n"}),
}


@pytest.mark.parametrize("shape", LINEAR)
def test_eight_times_as_many_pieces_take_about_eight_times_as_long(shape: str) -> None:
    few, many = ([LINEAR[shape](number) for number in range(count)] for count in (2_000, 16_000))
    # A quadratic fold takes 64 times as long. The best of a few tries: others work on the machine, too.
    for _ in range(4):
        ratio = seconds(lambda: decode(many)) / seconds(lambda: decode(few))
        if ratio < 24:
            return
    raise AssertionError(f"{ratio:.0f} times as long")


BEGINNINGS: dict[str, Callable[[int], dict[str, Any]]] = {
    "an index each": lambda n: {"index": n, "function": {"name": "f", "arguments": "{}"}},
    "an id each": lambda n: {"id": str(n), "function": {"name": "f", "arguments": "{}"}},
    "index 0 and another name": lambda n: {"index": 0, "function": {"name": f"f{n}", "arguments": "{}"}},
    "index 0 and another id": lambda n: {"index": 0, "id": str(n), "function": {"name": "f", "arguments": "{}"}},
    "the name again after whole arguments": lambda n: {"function": {"name": "f", "arguments": "{}"}},
    "an index that is no number": lambda n: {"index": f"x{n}", "function": {"name": "f"}},
    "an index that equals nothing": lambda n: {"index": float("nan"), "function": {"name": "f"}},
    "a negative index": lambda n: {"index": -n - 1, "function": {}},
    "an index of a hundred digits": lambda n: {"index": 10**100 + n, "function": {}},
}


@pytest.mark.parametrize("shape", BEGINNINGS)
def test_more_calls_than_are_taken_end_the_reply(shape: str) -> None:
    begin = BEGINNINGS[shape]
    fragments = CallFragments("e")
    fragments.feed([begin(number) for number in range(CALLS)])
    assert len(fragments.calls()) == CALLS
    with pytest.raises(TooManyCalls, match="more than 5,000 calls"):
        fragments.feed([begin(CALLS)])


def test_the_error_is_one_sentence_and_is_not_retried() -> None:
    pieces = (fragment(index=number, function={"name": "f"}) for number in range(CALLS + 1))
    with pytest.raises(ProviderError, match=r"^\S+ sent a reply with more than 5,000 calls$") as caught:
        decode(pieces)
    assert caught.value.failure is FailureClass.CUT_OFF


def test_more_fragments_than_are_taken_end_the_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concertino_openai.chat.tool_calls.PIECES", 1000)
    with pytest.raises(ProviderError, match="calls in more than 1,000 fragments"):
        decode(fragment(index=0, function={"arguments": "a"}) for _ in range(1001))


@pytest.mark.parametrize("index", [{}, [], {"a": 1}])
def test_an_index_of_a_strange_type_is_an_unexpected_form(index: Any) -> None:
    with pytest.raises(ProviderError, match="unexpected form"):
        decode([fragment(index=index, function={"name": "f"})])


VALUES = {
    "empty lists": "[" + "[]," * JSON_VALUES + "1]",
    "empty objects": "[" + "{}," * JSON_VALUES + "1]",
    "numbers": "[" + "1," * JSON_VALUES + "1]",
    "pairs": "{" + '"a":1,' * JSON_VALUES + '"a":1}',
    "open lists": "[" * (JSON_VALUES + 1),
}


@pytest.mark.parametrize("shape", VALUES)
def test_more_values_than_are_read_are_refused_before_they_are_read(shape: str) -> None:
    with pytest.raises(TooManyValues, match="more than 500,000 JSON values"):
        read_stranger_json(VALUES[shape])
    with pytest.raises(ProviderError, match="JSON values"):
        read_plain(VALUES[shape].encode(), fold(), SETTINGS)


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, null, "x"], "é": {"b": true}}', "[" + '{"a": 1},' * 60_000 + "1]"])
@pytest.mark.parametrize("kind", [str, str.encode])
def test_the_patient_reader_reads_as_the_quick_one(text: str, kind: Callable[[str], Any]) -> None:
    assert read_stranger_json(kind(text)) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nul", "\x00", '{"a":1}}', "[" * 200_000, '{"a":' * 120_000])
def test_what_is_not_json_is_an_error_of_the_usual_kind(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        read_stranger_json(text)


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"a":', "1}", " "],
        ['{"a":"}', '"}', "x"],
        ["[", "]", "\n", "]"],
        ['"', '\\"', '"'],
        ["12", "3", " "],
        ["tru", "e", "e"],
        [" ", "\t{", "}"],
        ['{"\\', '"":{', "}}"],
        ["}", "{}"],
        ["NaN"],
        ["", "-", "1", ".", "5"],
    ],
)
def test_completeness_of_pieces_is_that_of_their_text(pieces: list[str]) -> None:
    end, text = JsonEnd(), ""
    for piece in pieces:
        end.feed(piece)
        text += piece
        try:
            json.loads(text)
            whole = True
        except ValueError:
            whole = False
        assert end.complete is whole, text


# -- the event loop ----------------------------------------------------------------------------------------------------

BODIES: dict[str, tuple[bytes, bytes]] = {
    "fragments in one answer": (
        b"application/json",
        b'{"choices":[{"index":0,"message":{"tool_calls":['
        + b",".join([b'{"index":0,"function":{"arguments":" "}}'] * 60_000)
        + b"]}}]}",
    ),
    "fragments in one event": (
        b"text/event-stream",
        event({"tool_calls": [{"index": 0, "function": {"arguments": " "}}] * 60_000}) + FINISH,
    ),
    "events": (b"text/event-stream", fragment(index=0, function={"arguments": "a"}) * 40_000 + FINISH),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",  # the longest only in the soak: its like is "events"
    [pytest.param(shape, marks=[pytest.mark.soak] if shape == "fragments in one event" else []) for shape in BODIES],
)
async def test_the_loop_gets_its_turns_while_a_large_reply_is_read(shape: str) -> None:
    kind, body = BODIES[shape]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nConnection: close\r\n\r\n" % kind)
        for place in range(0, len(body), 1 << 16):
            writer.write(body[place : place + (1 << 16)])
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    model = OpenAIModel(server="vllm", model="m", base_url=f"http://127.0.0.1:{port}/v1")
    waited, done = [], asyncio.Event()

    async def beat() -> None:
        while not done.is_set():
            worked = time.process_time()
            await asyncio.sleep(0.001)
            waited.append(time.process_time() - worked)

    gc.collect()
    gc.freeze()  # the collector would walk through what tests before this one have left, in one beat
    beating = asyncio.create_task(beat())
    spent = time.process_time()
    reply = await model.chat(ChatRequest([Message("user", "hi")], tools=[TOOL]))
    spent = time.process_time() - spent
    gc.unfreeze()
    done.set()
    await beating
    await model.close()
    server.close()
    assert len(reply.tool_calls) == 1
    # CPU time of the process between two beats, since others may have the processor. Read at once, it would be `spent`.
    assert max(waited) < max(0.1, spent / 3)
