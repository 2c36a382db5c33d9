"""Reply formats: the same reasoning, calls and text, however the reply is cut into pieces."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from concertino import ToolCall
from concertino.text import read_tool_call
from concertino_local.codec.dialects import (
    HarmonyReader,
    HermesReader,
    LlamaReader,
    ReplyReader,
    guess_format,
)
from hypothesis import given
from hypothesis import strategies as st
from local_models import ADD_TOOL

TOOLS = [ADD_TOOL]
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call>'
ADD = ToolCall("add", '{"a": 2, "b": 3}')


def read_call(body: str, tools: Sequence[Mapping[str, Any]] = ()) -> ToolCall:
    call = read_tool_call(body, "hermes", tools)
    return ToolCall(call.name, call.arguments)


def read(reader: ReplyReader, *pieces: str) -> tuple[str, str, list[ToolCall]]:
    text = "".join([*(reader.feed(piece) for piece in pieces), reader.finish()])
    return text, reader.reasoning, reader.calls


@pytest.mark.parametrize(
    ("raw", "text", "reasoning", "calls"),
    [
        ("plain text\n", "plain text\n", "", []),
        ("\n  indented", "\n  indented", "", []),
        ("<think>\nhm\n</think>\n\nfive", "five", "hm", []),
        ("<think>cut off", "", "cut off", []),
        ("<think>a</think>x<think>b</think>", "x", "a\nb", []),
        (f"Both.\n{CALL}\n{CALL}", "Both.", "", [ADD, ADD]),
        (f"<think>t</think>\n{CALL}\nDone.", "Done.", "t", [ADD]),
        ("The mark is \n<tool_call> and", "The mark is \n<tool_call> and", "", []),
        (f'<tool_call>{{"name": "add"\n{CALL}', "", "", [ToolCall("add", '{"name": "add"'), ADD]),
        ('<tool_call>{"name": "add", "arguments": {"a": 2, "b":', "", "", [ToolCall("add", '{"a": 2, "b":')]),
        ("a <b> and <too", "a <b> and <too", "", []),
    ],
)
def test_a_hermes_reply_is_read(raw: str, text: str, reasoning: str, calls: list[ToolCall]) -> None:
    assert read(HermesReader(TOOLS), raw) == (text, reasoning, calls)
    assert read(HermesReader(TOOLS), *raw) == (text, reasoning, calls)


MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>", CALL, " ", "\n", "a", "<", "{", '"name": "x"']
HARMONY = [
    "<|start|>",
    "<|channel|>",
    "<|message|>",
    "<|end|>",
    "assistant",
    "final",
    "analysis",
    "to=functions.f",
    " ",
]


@given(st.lists(st.sampled_from(MARKS), max_size=12), st.booleans(), st.booleans())
def test_a_hermes_reply_reads_alike_at_once_and_sign_by_sign(parts: list[str], tools: bool, thinking: bool) -> None:
    raw, given_tools = "".join(parts), TOOLS if tools else []
    whole = read(HermesReader(given_tools, thinking=thinking), raw)
    assert read(HermesReader(given_tools, thinking=thinking), *raw) == whole
    assert read(HermesReader(given_tools, thinking=thinking), *parts) == whole


@given(st.lists(st.sampled_from(HARMONY), max_size=12), st.booleans())
def test_a_harmony_reply_reads_alike_at_once_and_sign_by_sign(parts: list[str], tools: bool) -> None:
    raw, given_tools = "".join(parts), TOOLS if tools else []
    assert read(HarmonyReader(given_tools), *raw) == read(HarmonyReader(given_tools), raw)


def test_calls_stay_in_the_text_where_no_tools_were_offered() -> None:
    assert read(HermesReader(), f"Now {CALL}") == (f"Now {CALL}", "", [])
    assert read(LlamaReader(), '{"name": "add", "parameters": {}}') == ('{"name": "add", "parameters": {}}', "", [])


def test_a_prompt_that_has_opened_the_reasoning_is_continued() -> None:
    assert read(HermesReader(thinking=True), "so it is\n</think>\n\nfive") == ("five", "so it is", [])


@pytest.mark.parametrize(
    ("body", "call"),
    [
        ('{"name": "add", "arguments": {"a": 1}}', ToolCall("add", '{"a": 1}')),
        ('{"name":"add","arguments":{"a":1,"b":{"c":[1, 2]}}}', ToolCall("add", '{"a":1,"b":{"c":[1, 2]}}')),
        ('{"name": "add"}', ToolCall("add", "{}")),
        ('{"name": "add", "arguments": ""}', ToolCall("add", "{}")),
        ('{"name": "add", "arguments": null}', ToolCall("add", "{}")),
        ('{"name": "add", "arguments": 511}', ToolCall("add", "511")),
        ('{"name": "add", "parameters": {"a": 1}}', ToolCall("add", '{"a": 1}')),
        ('{"arguments": {"name": "x"}, "name": "add"}', ToolCall("add", '{"name": "x"}')),
        ('{"name": "add", "arguments": {"a": 2, "b": ', ToolCall("add", '{"a": 2, "b":')),
        ('{"name": "add", "arguments": {"a": 2, "b": }}', ToolCall("add", '{"a": 2, "b": }')),
        ('{"name": "add", "arguments": {"a": 2}', ToolCall("add", '{"a": 2}')),
        ('{"name": "add", "argum', ToolCall("add", '{"name": "add", "argum')),
        ('{"name": "gr\\u00fc\\u00dfe", "arguments": {', ToolCall("grüße", "{")),
        ("add(2, 3)", ToolCall("?", "add(2, 3)")),
        ('["add"]', ToolCall("?", '["add"]')),
        ('{"name": 3}', ToolCall("?", '{"name": 3}')),
        ('{"name": "add", "arguments": ', ToolCall("add", '{"name": "add", "arguments":')),
        ("", ToolCall("?", "")),
    ],
)
def test_a_call_keeps_its_arguments_as_they_were_written(body: str, call: ToolCall) -> None:
    assert read_call(f"\n{body}\n") == call


def test_arguments_in_tags_get_the_types_of_the_tool() -> None:
    body = "<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>\nthree\n</parameter>\n</function>"
    assert read_call(body, TOOLS) == ToolCall("add", '{"a": 2, "b": "three"}')
    text_tool = {"name": "say", "parameters": {"properties": {"text": {"type": "string"}}}}
    said = read_call("<function=say><parameter=text>12</parameter></function>", [text_tool])
    assert json.loads(str(said.arguments)) == {"text": "12"}
    assert read_call("<function=now>\n</function>") == ToolCall("now", "{}")
    assert read_call("<function=add><parameter=a>2") == ToolCall("add", "<parameter=a>2")


@pytest.mark.parametrize(
    ("raw", "text", "reasoning", "calls"),
    [
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>five",
            "five",
            "hm",
            [],
        ),
        (
            '<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a": 2}',
            "",
            "",
            [ToolCall("add", '{"a": 2}')],
        ),
        ("<|start|>assistant to=now<|channel|>commentary<|message|><|call|>", "", "", [ToolCall("now", "{}")]),
        ("<|channel|>commentary<|message|>Let me see.<|end|><|channel|>final<|message|>5", "Let me see.\n5", "", []),
        ("no channel at all", "no channel at all", "", []),
        ("<|channel|>analysis<|message|>cut", "", "cut", []),
    ],
)
def test_a_harmony_reply_is_read(raw: str, text: str, reasoning: str, calls: list[ToolCall]) -> None:
    assert read(HarmonyReader(TOOLS), raw) == (text, reasoning, calls)


@pytest.mark.parametrize(
    ("raw", "text", "calls"),
    [
        ('{"name": "add", "parameters": {"a": 2, "b": 3}}', "", [ADD]),
        ('<|python_tag|>{"name": "add", "parameters": {"a": 2, "b": 3}}', "", [ADD]),
        ('{"name": "add", "parameters": {}}; {"name": "now"}', "", [ToolCall("add", "{}"), ToolCall("now", "{}")]),
        ('{"name": "add", "parameters": {"a":', "", [ToolCall("add", '{"a":')]),
        ('{"colour": "blue"}', '{"colour": "blue"}', []),
        (" Hello", " Hello", []),
    ],
)
def test_a_llama_reply_is_read(raw: str, text: str, calls: list[ToolCall]) -> None:
    assert read(LlamaReader(TOOLS), raw) == (text, "", calls)
    assert read(LlamaReader(TOOLS), *raw) == (text, "", calls)


def test_the_format_is_told_by_the_chat_template() -> None:
    assert guess_format("{{ '<|start|>assistant<|channel|>' }}") == "harmony"
    assert guess_format("{{ '<tool_call>' }} <|python_tag|>") == "hermes"
    assert guess_format('{"name": f, "parameters": {}}') == "llama"
    assert guess_format("") == "hermes"
