"""Calls that stand in the text: arguments as they were written, and a broken call is a call all the same."""

from __future__ import annotations

import json

import pytest
from concertino.text import read_tool_call
from concertino_openai.chat.tool_text import call_in_error, read_calls
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("block", "name", "arguments"),
    [
        ('{"name": "add", "arguments": {"a": 2}}', "add", '{"a": 2}'),
        ('{"arguments": {"a": 2}, "name": "add"}', "add", '{"a": 2}'),
        ('  {"name":"add","parameters":{"a":2}}\n', "add", '{"a":2}'),
        ('{"name": "now"}', "now", "{}"),
        ('{"name": "now", "arguments": null}', "now", "{}"),
        ('{"name": "add", "arguments": [6, 7]}', "add", "[6, 7]"),
        ('{"name": "add", "arguments": "{\\"a\\": 2}"}', "add", '"{\\"a\\": 2}"'),
        # as written: nothing is read and written again
        ('{"name": "add", "arguments": {"a": 1, "a": 2}}', "add", '{"a": 1, "a": 2}'),
        ('{"name": "add", "arguments": {"a": 1e999}}', "add", '{"a": 1e999}'),
        ('{"name": "s\\u0061y", "arguments": {"t": "\\u00fc"}}', "say", '{"t": "\\u00fc"}'),
        # broken
        ('{"name": "add", "arguments": {"a": 2, "b": ', "add", '{"a": 2, "b":'),
        ('{"name": "add", "arguments": {"a": 2, "b": }}', "add", '{"a": 2, "b": }'),
        ('{"name": "add", "arguments": ', "add", '{"name": "add", "arguments":'),
        ('{"name": "add", "arguments": {"a": "un', "add", '{"a": "un'),
        ('{"name": "add", "arguments"', "add", '{"name": "add", "arguments"'),
        ("{'name': 'add', 'arguments': {'a': 2}}", "add", "{'a': 2}"),
        ('{"name": add, "arguments": {}}', "?", '{"name": add, "arguments": {}}'),
        ('{"name": 5}', "?", '{"name": 5}'),
        ("add(2, 3)", "?", "add(2, 3)"),
        ("", "?", ""),
    ],
)
def test_a_block_is_a_call(block: str, name: str, arguments: str) -> None:
    call = read_tool_call(block)
    assert (call.name, call.arguments) == (name, arguments)


def test_text_around_calls_stays_text() -> None:
    text = '<tool_call>{"name": "a"}</tool_call>\nand\n<tool_call>{"name": "b"}<tool_call>{"name": "c"}'
    calls, rest = read_calls(text)
    assert [call.name for call in calls] == ["a", "b", "c"]
    assert rest == "and"


def test_a_tag_that_is_only_mentioned_is_text() -> None:
    assert read_calls(" <tool_call> opens a call") == ([], " <tool_call> opens a call")


@given(st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=9), st.lists(st.booleans()))))
def test_valid_arguments_are_taken_out_to_the_letter(arguments: dict[str, object]) -> None:
    written = json.dumps(arguments, indent=1)
    assert read_tool_call(f'{{"name": "f", "arguments": {written}, "more": 1}}').arguments == (written or "{}")


@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    calls, rest = read_calls(f"<tool_call>{text}")
    assert calls or rest


def test_a_call_is_found_in_the_error_that_quotes_it() -> None:
    call = call_in_error("""could not parse region as JSON.\nContent: '{"name": "add", "arguments": {"a":'\nError: x""")
    assert call is not None
    assert (call.name, call.arguments) == ("add", '{"a":')


@pytest.mark.parametrize("text", ["CUDA out of memory", "", "internal error"])
def test_an_error_about_something_else_is_no_call(text: str) -> None:
    assert call_in_error(text) is None


@pytest.mark.parametrize("block", ['{"name": "add", "argum', '{"name": "add", "arguments": ', '{"name": "add"'])
def test_a_call_that_is_cut_off_before_its_arguments_is_not_one_without_arguments(block: str) -> None:
    call = read_tool_call(block)
    assert (call.name, call.arguments) == ("add", block.strip())


@pytest.mark.parametrize(
    "block", ['{"name": "now", "arguments": ""}', '{"name": "now", "arguments": null}', '{"name": "now"}']
)
def test_a_whole_call_without_arguments_has_an_empty_object(block: str) -> None:
    call = read_tool_call(block)
    assert (call.name, call.arguments) == ("now", "{}")
