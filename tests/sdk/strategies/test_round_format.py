"""The ParaManager text of one round: what is read, what is refused, and what the strict check accepts."""

import json
import os
from typing import Any

import concertino as ct
import pytest
from concertino.strategies.parallel_rounds.format import (
    CODES,
    check_round,
    is_strict,
    read_round,
    write_call,
    write_round,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from linear import assert_linear

CALL = '<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>'
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)


def safe(value: Any) -> bool:
    """NUL, backspace and form feed are refused in arguments on purpose; tags inside texts end a block."""
    text = json.dumps(value, ensure_ascii=False)
    return not any(bad in text for bad in ("\\b", "\\f", "\\u00", "tool_call>", "\x7f"))


@settings(max_examples=int(os.environ.get("CONCERTINO_FUZZ", "100")), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.from_regex("[a-z_]{1,12}", fullmatch=True),
            st.dictionaries(st.text("xyz", min_size=1, max_size=3), values.filter(safe), max_size=3),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_what_the_writer_writes_the_reader_reads_and_the_strict_check_accepts(calls: list[tuple[str, Any]]) -> None:
    text = write_round("I think.", calls)
    read = read_round(ct.Reply(text))
    assert [(call.name, call.arguments) for call in read.calls] == calls
    assert [call.error for call in read.calls] == [None] * len(calls)
    assert read.reasoning == "I think."
    assert is_strict(text)


def test_marks_inside_an_argument_are_text() -> None:
    subtask = "Explain <reasoning>a</reasoning> and <think>."
    read = read_round(ct.Reply(write_round("Go.", [("solve", {"subtask": subtask})])))
    assert read.calls[0].arguments == {"subtask": subtask}


def test_calls_inside_the_reasoning_are_not_calls() -> None:
    read = read_round(ct.Reply(f"<reasoning>I could {CALL}</reasoning>\n{CALL}"))
    assert len(read.calls) == 1


def test_a_text_that_ends_inside_its_thinking_holds_no_call() -> None:
    read = read_round(ct.Reply(f"<think>I could {CALL}"))
    assert (read.calls, read.unclosed) == ([], True)


def test_one_unreadable_call_does_not_take_its_siblings_along() -> None:
    read = read_round(
        ct.Reply(f'{CALL}<tool_call>{{"name": "sum", "arguments": {{"x": 1, "x": 2}}}}</tool_call>{CALL}')
    )
    assert [call.name for call in read.calls] == ["search", "sum", "search"]
    assert [call.error is None for call in read.calls] == [True, False, True]
    error = read.calls[1].error
    assert error is not None
    assert error[0] == "bad_json"


def test_a_missing_closing_tag_is_forgiven_at_the_end_and_between_calls() -> None:
    open_call = CALL.removesuffix("</tool_call>")
    read = read_round(ct.Reply(open_call + "\n" + open_call))
    assert [call.error for call in read.calls] == [None, None]


def test_a_call_cut_off_by_the_length_limit_is_never_completed() -> None:
    read = read_round(ct.Reply('<tool_call>{"name": "search", "arguments": {"query": "par', finish_reason="length"))
    [call] = read.calls
    assert call.name == "search"
    assert call.error == ("bad_json", "the text ended (length limit) inside this call; write shorter calls")


@pytest.mark.parametrize(
    ("block", "code", "words"),
    [
        ('{"arguments": {}}', "bad_format", '"name" is missing'),
        ('{"name": 3, "arguments": {}}', "bad_format", '"name" is missing'),
        ('{"name": "f", "arguments": [1]}', "bad_format", "must be an object; got list"),
        ("[1, 2]", "bad_json", ""),
        ("", "bad_json", ""),
    ],
)
def test_a_block_that_is_no_call_says_what_a_call_is(block: str, code: str, words: str) -> None:
    [call] = read_round(ct.Reply(f"<tool_call>{block}</tool_call>")).calls
    assert call.error is not None
    assert call.error[0] == code
    assert words in call.error[1]


def test_repairs_that_reading_a_call_needed_are_on_record() -> None:
    [call] = read_round(ct.Reply("<tool_call>{'name': 'f', 'arguments': {'x': True,}}</tool_call>")).calls
    assert call.arguments == {"x": True}
    assert call.repairs


def test_native_calls_take_the_place_of_text() -> None:
    reply = ct.Reply("Let me look.", tool_calls=(ct.ToolCall("search", '{"query": "x"}', "id-1"),))
    [call] = read_round(reply).calls
    assert (call.name, call.arguments) == ("search", '{"query": "x"}')


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"<reasoning>a</reasoning>\n{CALL} and more",
        f"Well. <reasoning>a</reasoning>\n{CALL}",
        "<reasoning>a</reasoning>",
        "<reasoning>a</reasoning><tool_call>{'name': 'f', 'arguments': {}}</tool_call>",
        '<reasoning>a</reasoning><tool_call>{"name": "f"}</tool_call>',
        '<reasoning>a</reasoning><tool_call>{"name": "f", "arguments": "{}"}</tool_call>',
    ],
)
def test_the_strict_check_refuses_everything_beside_the_template(text: str) -> None:
    assert not is_strict(text)


