"""The answer in a text that is still being written."""

from __future__ import annotations

import json
import random

import pytest
from concertino.strategies.base.answer_reader import AfterThought, AnswerReader, ArgumentAnswer, FirstOf, TagAnswer
from concertino.strategies.dependency_plan.answer_reader import PartsAnswer
from concertino.strategies.dependency_plan.queries import cut_parts, join_parts


def read(reader: AnswerReader, pieces: list[str]) -> str:
    return "".join([*map(reader.feed, pieces), reader.finish()])


def cuttings(text: str, times: int = 60) -> list[list[str]]:
    rng = random.Random(0)
    found = [[text], list(text)]
    for _ in range(times):
        places = sorted(rng.sample(range(len(text) + 1), rng.randrange(1, min(8, len(text)))))
        found.append([text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)])
    return found


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<reasoning>so</reasoning>\n<answer>\n 42 is it \n</answer>", "42 is it"),
        ("<answer>a < b, </b> and </answe </answer> after", "a < b, </b> and </answe"),
        ("<think>no <answer>1</answer></think><answer>2</answer>", "2"),
        ("<answer>cut off </ans", "cut off </ans"),
        ("<answer>one\n\ntwo</answer>", "one\n\ntwo"),
        ("nothing here", ""),
        ('<tool_call>{"name": "x"}</tool_call><answer>too early</answer>', ""),
        ("<answer><![CDATA[no quotes here]]></answer>", "<![CDATA[no quotes here]]>"),
    ],
)
def test_an_answer_between_tags_is_found_however_the_text_is_cut(text: str, answer: str) -> None:
    for pieces in cuttings(text):
        assert read(TagAnswer("tool_call"), pieces) == answer, pieces


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It is 42.", "It is 42."),
        ("<reasoning>so</reasoning> It is <b>42</b>.", "It is <b>42</b>."),
        ("<think>never closed", ""),
        ("first <answer>second</answer>", "second"),
    ],
)
def test_where_the_answer_was_asked_for_a_text_without_tags_is_the_answer(text: str, answer: str) -> None:
    for pieces in cuttings(text):
        assert read(TagAnswer(whole=True), pieces) == answer, pieces


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" It is 42.\n", "It is 42."),
        ("<think>40 + 2</think>\n\nIt is <think>42</think>.", "It is <think>42</think>."),
        ("\n<think>a < b</thin </think>42", "42"),
        ("<think>never closed", ""),
        ("<thi", "<thi"),
        ("<thinking>no thought</thinking>", "<thinking>no thought</thinking>"),
        ("one\n\n two ", "one\n\n two"),
        ("  ", ""),
    ],
)
def test_the_text_of_a_model_alone_is_the_answer_but_for_a_thought_at_its_beginning(text: str, answer: str) -> None:
    for pieces in cuttings(text, 60 if len(text) > 8 else 0):
        assert read(AfterThought(), pieces) == answer, pieces


@pytest.mark.parametrize("answer", ["plain", 'a "quoted" one\nin two lines', "\u00fc \U0001f600 \\ /", ""])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_an_answer_in_the_argument_of_a_call_is_decoded(answer: str, ascii_only: bool) -> None:
    call = json.dumps({"name": "answer", "arguments": {"text": answer}}, ensure_ascii=ascii_only)
    text = f"<think>so</think>\n<tool_call>\n{call}\n</tool_call>"
    for pieces in cuttings(text):
        assert read(ArgumentAnswer("answer"), pieces) == answer, pieces


@pytest.mark.parametrize("space", [" ", "\n\t", "\u2028", "\u00a0 "])
def test_space_around_an_answer_in_an_argument_is_no_part_of_it(space: str) -> None:
    call = json.dumps({"name": "answer", "arguments": {"text": f"{space}one{space}two{space}"}}, ensure_ascii=False)
    for pieces in cuttings(call):
        assert read(ArgumentAnswer("answer"), pieces) == f"one{space}two", pieces


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>plain < b</answer>", "plain < b"),
        ("<answer> <![CDATA[ a </answer> b ]]> </answer>", " a </answer> b "),
        ("<answer>a <![CDATA[<b>]]> c</answer> d", "a <b> c"),
        ("<answer><![CDATA[a ]]]]><![CDATA[> b]]></answer>", "a ]]> b"),
        ("<answer><![CDATA[]]> x", " x"),
        ("<answer><![CDATA[cut off ]]", "cut off ]]"),
    ],
)
def test_a_graph_quotes_parts_of_its_answer(text: str, answer: str) -> None:
    for pieces in cuttings(text):
        assert read(TagAnswer("agent", quotes=True), pieces) == answer, pieces


@pytest.mark.parametrize(
    "inner",
    [
        "one answer",
        " a  b ",
        '["one answer"]',
        '[ "a \\"b\\" \\u003c \\\\" ]',
        '[" outer space  "]',
        '["one", "two | three", " "]',
        "one | two",
        "P(A|B) is it",
        "a \\| b",
        "a \\ b \\",
        "[1] says so",
        "[0, 1) | [2, 3]",
        "[]",
        "[",
        "|",
        "\u00fc \U0001f600",
    ],
)
def test_the_answers_of_a_dependency_plan_are_told_as_the_run_gives_them(inner: str) -> None:
    whole = join_parts(cut_parts(inner.strip()).texts)
    for pieces in cuttings(f"<think>so</think>\n<answer>{inner}</answer>\n"):
        told = read(PartsAnswer("graph", "search"), pieces)
        assert told == whole, pieces


@pytest.mark.parametrize(("inner", "begun"), [('["cut off', "cut off"), ('["two", 3]', "two")])
def test_of_a_list_that_is_none_nothing_but_its_first_text_is_told(inner: str, begun: str) -> None:
    for pieces in cuttings(f"<answer>{inner}</answer>"):
        assert begun.startswith(read(PartsAnswer("graph"), pieces)), pieces


def test_the_first_answer_of_a_list_is_told_before_the_list_is_closed() -> None:
    reader = PartsAnswer("graph")
    assert [reader.feed(piece) for piece in ('<answer>["It ', "is", ' so."', "]</answer>")] == ["It", " is", " so.", ""]


def test_the_first_form_that_gives_something_is_followed() -> None:
    def both() -> FirstOf:
        return FirstOf(ArgumentAnswer("answer"), TagAnswer())

    assert read(both(), list("<answer>1</answer>")) == "1"
    assert read(both(), list('{"name": "answer", "arguments": {"text": "2"}}')) == "2"
    assert read(both(), list('{"name": "other", "arguments": {"text": "2"}}')) == ""


def test_a_long_text_is_read_in_linear_time() -> None:
    reader = FirstOf(ArgumentAnswer("answer"), TagAnswer(whole=True))
    pieces = ["<b>", "word "] * 100_000
    assert read(reader, pieces) == "".join(pieces).strip()
    for begin in ("", '["'):
        assert (
            read(PartsAnswer("graph"), ["<answer>", begin, *["word "] * 100_000]).strip() == ("word " * 100_000).strip()
        )
