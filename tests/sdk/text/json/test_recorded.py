"""Recorded texts of others: what is certain about each is the oracle, and nothing is ever misread.

- JSONTestSuite says what strict JSON is. - json_repair's own tests: of its repairs, ours are those with one
meaning. - BFCL gold calls, written down in the ways models write them, come back; cut off, they never do.
- vLLM's parser tests: one call comes back, none or several are refused. - MINT and FireAct turns hold no JSON
call: they are refused, and a call written behind one of them comes back or is refused, never altered.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from concertino.text.json import ReadingError, read_json

LOG = logging.getLogger(__name__)
REJECTED = object()
# The broken inputs of json_repair's tests that have one meaning, judged by hand; in the other broken inputs a
# value, a quote or a bracket would have to be made up.
ONE_MEANING = {
    "{'': 1}",
    "{\"key\": 'value'}",
    '{"key\t_": "value"}',
    '{"key": "valu\\\'e"}',
    '{"key": ["value" "value1" "value2"]}',
    '{"name": "John", "age": 30, city: "New York"}',
    '{ "key": "value", "key2": 1, "key3": True }',
    '{"value": [{"name": "example"}],}',
    "stringbeforeobject {}",
    '{“slanted_delimiter”: "value"}',
}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").strip().split("\n")]


def dumped(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def read(text: str, **options: Any) -> Any:
    try:
        return read_json(text, **options).value
    except ReadingError:
        return REJECTED


def test_strict_reading_agrees_with_the_json_test_suite(shared_data: Path) -> None:
    cases = [case for case in rows(shared_data / "json_test_suite" / "cases.jsonl") if "text" in case]
    for case in cases:
        value = read(case["text"], strict=True, expect="any")
        if case["expect"] != "either":
            assert (value is not REJECTED) == (case["expect"] == "accept"), case["name"]
        if value is not REJECTED:
            assert dumped(value) == dumped(json.loads(case["text"])), case["name"]
    LOG.info("json_test_suite: %d texts agree", len(cases))


def test_of_the_repairs_of_json_repair_exactly_those_with_one_meaning_are_made(shared_data: Path) -> None:
    counts: Counter[str] = Counter()
    for case in rows(shared_data / "json_repair" / "cases.jsonl"):
        text, expected = case["input"], case["expected"]
        if case["input_is_strict_json"]:
            # Upstream may reshape valid JSON by a schema; reading must not.
            twice = '"b":"v2","b"' in text
            value = read(text, expect="any")
            assert value is REJECTED if twice else dumped(value) == dumped(json.loads(text)), case["id"]
            counts["strict"] += 1
            continue
        value = read(text)
        assert (value is not REJECTED) == (text in ONE_MEANING), case["id"]
        if value is not REJECTED:
            wanted = json.loads(expected) if isinstance(expected, str) else expected
            assert dumped(value) == dumped(wanted), case["id"]
        counts["refused" if value is REJECTED else "repaired"] += 1
    LOG.info("json_repair: %s", dict(counts))
    assert counts["repaired"] >= 5


def gold_calls(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        for row in rows(path):
            for call in row.get("ground_truth", []):
                if isinstance(call, dict):
                    for arguments in call.values():
                        yield {name: accepted[0] for name, accepted in arguments.items() if accepted}


WRITTEN: dict[str, Callable[[dict[str, Any]], str]] = {
    "ascii": json.dumps,
    "unicode": lambda call: json.dumps(call, ensure_ascii=False, indent=2),
    "python": lambda call: repr(call),
    "fence": lambda call: f"I call it now:\n```json\n{json.dumps(call)}\n```\nDone.",
    "tag": lambda call: f"<tool_call>\n{json.dumps(call)}\n</tool_call>",
    "think": lambda call: f'<think>{{"x": 1}} or {{</think>{json.dumps(call)}',
    "trailing comma": lambda call: json.dumps(call)[:-1] + ",}" if call else "{}",
    "encoded twice": lambda call: json.dumps(json.dumps(call)),
    "commented": lambda call: json.dumps(call, indent=1).replace("{\n", "{ // arguments\n", 1),
}


def has_control_escape(call: dict[str, Any]) -> bool:
    return any(escape in json.dumps(call) for escape in ("\\b", "\\f"))


def test_gold_calls_come_back_from_every_way_of_writing_them(shared_data: Path) -> None:
    counts: Counter[str] = Counter()
    for call in gold_calls(shared_data / "bfcl"):
        if has_control_escape(call):
            continue
        for name, write in WRITTEN.items():
            value = read(write(call))
            outcome = "refused" if value is REJECTED else "right" if dumped(value) == dumped(call) else "misread"
            counts[outcome] += 1
            counts[f"{name} refused"] += value is REJECTED
    total = counts["right"] + counts["refused"] + counts["misread"]
    LOG.info("bfcl: %s", dict(+counts))
    assert total > 5_000
    assert counts["misread"] == 0
    assert counts["right"] >= 0.97 * total


@pytest.mark.slow
def test_a_gold_call_cut_off_anywhere_is_refused(shared_data: Path) -> None:
    cuts = 0
    for number, call in enumerate(gold_calls(shared_data / "bfcl")):
        for write in (WRITTEN["unicode"], WRITTEN["python"]):
            text = write(call)
            for end in range(1 + number % 5, len(text), 5):
                assert read(text[:end]) is REJECTED, text[:end]
                cuts += 1
    LOG.info("bfcl: %d cut calls refused", cuts)
    assert cuts > 10_000


def test_python_calls_are_not_taken_for_their_arguments(shared_data: Path) -> None:
    seen = 0
    for path in sorted((shared_data / "bfcl").glob("multi_turn*.jsonl")):
        for row in rows(path):
            for turn in row.get("ground_truth", []):
                for call in turn:
                    assert read(call) is REJECTED, call
                    seen += 1
    assert seen > 50


def test_the_outputs_of_tool_parser_tests_give_their_one_call_or_are_refused(shared_data: Path) -> None:
    counts: Counter[str] = Counter()
    for case in rows(shared_data / "vllm_tool_parsers" / "cases.jsonl"):
        value = read(case["text"], expect="any")
        found = value if isinstance(value, list) else [] if value is REJECTED else [value]
        names = [call["name"] for call in found]
        arguments = [call.get("arguments", call.get("parameters")) for call in found]
        if case["format"] == "pythonic" or not case["calls"]:
            # A call without its arguments is JSON all the same; the parser above refuses it.
            assert value is REJECTED or arguments == [None], case["id"]
        elif value is not REJECTED:
            assert names == [call["name"] for call in case["calls"]], case["id"]
            assert arguments == [call["arguments"] for call in case["calls"]], case["id"]
        else:
            assert case["text"].count('{"') > len(case["calls"]) > 0, case["id"]
        counts["refused" if value is REJECTED else "read"] += 1
    LOG.info("vllm_tool_parsers: %s", dict(counts))


@pytest.mark.parametrize("path", ["mint_bench/turns.jsonl", "fireact/react_steps.jsonl"])
def test_a_turn_without_a_json_call_is_refused_and_a_call_behind_it_is_never_altered(
    shared_data: Path, path: str
) -> None:
    call = {"query": "the set {1, 2}", "tex": "\\frac{1}{2}", "n": 3}
    counts: Counter[str] = Counter()
    for row in rows(shared_data / path):
        assert read(row["output"]) is REJECTED, row["id"]
        value = read(f"{row['output']}\n{json.dumps(call)}")
        assert value is REJECTED or value == call, row["id"]
        counts["refused" if value is REJECTED else "read"] += 1
    LOG.info("%s: call behind the turn %s", path, dict(counts))
    assert counts["read"] > counts["refused"]
