"""The text of one serial turn: what is read, what is repaired, what is refused, and with which words."""

import json
import os
from typing import Any

import concertino as ct
import pytest
from concertino.core.format_issue import FormatIssue
from concertino.strategies.serial_calls.format import CODES, LIMIT, read_turn, write_message, write_turn
from concertino.text import cut_blocks
from hypothesis import given, settings
from hypothesis import strategies as st
from linear import assert_linear

FULL = bool(os.environ.get("CONCERTINO_FUZZ"))
CALL = '<tool_call>\n{"name": "search", "arguments": {"model": "search-1"}}\n</tool_call>'
CHOICES = {"search": {"model": ("search-1", "search-2", "search-3")}}
TOOLS = {"search", "answer", "enhance_reasoning"}

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)


def safe(value: Any) -> bool:
    """NUL, backspace and form feed are refused in arguments on purpose."""
    text = json.dumps(value, ensure_ascii=False)
    return not any(bad in text for bad in ("\\b", "\\f", "\\u00", "\x7f"))


def read(text: str, *, finish: str = "stop", **options: Any) -> Any:
    return read_turn(ct.Reply(text, finish_reason=finish), **options)


@settings(max_examples=5_000 if FULL else 200, deadline=None)
@given(
    st.text(st.characters(codec="utf-8"), max_size=60).filter(lambda text: "</think>" not in text),
    st.from_regex("[a-z_]{1,12}", fullmatch=True),
    st.dictionaries(st.text("xyz", min_size=1, max_size=3), values.filter(safe), max_size=3),
    st.booleans(),
)
def test_what_the_writer_writes_the_reader_reads(
    thought: str, name: str, arguments: dict[str, Any], strict: bool
) -> None:
    turn = read(write_turn(thought, name, arguments), strict=strict)
    [call] = turn.calls
    assert (call.name, call.arguments, call.error) == (name, arguments, None)
    assert turn.thought == thought.strip()
    assert turn.issues == ()


def test_a_tag_inside_an_argument_is_text() -> None:
    arguments = {"task": "write <tool_call>{}</tool_call> and <think> and </answer>"}
    [call] = read(write_turn("Go.", "solve", arguments)).calls
    assert call.arguments == arguments


def test_a_message_is_written_and_read() -> None:
    turn = read(write_message("Ask.", "Which order do you mean?"))
    assert (turn.message, turn.thought, turn.calls, turn.issues) == ("Which order do you mean?", "Ask.", (), ())


def test_a_writer_refuses_what_would_end_the_block() -> None:
    with pytest.raises(ct.UsageError, match="</think>, which would end it"):
        write_turn("a </think> b", "f", {})
    with pytest.raises(ct.UsageError, match="</message>, which would end it"):
        write_message("", "a </message> b")


def block(inner: str) -> str:
    return f"<tool_call>{inner}</tool_call>"


SINGLE = "{'name': 'f', 'arguments': {}}"
NO_NAME = '{"nam": "f", "arguments": {}}'
NO_ARGUMENTS = '{"name": "f"}'
LIST = '{"name": "f", "arguments": [1]}'
MORE = '{"name": "f", "arguments": {}, "id": 3}'
MISSPELT = CALL.replace('"search"', '"serch"')
UNLISTED = CALL.replace("search-1", "search-9")
OPEN = CALL.removesuffix("</tool_call>")
ARGUED = f"<think>I could {CALL}"

ISSUES: list[tuple[str, str, str, bool, str]] = [
    ("no_call", "I would search first.", "I would search first.", False, "the text holds no call; write <tool_call>"),
    ("unclosed_think", ARGUED, ARGUED, False, "write </think>, then one call"),
    ("unclosed_call", OPEN, OPEN, True, "close the call"),
    ("unclosed_block", "<answer>42", "<answer>42", True, "</answer> is missing"),
    ("stray_tag", f"x</think>{CALL}", "</think>", True, "closes nothing; write <think> first"),
    ("bad_json", block('{"name": "f", "arguments": {"x": 1, "x": 2}}'), "", False, "x"),
    ("repaired_json", block(SINGLE), SINGLE, True, "strict JSON"),
    ("no_name", block(NO_NAME), NO_NAME, False, "'nam' is not it"),
    ("no_arguments", block(NO_ARGUMENTS), NO_ARGUMENTS, True, "write {} if there are none"),
    ("bad_arguments", block(LIST), LIST, False, "must be an object; got list"),
    ("extra_keys", block(MORE), MORE, True, "leave out 'id'"),
    ("unknown_tool", MISSPELT, MISSPELT, False, "did you mean 'search'?"),
    ("bad_choice", UNLISTED, UNLISTED, False, "not one of its choices; did you mean 'search-"),
    ("several_calls", f"{CALL} and {CALL}", CALL, False, "only the first runs"),
    ("message_and_call", f"<message>hi</message>{CALL}", "<message>hi</message>", True, "not both"),
]


