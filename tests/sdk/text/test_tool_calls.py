"""Calls in the text of a model: every dialect reads back what it writes, and no text is too hostile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from concertino.text import DIALECTS, NAMELESS, read_json, read_tool_call, read_tool_calls, write_tool_call
from hypothesis import given
from hypothesis import strategies as st
from linear import assert_linear

RECORDED = Path(os.environ.get("CONCERTINO_TEST_DATA", "shared/data")) / "vllm_tool_parsers" / "cases.jsonl"
READ_OTHERWISE = ("llama3/missing_parameters", "pythonic/broken_quote_sibling")
"""A call without arguments is one here; a list that is not Python is not guessed at."""
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
IN_TAGS = ("qwen-coder", "glm")


def schema_of(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool that takes these arguments: values without quotes are read by their types."""
    types = {key: {"type": "string"} if isinstance(value, str) else {} for key, value in arguments.items()}
    return [{"name": "do_it", "parameters": {"properties": types}}]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(arguments=st.dictionaries(keys, values, max_size=3))
def test_what_a_dialect_writes_it_reads_back(dialect: str, arguments: dict[str, Any]) -> None:
    if dialect in IN_TAGS or dialect == "pythonic":  # these write texts without escapes, or Python's own keywords
        arguments = {f"{key}_": value for key, value in arguments.items() if "<" not in json.dumps(value)}
    written = write_tool_call("do_it", arguments, dialect)
    found = read_tool_calls(written, dialect, tools=schema_of(arguments))
    [call] = found.calls
    assert (call.name, call.error, call.closed) == ("do_it", "", True)
    assert json.loads(call.arguments) == arguments
    assert not "".join(found.outside).strip()


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name not in ("llama", "pythonic")])
def test_calls_and_the_text_around_them_come_in_order(dialect: str) -> None:
    one, two = (write_tool_call(name, {"a": name}, dialect) for name in ("one", "two"))
    found = read_tool_calls(f"First. {one} Then. {two}", dialect)
    assert [call.name for call in found.calls] == ["one", "two"]
    assert [part.strip() for part in found.outside] == ["First.", "Then."]
    assert not found.unclosed


@given(dialect=st.sampled_from(sorted(DIALECTS)), text=st.text(max_size=80))
def test_any_text_can_be_read(dialect: str, text: str) -> None:
    for whole in (text, f"<tool_call>{text}", f"[TOOL_CALLS]{text}", f'{{"name": {text}', f"[{text}()]"):
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
    ("dialect", "text", "calls"),
    [
        ("llama", 'So: {"name": "a", "parameters": {}}; {"name": "b"} and {x}.', [("a", "{}"), ("b", "{}")]),
        ("llama", '<|python_tag|>{"name": "a", "parameters": {"x": 1}}', [("a", '{"x": 1}')]),
        ("mistral", '[TOOL_CALLS][{"name": "a", "arguments": {}}, {"name": "b"}]', [("a", "{}"), ("b", "{}")]),
        ("mistral", '[TOOL_CALLS]a[ARGS]{"x": 1}[TOOL_CALLS]b{}', [("a", '{"x": 1}'), ("b", "{}")]),
        ("pythonic", "[a(x=1), b()]", [("a", '{"x": 1}'), ("b", "{}")]),
        ("pythonic", "[1, 2]", []),
        ("glm", "<tool_call>a\n<arg_key>x</arg_key>\n<arg_value>1</arg_value>\n</tool_call>", [("a", '{"x": 1}')]),
        (
            "deepseek",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a\n"
            '```json\n{"x": 1}\n```<｜tool▁call▁end｜>',
            [("a", '{"x": 1}')],
        ),
        (
            "harmony",
            "<|start|>assistant to=functions.now<|channel|>commentary<|message|>{}<|call|>",
            [("now", "{}")],
        ),
    ],
)
def test_the_forms_of_a_dialect_are_read(dialect: str, text: str, calls: list[tuple[str, str]]) -> None:
    assert [(call.name, call.arguments) for call in read_tool_calls(text, dialect).calls] == calls


HOSTILE = [
    "<tool_call>",
    "<tool_call>{",
    '{"name": ',
    '{"a":',
    "{",
    '{"a": "',
    "[TOOL_CALLS]",
    "[TOOL_CALLS][",
    "[TOOL_CALLS]{",
    "<function=",
    "<parameter=a>",
    "<parameter=",
    "<arg_key>",
    "<arg_key>a</arg_key><arg_value>",
    "to=functions.",
    "<|channel|>",
    "<|message|>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "[a(",
    '"name"  ',
    "\n",
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_time_that_grows_with_its_length(dialect: str, piece: str) -> None:
    text = piece * (100_000 // len(piece))
    for whole in (text, f"<tool_call><function=f>{text}", f"<tool_call>{text}</tool_call>"):
        assert_linear(lambda whole=whole: read_tool_calls(whole, dialect), len(whole))


@pytest.mark.skipif(not RECORDED.exists(), reason=f"no recorded texts at {RECORDED}; set CONCERTINO_TEST_DATA")
@pytest.mark.parametrize("name", ["hermes", "llama3_json", "pythonic"])
def test_recorded_texts_are_read_as_the_parser_of_their_format_reads_them(name: str) -> None:
    cases = [case for case in map(json.loads, RECORDED.read_text().splitlines()) if case["format"] == name]
    assert cases
    for case in cases:
        if case["id"] not in READ_OTHERWISE:
            found = read_tool_calls(case["text"], name.removesuffix("3_json"))
            whole = [(call.name, read_json(call.arguments).value) for call in found.calls if not call.error]
            assert whole == [(call["name"], call["arguments"]) for call in case["calls"]], case["id"]


def test_the_body_of_a_call_is_read_without_its_marks() -> None:
    assert read_tool_call(' {"name": "add", "parameters": {"a": 2}} ')[:2] == ("add", '{"a": 2}')


def test_an_unknown_dialect_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="dialect='klingon'; expected one of hermes, qwen-coder, "):
        read_tool_calls("", "klingon")