def test_the_strict_check_is_linear_on_hostile_text() -> None:
    assert not is_strict("<reasoning>" + "a" * 200_000)
    assert not is_strict("<reasoning></reasoning>" + "<tool_call><" * 20_000)
    assert not is_strict("<reasoning></reasoning>" + (CALL + " ") * 3000 + "x")


def test_a_call_is_written_as_one_line_of_json() -> None:
    assert write_call("f", {"é": 1}) == '<tool_call>{"name": "f", "arguments": {"é": 1}}</tool_call>'


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 90_000,
        "<tool_call>" * 90_000 + "</tool_call>",
        "<think>" * 140_000,
        "<tool_call></tool_call>" * 40_000,
        "<reasoning><tool_call>" * 45_000,
        "<tool_call>" + "<" * 1_000_000,
        "<tool_call>" + "{" * 1_000_000 + "</tool_call>",
    ],
    ids=lambda text: text[:20],
)
def test_a_megabyte_of_hostile_text_is_read_in_linear_time(text: str) -> None:
    assert_linear(lambda: read_round(ct.Reply(text)), len(text))
    assert_linear(lambda: is_strict(text), len(text))
    assert not is_strict(text)


def test_each_call_of_a_text_of_thousands_is_read() -> None:
    blocks = [f'<tool_call>{{"name": "a", "arguments": {{"n": {n}}}}}</tool_call>' for n in range(3_000)]
    calls = read_round(ct.Reply("<reasoning>r</reasoning>" + "".join(blocks))).calls
    assert [call.data["n"] for call in calls] == [*range(3_000)]
    assert [call.id for call in calls] == [str(n) for n in range(1, 3_001)]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('<reasoning>r</reasoning><tool_call>{"name": "a", "arguments": {}}</tool_call>', []),
        ('<tool_call>{"name": "a", "arguments": {}}</tool_call>', ["no_reasoning"]),
        ("<reasoning>r</reasoning>", ["no_call"]),
        ('<reasoning>r</reasoning>so: <tool_call>{"name": "a", "arguments": {}}</tool_call>', ["stray_text"]),
        ('<reasoning>r</reasoning><tool_call>{"name": "a", "arguments": {}}', ["unclosed"]),
        ("<reasoning>r</reasoning><tool_call>{'name': 'a'}</tool_call>", ["bad_json"]),
        ('<reasoning>r</reasoning><tool_call>{"name": "a", "args": {}}</tool_call>', ["bad_format"]),
        ('<reasoning>r</reasoning><tool_call>{"name": "a", "arguments": "{}"}</tool_call>', ["bad_format"]),
        ("", ["no_reasoning", "no_call"]),
    ],
)
def test_the_verdict_of_a_round_names_each_flaw_and_its_place(text: str, codes: list[str]) -> None:
    issues = check_round(text)
    assert [issue.code for issue in issues] == codes
    assert all(0 <= issue.start <= issue.end <= len(text) for issue in issues)
    assert set(codes) <= set(CODES)


PIECES = st.sampled_from(
    [
        "<reasoning>r</reasoning>",
        "<reasoning>",
        "<think>t</think>",
        CALL,
        "\n",
        " so ",
        "<tool_call>{}</tool_call>",
        "<tool_call>{'name': 'a', 'arguments': {}}</tool_call>",
        '<tool_call>{"name": "a", "arguments": "x"}</tool_call>',
        '<tool_call>{"name": "a", "arguments": {}, "more": 1}</tool_call>',
        '<tool_call>{"name": "a"}</tool_call>',
        "<tool_call>",
        "</tool_call>",
        "<answer>1</answer>",
    ]
)


@given(st.lists(PIECES, max_size=6).map("".join))
def test_a_text_is_called_exact_only_where_the_check_finds_nothing(text: str) -> None:
    assert read_round(ct.Reply(text)).exact == is_strict(text)