@pytest.mark.parametrize(("code", "text", "span", "repaired", "words"), ISSUES, ids=[issue[0] for issue in ISSUES])
def test_a_flaw_has_a_code_a_place_and_a_next_step(code: str, text: str, span: str, repaired: bool, words: str) -> None:
    checked: dict[str, Any] = {"tools": TOOLS, "choices": CHOICES} if code in ("unknown_tool", "bad_choice") else {}
    turn = read(text, **checked)
    [issue] = [issue for issue in turn.issues if issue.code == code]
    assert issue.repaired is repaired
    assert words in issue.message
    assert 0 <= issue.start <= issue.end <= len(text)
    if span:
        assert text[issue.start : issue.end] == span


def test_a_call_cut_off_by_the_length_limit_is_never_completed() -> None:
    text = '<think>Go.</think><tool_call>{"name": "search", "arguments": {"model": "sea'
    turn = read(text, finish="length")
    [call] = turn.calls
    assert call.name == "search"
    assert call.error == ("bad_format", turn.issues[0].message)
    assert turn.issues[0].code == "cut_off"
    assert text[turn.issues[0].start :].startswith("<tool_call>")


def test_more_calls_than_are_read_are_counted() -> None:
    turn = read(CALL * (LIMIT + 3))
    assert len(turn.calls) == LIMIT
    [issue] = [issue for issue in turn.issues if issue.code == "too_many_calls"]
    assert f"{LIMIT + 3} calls" in issue.message


def test_every_code_is_shown_by_a_text() -> None:
    assert {issue[0] for issue in ISSUES} | {"cut_off", "too_many_calls"} == set(CODES)


@pytest.mark.parametrize(
    "text", [OPEN, block(SINGLE), block(NO_ARGUMENTS), block(MORE), f"{CALL}</think>", f"<message>hi</message>{CALL}"]
)
def test_strict_reading_refuses_what_lenient_reading_repairs(text: str) -> None:
    assert [call.error for call in read(text).calls] == [None]
    [call] = read(text, strict=True).calls
    assert call.error is not None


def test_calls_inside_the_thought_are_not_calls() -> None:
    assert len(read(f"<think>maybe {CALL}</think>{CALL}").calls) == 1


def test_one_unreadable_call_does_not_take_its_siblings_along() -> None:
    turn = read(f'<tool_call>{{"name": "sum", "arguments": {{</tool_call>{CALL}')
    assert [(call.name, call.error is None) for call in turn.calls] == [("sum", False), ("search", True)]


def test_native_calls_take_the_place_of_text_and_are_checked_for_aliases() -> None:
    native = (ct.ToolCall("search", '{"model": "search-4"}', "a"),)
    [call] = read_turn(ct.Reply("hm", tool_calls=native), choices=CHOICES).calls
    assert call.error is not None
    assert call.error[0] == "invalid_arguments"


def test_native_arguments_that_are_no_json_are_left_to_the_executor() -> None:
    [call] = read_turn(ct.Reply("", tool_calls=(ct.ToolCall("search", "{", "a"),)), choices=CHOICES).calls
    assert (call.arguments, call.error) == ("{", None)


def test_blocks_follow_each_other_without_a_gap() -> None:
    text = f"a <think>b</think> c</message>{CALL} d <answer>e"
    blocks = cut_blocks(text, ("think", "tool_call", "message", "answer"), repeating="tool_call")
    assert "".join(text[block.start : block.end] for block in blocks) == text
    assert [block.tag for block in blocks] == ["", "think", "", "/message", "tool_call", "", "answer"]


texts = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<tool_call>",
            "</tool_call>",
            "<message>",
            "<answer>",
            "</answer>",
            '{"name": "f", "arguments": {}}',
            '{"name": ',
            "'",
            "x",
            " ",
            "{",
            "}",
            "\n",
            "```",
        ]
    )
    | st.text(max_size=8),
    max_size=30,
).map("".join)


@settings(max_examples=20_000 if FULL else 300, deadline=None)
@given(texts, st.sampled_from(["stop", "length"]), st.booleans())
def test_any_text_is_read_and_every_place_is_inside_it(text: str, finish: str, strict: bool) -> None:
    turn = read(text, finish=finish, strict=strict, tools=TOOLS, choices=CHOICES)
    for issue in turn.issues:
        assert isinstance(issue, FormatIssue)
        assert issue.code in CODES
        assert 0 <= issue.start <= issue.end <= len(text)
        assert issue.message
    assert turn.calls or turn.message is not None or turn.answer is not None or turn.issues


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 90_000,
        "<think>" * 140_000,
        "<tool_call></tool_call>" * 45_000,
        "</tool_call>" * 80_000,
        "<answer>" * 125_000,
        '<tool_call>{"name": "f", "arguments": {' + '"a": [' * 160_000,
        "<" * 1_000_000,
        '<tool_call>{"name": "' + "n" * 1_000_000 + '", "arguments": {}}</tool_call>',
        '<tool_call>{"' + "k" * 1_000_000 + '": 1}</tool_call>',
        '{"name": ' * 110_000,
    ],
    ids=[
        "openings",
        "thoughts",
        "empty calls",
        "closings",
        "answers",
        "depth",
        "signs",
        "long name",
        "long key",
        "names",
    ],
)
def test_a_megabyte_of_hostile_text_is_read_in_linear_time(text: str) -> None:
    assert_linear(lambda: read(text, tools=TOOLS, choices=CHOICES), len(text))
    turn = read(text, tools=TOOLS, choices=CHOICES)
    assert all(len(issue.message) < 500 for issue in turn.issues)
