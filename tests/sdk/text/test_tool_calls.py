"""Calls in the text of a model: every dialect reads back what it writes, and no text is too hostile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

import pytest
from concertino.text import NAMELESS, read_json, read_tool_call, read_tool_calls, write_tool_call
from hypothesis import given
from hypothesis import strategies as st
from linear import assert_linear
from tree import ROOT

Dialect = Literal["hermes", "llama"]
RECORDED = (
    Path(os.environ.get("CONCERTINO_TEST_DATA", ROOT.parent / "shared" / "data")) / "vllm_tool_parsers" / "cases.jsonl"
)
READ_OTHERWISE = ("llama3/missing_parameters",)
"""A call without arguments is one here."""
DIALECTS: tuple[Dialect, ...] = ("hermes", "llama")
CALL = '<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=20)
keys = st.from_regex("[a-z]{1,8}", fullmatch=True).filter(lambda key: f"{key}_".isidentifier())
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | texts
    | st.sampled_from(["<think>", "</tool_call>", "{"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


@given(arguments=st.dictionaries(keys, values, max_size=3))
def test_what_is_written_is_read_back(arguments: dict[str, Any]) -> None:
    found = read_tool_calls(write_tool_call("do_it", arguments))
    [call] = found.calls
    assert (call.name, call.error, call.closed) == ("do_it", "", True)
    assert json.loads(call.arguments) == arguments
    assert not "".join(found.outside).strip()


@given(arguments=st.dictionaries(keys, values, max_size=3))
def test_the_parameters_of_qwen_coder_are_read_by_their_types(arguments: dict[str, Any]) -> None:
    arguments = {key: value for key, value in arguments.items() if "<" not in json.dumps(value)}
    types = {key: {"type": "string"} if isinstance(value, str) else {} for key, value in arguments.items()}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    given = "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in texts.items())
    tools = [{"name": "do_it", "parameters": {"properties": types}}]
    [call] = read_tool_calls(f"<tool_call>\n<function=do_it>\n{given}</function>\n</tool_call>", tools=tools).calls
    assert (call.name, call.error, call.closed) == ("do_it", "", True)
    assert json.loads(call.arguments) == arguments


def test_calls_and_the_text_around_them_come_in_order() -> None:
    one, two = (write_tool_call(name, {"a": name}) for name in ("one", "two"))
    found = read_tool_calls(f"First. {one} Then. {two}")
    assert [call.name for call in found.calls] == ["one", "two"]
    assert [part.strip() for part in found.outside] == ["First.", "Then."]
    assert not found.unclosed


@given(dialect=st.sampled_from(DIALECTS), text=st.text(max_size=80))
def test_any_text_can_be_read(dialect: Dialect, text: str) -> None:
    for whole in (text, f"<tool_call>{text}", f'{{"name": {text}'):
        found = read_tool_calls(whole, dialect)
        spans = [(call.start, call.end) for call in found.calls]
        assert all(start <= end for start, end in spans)
        assert spans == sorted(spans)


@given(st.integers(0, 200))
def test_closed_calls_of_a_text_that_is_being_written_stay_as_they_are(cut: int) -> None:
    whole = f"A. {CALL} B. {CALL}{CALL}"
    final = read_tool_calls(whole).calls
    closed = [call for call in read_tool_calls(whole[:cut]).calls if call.closed]
    assert tuple(closed) == final[: len(closed)]


def test_a_call_that_is_cut_off_is_unclosed_and_says_so() -> None:
    found = read_tool_calls('<tool_call>{"name": "add", "arguments": {"a":')
    assert found.unclosed
    assert (found.calls[0].name, found.calls[0].arguments) == ("add", '{"a":')
    assert found.calls[0].error == "the call is not one complete JSON object"


def test_a_brace_too_many_is_an_error_and_stays_in_the_arguments() -> None:
    call = read_tool_call('{"name": "add", "arguments": {"a": 2}}}')
    assert (call.name, call.arguments, bool(call.error)) == ("add", '{"a": 2}}', True)


def test_one_broken_block_leaves_the_others_whole() -> None:
    found = read_tool_calls(f"{CALL}<tool_call>[1]</tool_call>{CALL}")
    assert [call.name for call in found.calls] == ["add", NAMELESS, "add"]
    assert [bool(call.error) for call in found.calls] == [False, True, False]


def test_a_mark_that_is_only_mentioned_is_text() -> None:
    found = read_tool_calls("The mark <tool_call> opens a call.")
    assert (found.calls, found.outside) == ((), ("The mark <tool_call> opens a call.",))


def test_calls_inside_thoughts_do_not_count_where_thoughts_are_named() -> None:
    text = f"<think>perhaps {CALL}</think>{CALL}"
    assert len(read_tool_calls(text).calls) == 2
    assert len(read_tool_calls(text, thoughts=("think",)).calls) == 1


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('So: {"name": "a", "parameters": {}}; {"name": "b"} and {x}.', [("a", "{}"), ("b", "{}")]),
        ('<|python_tag|>{"name": "a", "parameters": {"x": 1}}', [("a", '{"x": 1}')]),
    ],
)
def test_the_objects_of_llama_are_read(text: str, calls: list[tuple[str, str]]) -> None:
    assert [(call.name, call.arguments) for call in read_tool_calls(text, "llama").calls] == calls


HOSTILE = [
    "<tool_call>",
    "<tool_call>{",
    '{"name": ',
    '{"a":',
    "{",
    '{"a": "',
    "<function=",
    "<parameter=a>",
    "<parameter=",
    "to=functions.",
    "<|channel|>",
    "<|message|>",
    '"name"  ',
    "\n",
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_time_that_grows_with_its_length(dialect: Dialect, piece: str) -> None:
    text = piece * (100_000 // len(piece))
    for whole in (text, f"<tool_call><function=f>{text}", f"<tool_call>{text}</tool_call>"):
        assert_linear(lambda whole=whole: read_tool_calls(whole, dialect), len(whole))


@pytest.mark.skipif(not RECORDED.exists(), reason=f"no recorded texts at {RECORDED}; set CONCERTINO_TEST_DATA")
@pytest.mark.parametrize(("recorded", "dialect"), [("hermes", "hermes"), ("llama3_json", "llama")])
def test_recorded_texts_are_read_as_the_parser_of_their_format_reads_them(recorded: str, dialect: Dialect) -> None:
    cases = [case for case in map(json.loads, RECORDED.read_text().splitlines()) if case["format"] == recorded]
    assert cases
    for case in cases:
        if case["id"] not in READ_OTHERWISE:
            found = read_tool_calls(case["text"], dialect)
            whole = [(call.name, read_json(call.arguments).value) for call in found.calls if not call.error]
            assert whole == [(call["name"], call["arguments"]) for call in case["calls"]], case["id"]


def test_the_body_of_a_call_is_read_without_its_marks() -> None:
    assert read_tool_call(' {"name": "add", "parameters": {"a": 2}} ')[:2] == ("add", '{"a": 2}')


def test_the_body_of_a_harmony_call_has_its_name_in_the_header() -> None:
    assert read_tool_call("to=functions.now<|message|>{}", "harmony")[:2] == (
        "now",
        "{}",
    )
    assert read_tool_call("commentary", "harmony") == (NAMELESS, "{}", "the call ends before its arguments", 0, 0, True)
