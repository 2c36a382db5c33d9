"""What a journal's JSON is read with: the decoder for much of it gives what `json` gives, bit for bit."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest
from concertino.traces import journal_line
from concertino.traces.journal_errors import JournalError
from concertino.traces.journal_line import decode_json, encode_json
from hypothesis import given
from hypothesis import strategies as st

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**30, max_value=10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], Any]:
    """Decodes as a process that has read much."""
    monkeypatch.setattr(journal_line, "_WORTH_AN_IMPORT", -1)
    monkeypatch.setattr(journal_line, "_QUICK", journal_line._Quick())
    return decode_json


def read(data: bytes, decode: Callable[[bytes], Any]) -> tuple[str, Any]:
    try:
        return "value", repr(decode(data))
    except (JournalError, ValueError) as error:
        return type(error).__name__, str(error)


def slow(data: bytes) -> Any:
    return journal_line._decode_slowly(data)


@given(VALUES)
def test_every_value_that_is_written_is_read_alike(value: Any) -> None:
    data = encode_json(value)
    decode = journal_line._Quick()
    decode._read = 2**40
    found = decode.decoder(0)
    assert found is not None
    try:
        quickly = found(data, allow_inf_nan=False)
    except ValueError:
        assert b"\\ud" in data  # half an emoji, for which the slow decoder is asked
    else:
        assert repr(quickly) == repr(json.loads(data)) == repr(slow(data))


@pytest.mark.parametrize(
    "data",
    [
        b"1e400", b"-0.0", b"-0", b"1E-400", b"4.9e-324", b"9007199254740993.0", b"1" + b"0" * 400 + b".5",
        b"1" + b"0" * 4000, b'"\\ud800"', b'"\\ud83d\\ude00"', b'{"a":1,"a":2}', b'"\x01"', b'"\xff"', b"01", b"1.",
        b".5", b"+1", b"NaN", b"Infinity", b"-Infinity", b'{"a":NaN}', b"[1,]", b"true false", b"{", b"", b"nul",
        b"[" * 150 + b"]" * 150, b"[" * 201 + b"]" * 201, b"[" * 250 + b"]" * 250, b"[" * 100_000,
        b'{"a":' * 250 + b"1" + b"}" * 250,
    ],
    ids=lambda data: repr(data[:24]),
)  # fmt: skip
def test_what_is_rare_or_wrong_is_read_or_refused_alike(data: bytes, quick: Callable[[bytes], Any]) -> None:
    assert read(data, quick) == read(data, slow)


def test_few_records_are_read_without_an_import_and_many_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_line, "_QUICK", journal_line._Quick())
    monkeypatch.delitem(sys.modules, "pydantic_core", raising=False)
    data = encode_json({"text": "x" * 1000})
    few = journal_line._WORTH_AN_IMPORT // len(data)
    for _ in range(few):
        decode_json(data)
    assert "pydantic_core" not in sys.modules
    for _ in range(3):
        assert decode_json(data) == {"text": "x" * 1000}
    assert "pydantic_core" in sys.modules


def test_an_integer_of_thousands_of_digits_is_no_infinity(quick: Callable[[bytes], Any]) -> None:
    value = quick(b"1" + b"0" * 4000)
    assert isinstance(value, int)
    assert math.log10(value) == pytest.approx(4000)
