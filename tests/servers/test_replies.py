"""Every exchange of the script, asked of every server over plain HTTP, whole and streamed.

The model writes the same text everywhere. What a client hears of it differs by the server's own parser, and the
tables here say how: `MISHEARD` holds each answer that is not simply the text, its calls and its thought.
"""

from __future__ import annotations

import json
import re

import pytest
import script
from heard import Heard, heard
from launch import Server
from record import payload, post
from script import Exchange

pytestmark = pytest.mark.server

EACH = pytest.mark.parametrize("exchange", script.SCRIPT, ids=lambda exchange: exchange.name)
BOTH_MODES = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])

_CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)
_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)


def ask(server: Server, exchange: Exchange, stream: bool) -> Heard:
    return heard(post(server.base_url, payload(exchange, stream=stream)))


def calls_in(text: str, dump: bool = True) -> tuple[tuple[str, str], ...]:
    """Calls as a parser of Hermes' form reads them; without `dump`, with the arguments as they stand."""
    found = []
    for block in _CALL.findall(text):
        call = json.loads(block)
        as_written = block.partition('"arguments": ')[2].removesuffix("}")
        found.append((call["name"], json.dumps(call["arguments"]) if dump else as_written))
    return tuple(found)


def assert_heard(got: Heard, expected: Heard, exchange: Exchange) -> None:
    """An endless reply is cut after some tokens: what came is its beginning, and not a short one."""
    if exchange.endless:
        assert len(got.text) > 100
        expected = expected._replace(text=(script.LOOP * 100).lstrip()[: len(got.text)])
    assert got == expected


def finish_of(exchange: Exchange, calls: bool) -> str:
    return "length" if exchange.endless else "tool_calls" if calls else "stop"


# -- llama.cpp: everything is text ---------------------------------------------------------------------------------


@EACH
@BOTH_MODES
def test_llama_cpp_sends_the_text_as_it_is(llama_server: Server, exchange: Exchange, stream: bool) -> None:
    expected = Heard(exchange.reply, finish=finish_of(exchange, False))
    assert_heard(ask(llama_server, exchange, stream), expected, exchange)


# -- transformers: calls and thoughts are parsed, whether tools were sent or not -------------------------------------

_NO_JSON = (
    '{"error": "json parser could not parse region as JSON.\n'
    'Content: \'\\n{"name": "add", "arguments": {"a": 2, "b": \\n\'\n'
    'Error: Expecting value: line 3 column 1 (char 45)"}'
)
"""Not JSON itself: the error stands in the event with its line breaks."""

TRANSFORMERS_MISHEARD = {
    ("broken", False): Heard(error="500 Internal Server Error"),
    ("broken", True): Heard(error=_NO_JSON),
    ("no-arguments", False): Heard(error="500 Internal Server Error"),
    ("no-arguments", True): Heard(error='{"error": "\'arguments\'"}'),
}


@EACH
@BOTH_MODES
def test_transformers_takes_calls_and_thoughts_apart(
    transformers_server: Server, exchange: Exchange, stream: bool
) -> None:
    expected = TRANSFORMERS_MISHEARD.get((exchange.name, stream))
    if expected is None:
        text = exchange.reply
        thought = "".join(_THOUGHT.findall(text))
        rest = _CALL.sub("", _THOUGHT.sub("", text))
        if not stream:  # the streamed pieces keep their white space
            thought, rest = thought.strip(), rest.strip()
        elif calls_in(text):  # ... but for that around a call
            rest = rest.strip()
        calls = calls_in(text)
        expected = Heard(rest, calls, finish_of(exchange, bool(calls)), thought)
    assert_heard(ask(transformers_server, exchange, stream), expected, exchange)


# -- vLLM: calls are parsed where tools were sent, thoughts only with a reasoning parser ------------------------------

VLLM_MISHEARD = {
    ("broken", False): Heard(script.exchange("broken").reply, finish="stop"),
    ("broken", True): Heard(calls=(("add", '{"a": 2, "b":'),), finish="tool_calls"),
    ("no-arguments", False): Heard(script.exchange("no-arguments").reply, finish="stop"),
    ("no-arguments", True): Heard(calls=(("now", ""),), finish="tool_calls"),
}


@EACH
@BOTH_MODES
def test_vllm_takes_calls_out_of_the_text(vllm_server: Server, exchange: Exchange, stream: bool) -> None:
    expected = VLLM_MISHEARD.get((exchange.name, stream))
    if expected is None:
        text = exchange.reply
        calls = calls_in(text, dump=not stream)
        if not stream:  # arguments are read and written again, without escapes
            calls = tuple((name, json.dumps(json.loads(raw), ensure_ascii=False)) for name, raw in calls)
        expected = Heard(text.partition("<tool_call>")[0], calls, finish_of(exchange, bool(calls)))
    assert_heard(ask(vllm_server, exchange, stream), expected, exchange)
