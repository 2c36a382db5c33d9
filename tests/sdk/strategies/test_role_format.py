"""What a role's text says: each form read and written, each issue with a place, any text without an exception."""

import json
import os
from typing import Any

import concertino as ct
import pytest
from concertino.strategies.role_workflow.format import (
    CODES,
    FORMS,
    MAX_TESTS,
    Form,
    read_role_text,
    write_actions,
    write_answer,
    write_code,
    write_tests,
)
from concertino.strategies.serial_calls import format as serial
from hypothesis import given, settings
from hypothesis import strategies as st
from linear import assert_linear

FULL = bool(os.environ.get("CONCERTINO_FUZZ"))
MANY = settings(max_examples=5_000 if FULL else 200, deadline=None)
plain = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=60)
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from('[]#<*\\n"'), max_size=8)
TEST = "<test>\n<input>\n1 2\n</input>\n<output>\n3\n</output>\n</test>"


def read(text: str, form: Form, *, finish: str = "stop", strict: bool = False) -> Any:
    return read_role_text(ct.Reply(text, finish_reason=finish), form, strict=strict)


@MANY
@given(plain.filter(lambda text: text.strip() and "<think>" not in text), st.booleans())
def test_code_is_written_and_read(code: str, strict: bool) -> None:
    assert read(f"Here:\n{write_code(code)}", "code", strict=strict).value == code.rstrip("\n") + "\n"


@MANY
@given(st.lists(st.tuples(plain, plain.filter(str.strip)), min_size=1, max_size=MAX_TESTS), st.booleans())
def test_tests_are_written_and_read(tests: list[tuple[str, str]], strict: bool) -> None:
    data = [{"input": given_.strip("\r\n"), "output": wanted.strip("\r\n")} for given_, wanted in tests]
    if any("<" in part for test in tests for part in test):
        return
    read_back = read(write_tests(data), "tests", strict=strict)
    assert (read_back.value, read_back.issues) == (data, ())


@MANY
@given(st.text("ab{}\\ ^1/2", min_size=1, max_size=20), st.booleans())
def test_an_answer_is_written_and_read(answer: str, strict: bool) -> None:
    try:
        text = write_answer(answer)
    except ct.UsageError:
        return
    read_back = read(f"So it is {text}", "answer", strict=strict)
    if answer.strip():
        assert read_back.value == answer.strip()


@MANY
@given(
    st.lists(words | st.integers(-99, 99) | st.lists(words, max_size=3), min_size=1, max_size=6),
    st.booleans(),
)
def test_actions_are_written_and_read(actions: list[Any], strict: bool) -> None:
    assert read(write_actions(actions), "actions", strict=strict).value == actions


FLAWS: list[tuple[str, Form, str, str, bool]] = [
    ("no_text", "text", "<think>a</think>  ", "  ", False),
    ("unclosed_think", "code", "<think>```python\n1\n```", "<think>```python\n1\n```", False),
    ("no_code", "code", "print(1)", "print(1)", False),
    ("empty_code", "code", "```python\n\n```", "```python\n\n", False),
    ("unclosed_code", "code", "x ```python\nprint(1)", "```python\nprint(1)", True),
    ("several_codes", "code", "```\n1\n``` or ```\n2\n```", "```\n2\n", True),
    ("no_test", "tests", "1 2 gives 3", "1 2 gives 3", False),
    ("unclosed_test", "tests", TEST.removesuffix("</test>"), TEST.removesuffix("</test>"), True),
    ("no_input", "tests", "<test><output>3</output></test>", "<test><output>3</output></test>", True),
    ("no_output", "tests", "<test><input>3</input></test>", "<test><input>3</input></test>", False),
    ("too_many_tests", "tests", TEST * (MAX_TESTS + 1), TEST * (MAX_TESTS + 1), True),
    ("no_answer", "answer", "it is 7", "it is 7", False),
    ("empty_answer", "answer", "\\boxed{ }", "\\boxed{ ", False),
    ("unclosed_answer", "answer", "x \\boxed{7", "\\boxed{7", False),
    ("several_answers", "answer", "\\boxed{7} or \\boxed{8}", "\\boxed{8", True),
    ("no_actions", "actions", "go up", "go up", False),
    ("bad_actions", "actions", '#### ["U", ?]', "?]", False),
    ("bare_actions", "actions", "#### [U, R]", "[U, R]", True),
    ("empty_actions", "actions", "#### []", "[]", False),
]


