"""The answer in a text that is still being written."""

from __future__ import annotations

import json
import random

import pytest
from concertino.strategies.base.answer_reader import AnswerReader, ArgumentAnswer, FirstOf, TagAnswer


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
        ("<answer><![CDATA[quoted]]></answer>", ""),
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


@pytest.mark.parametrize("answer", ["plain", 'a "quoted" one\nin two lines', "\u00fc \U0001f600 \\ /", ""])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_an_answer_in_the_argument_of_a_call_is_decoded(answer: str, ascii_only: bool) -> None:
    call = json.dumps({"name": "answer", "arguments": {"text": answer}}, ensure_ascii=ascii_only)
    text = f"<think>so</think>\n<tool_call>\n{call}\n</tool_call>"
    for pieces in cuttings(text):
        assert read(ArgumentAnswer("answer"), pieces) == answer, pieces


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
