"""What holds for every text: wrapping is undone, reading is stable, nothing crashes, nothing stalls."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from concertino.text.json import ReadingError, read_json
from concertino.text.json.read import JsonReading
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from linear import assert_linear
from tree import ROOT

FUZZ = int(os.environ.get("CONCERTINO_FUZZ", "2000"))
CASES = [json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text("utf-8").splitlines()]

ENDED_THOUGHT = re.compile("</(?:think|thinking|thought|reasoning)>")

# Two controls are refused everywhere as hidden LaTeX, U+0000 and surrogates as no text at all.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\b\f"), max_size=30)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40) + 1, 10**40 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=5)
prose = st.sampled_from(["", "Here is the call:\n", "好的，调用如下：", "Sure, ", "For {1, 2} use ", "أستدعي "])
wrappings = st.sampled_from(
    [
        ("", ""),
        ("```json\n", "\n```"),
        ("```\n", "\n```\n"),
        ("~~~\n", "\n~~~"),
        ("<tool_call>\n", "\n</tool_call>"),
        ("<|tool_call|>", "<|/tool_call|>"),
        ("[TOOL_CALLS] ", ""),
        ("\ufeff", "\u200b"),
        ('<think>{"a": 1}? {</think>', "\n"),
        ("<tool_call>```json\n", "```</tool_call>"),
    ]
)


def dumped(value: Any) -> str:
    return json.dumps(value)


def outcome(text: str, **options: Any) -> JsonReading | ReadingError:
    try:
        return read_json(text, **options)
    except ReadingError as error:
        return error


def loaded_benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_reading", ROOT / "benchmarks" / "reading.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOSTILE = loaded_benchmark().HOSTILE


@pytest.mark.slow
@settings(max_examples=max(500, FUZZ // 20), deadline=None)
@given(objects, prose, wrappings, prose, st.booleans(), st.sampled_from([None, 2]))
def test_an_object_comes_back_from_any_wrapping(
    value: dict[str, Any],
    before: str,
    wrapping: tuple[str, str],
    behind: str,
    ascii_only: bool,
    indent: int | None,
) -> None:
    written = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assume(not ENDED_THOUGHT.search(written))  # what stands before the end of a thought is no answer
    text = f"{before}{wrapping[0]}{written}{wrapping[1]}\n{behind}"
    assert dumped(read_json(text).value) == dumped(value)


@settings(max_examples=500, deadline=None)
@given(values)
def test_valid_json_is_read_as_json_loads_reads_it(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    reading = read_json(text, expect="any", strict=True)
    assert dumped(reading.value) == dumped(json.loads(text))
    assert reading.repairs == ()


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(objects)
def test_a_python_dict_display_comes_back_or_is_refused(value: dict[str, Any]) -> None:
    found = outcome(repr(value))
    # Python writes what it cannot print as \x.. or \U........, which JSON does not know.
    if isinstance(found, ReadingError):
        assert found.code == "ambiguous-escape"
    else:
        assert dumped(found.value) == dumped(value)


def test_a_repaired_value_reads_again_without_repairs() -> None:
    stable = 0
    for case in CASES:
        if "value" in case["expect"] and "\\u000c" not in case["text"]:
            written = json.dumps(case["expect"]["value"], ensure_ascii=False)
            again = read_json(written, expect="any")
            assert dumped(again.value) == dumped(case["expect"]["value"])
            assert again.repairs == ()
            stable += 1
    assert stable > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_answered_in_linear_time(name: str) -> None:
    text = HOSTILE[name]()
    assert_linear(lambda: outcome(text), len(text))
    found = outcome(text)
    assert isinstance(found, JsonReading) or len(str(found)) <= 200


PIECES = [*"\"'\\{}[],:\n\x00\ud800“#- é\u200b", "//", "/*", "```", "<think>", "</think>", "<tool_call>"]
PIECES += ["NaN", "1e999", "None", "\\u", "\\ud83d"]


def mutated(generator: random.Random, text: str) -> str:
    for _ in range(generator.randint(1, 6)):
        place = generator.randrange(len(text) + 1)
        match generator.randrange(4):
            case 0:
                text = text[:place] + generator.choice(PIECES) + text[place:]
            case 1:
                text = text[:place] + text[place + generator.randint(1, 8) :]
            case 2:
                text = text[:place] + text[generator.randrange(len(text) + 1) :][:20] + text[place:]
            case _:
                text = text[:place]
    return text


def test_a_mutated_text_is_refused_with_a_direction_or_gives_a_value_that_reads_again() -> None:
    generator = random.Random(20_240_611)
    sources = [case["text"] for case in CASES if len(case["text"]) < 2_000]
    read = 0
    for _ in range(FUZZ):
        text = mutated(generator, generator.choice(sources))
        expect = generator.choice(["object", "any"])
        found = outcome(text, expect=expect)
        if isinstance(found, ReadingError):
            assert found.position >= 0
            assert found.line >= 1
            assert found.column >= 1
            assert len(found.snippet) <= 40
            assert len(str(found)) <= 200
            continue
        read += 1
        assert expect == "any" or isinstance(found.value, dict)
        written = json.dumps(found.value, allow_nan=False)
        assert json.loads(written.encode().decode()) == found.value
    assert 0 < read < FUZZ