@pytest.mark.parametrize(("code", "form", "text", "span", "repaired"), FLAWS, ids=[issue[0] for issue in FLAWS])
def test_a_flaw_has_a_code_a_place_and_a_next_step(code: str, form: Form, text: str, span: str, repaired: bool) -> None:
    result = read(text, form)
    [issue] = [issue for issue in result.issues if issue.code == code]
    assert issue.repaired is repaired
    assert (result.value is not None) is repaired
    assert text[issue.start : issue.end] == span
    assert any(word in issue.message for word in ("write", "end", "put", "give", "close", "run"))
    if repaired:
        strict = read(text, form, strict=True)
        assert strict.value is None
        assert any(issue.code == code and not issue.repaired for issue in strict.issues)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("code", "```python\nprint("),
        ("tests", TEST + "<test><input>1</input>"),
        ("answer", "\\boxed{1"),
        ("actions", "#### [1,"),
    ],
)
def test_a_text_cut_off_by_the_length_limit_is_never_completed(form: Form, text: str) -> None:
    result = read(text, form, finish="length")
    assert [issue.code for issue in result.issues] == ["cut_off"]
    assert result.value == ([{"input": "1 2", "output": "3"}] if form == "tests" else None)


def test_every_code_is_shown_by_a_text() -> None:
    assert {issue[0] for issue in FLAWS} | {"cut_off"} == set(CODES)


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        ("text", "<think>hm</think> Go on. ", "Go on."),
        ("code", "<think>```\nno\n```</think>**Code:** ```python\nprint(1)\n```", "print(1)\n"),
        ("code", "````md\n```\nx\n```\n````", "```\nx\n```\n"),
        ("tests", "**Test Input:**\n```\n1 2\n```\n**Test Output:**\n```\n3\n```", [{"input": "1 2", "output": "3"}]),
        (
            "tests",
            "**Test Input:** 1\n**Test Output:** 2\n**Test Input:** 3\n**Test Output:** 4",
            [{"input": "1", "output": "2"}, {"input": "3", "output": "4"}],
        ),
        ("answer", "\\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("answer", "first \\boxed{3}, checked\n#### 3", "3"),
        ("answer", "#### \\boxed{12}", "12"),
        ("answer", "<answer>Ada</answer>", "Ada"),
        ("actions", "**Actions List**: [[0, 1, 2]]", [[0, 1, 2]]),
        ("actions", 'I take [1] then ... #### ["U"]', ["U"]),
        ("actions", "[1, 2] no, [3]", [3]),
        ("calls", '<tool_call>{"name": "f", "arguments": {}}</tool_call>', [{"name": "f", "arguments": {}}]),
    ],
)
def test_these_texts_say_this(form: Form, text: str, value: Any) -> None:
    assert read(text, form).value == value


def test_a_call_that_cannot_be_read_is_still_a_call() -> None:
    [call] = read("<tool_call>{</tool_call>", "calls").value
    assert call["error"][0] == "bad_json"


def test_writers_refuse_what_their_format_cannot_hold() -> None:
    with pytest.raises(ct.UsageError, match="holds <input>"):
        write_tests([{"input": "<input>", "output": "1"}])
    with pytest.raises(ct.UsageError, match="braces that do not close"):
        write_answer("}{")


pieces = st.sampled_from(
    [
        "```",
        "```python\n",
        "\\boxed{",
        "}",
        "{",
        "####",
        "<answer>",
        "</answer>",
        "<test>",
        "</test>",
        "<input>",
        "</input>",
        "<output>",
        "</output>",
        "[",
        "]",
        "**Test Input:**",
        "**Test Output:**",
        "**Actions List**:",
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "\n",
        "1",
        '"U"',
        ",",
        "\\",
    ]
)


@pytest.mark.slow
@settings(max_examples=20_000 if FULL else 400, deadline=None)
@given(
    st.lists(pieces | st.text(max_size=5), max_size=25).map("".join),
    st.sampled_from(FORMS),
    st.sampled_from(["stop", "length"]),
    st.booleans(),
)
def test_any_text_is_read_and_every_place_is_inside_it(text: str, form: Form, finish: str, strict: bool) -> None:
    result = read(text, form, finish=finish, strict=strict)
    assert json.loads(json.dumps(result.value)) == result.value
    for issue in result.issues:
        assert issue.code in CODES or issue.code in serial.CODES
        assert 0 <= issue.start <= issue.end <= len(text)
    if result.value is None:
        assert any(not issue.repaired for issue in result.issues)


HOSTILE = [
    "```",
    "\\boxed{",
    "\\boxed{}",
    "####",
    "#### [",
    "[",
    "[]",
    "<test>",
    "<test><input>",
    "**Test Input:**",
    "<answer>",
    "<answer></answer>",
    "`" * 50 + "x",
    "\n####",
    "<think></think>",
    "{",
    '["a",',
    "<tool_call>",
]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_megabyte_of_hostile_text_is_read_in_linear_time(form: Form, piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert_linear(lambda: read(text, form), len(text))
    assert all(len(issue.message) < 500 for issue in read(text, form).issues)
