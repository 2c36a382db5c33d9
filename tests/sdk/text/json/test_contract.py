"""The public surface: names, options, errors and limits of `concertino.text.json`."""

from __future__ import annotations

import json
import pickle
import sys

import concertino.text.json as reading
import pytest
from concertino.text.json import ReadingError, read_json
from concertino.text.json.limits import MAX_DEPTH, MAX_INTEGER_DIGITS, MAX_REPAIR_CHARS, MAX_STRICT_CHARS
from concertino.text.json.read import JsonReading
from concertino.text.json.tokens import REPAIRS


def refused(text: str, **options: object) -> ReadingError:
    with pytest.raises(ReadingError) as caught:
        read_json(text, **options)  # type: ignore[arg-type]
    return caught.value


def test_the_contents_page_lists_its_names_in_order() -> None:
    assert reading.__all__ == sorted(reading.__all__)
    assert all(hasattr(reading, name) for name in reading.__all__)


def test_the_limits_are_those_documented() -> None:
    assert (MAX_STRICT_CHARS, MAX_REPAIR_CHARS, MAX_DEPTH, MAX_INTEGER_DIGITS) == (4 << 20, 256 << 10, 64, 40)


def test_a_reading_is_a_small_value() -> None:
    assert read_json('{"a": 1}') == JsonReading({"a": 1}, ())
    assert not hasattr(read_json("{}"), "__dict__")


def test_repairs_are_named_in_a_fixed_order() -> None:
    found = read_json("Call:\n```json\n{'a': [1, 2,], b: True}\n```")
    assert found.repairs == (
        "code-fence",
        "prose",
        "single-quotes",
        "bare-key",
        "python-literal",
        "trailing-comma",
    )
    assert sorted(found.repairs, key=REPAIRS.index) == list(found.repairs)


@pytest.mark.parametrize("text", ["{'a': 1}", '```{"a": 1}```', '\ufeff{"a": 1}', '{"a": 1,}', '"{\\"a\\": 1}"', "[1]"])
def test_strict_reading_makes_no_repair(text: str) -> None:
    assert refused(text, strict=True).code in {"not-json", "not-an-object"}


def test_an_error_names_the_exact_place() -> None:
    error = refused('{\n  "q": "NaN",\n  "x": NaN\n}')
    assert (error.code, error.position, error.line, error.column) == ("not-finite", 23, 3, 8)
    assert "NaN" in error.snippet
    assert str(error).startswith("line 3, column 8: found 'NaN'")


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ('{"a": {"k": 1}, "b": 2, "a": 3}', "duplicate-key", 24),
        ('{"a": "\\beta"}', "latex-escape", 7),
        ('{"a": 1, "b": [1, 2', "truncated", 14),
        ('{"a": 1} and {"b": 2}', "several-objects", 13),
        ('{"a": "\\ud800"}', "lone-surrogate", 7),
        ('{"a": "x\\u0000"}', "nul", 8),
        ('{"a": 10-5}', "not-json", 8),
        ('{"a": x}', "not-json", 6),
        ("{'a': '\\x41'}", "ambiguous-escape", 7),
        ('{"a":' * 65 + "1" + "}" * 65, "too-deep", 320),
        ('{"a": 12345678901234567890123456789012345678901}', "too-many-digits", 6),
        ("[1]", "not-an-object", 0),
    ],
)
def test_an_error_points_at_the_fault(text: str, code: str, position: int) -> None:
    error = refused(text)
    assert (error.code, error.position) == (code, position)


def test_the_message_says_what_to_write_instead() -> None:
    assert "double the backslash: \\\\b" in str(refused('{"tex": "\\beta"}'))
    assert "write each key once" in str(refused('{"a": 1, "a": 2}'))
    assert "quoted string" in str(refused('{"a": yes}'))


def test_a_message_is_short_and_printable_whatever_the_text() -> None:
    error = refused("{'" + "k\x1b\u202e" * 400 + "': x y z}" * 3)
    assert len(str(error)) <= 200
    assert len(error.snippet) <= 40
    assert str(error).isprintable()


def test_an_error_survives_a_process_boundary() -> None:
    error = refused("{'a': ")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.code, copy.position) == (str(error), error.code, error.position)


def test_text_beyond_the_limits_is_refused_unread() -> None:
    assert refused('{"a": "' + "x" * MAX_STRICT_CHARS + '"}').code == "too-large"
    assert refused("{'a': '" + "x" * MAX_REPAIR_CHARS + "'}").code == "too-large"
    assert len(read_json('{"a": "' + "x" * MAX_REPAIR_CHARS + '"}').value["a"]) == MAX_REPAIR_CHARS


def test_a_fault_in_long_text_keeps_its_own_code() -> None:
    filler = "x" * MAX_REPAIR_CHARS
    assert refused(f'{{"a": "{filler}", "a": 1}}').code == "duplicate-key"
    assert refused(f'{{"a": "{filler}", "b": NaN}}').code == "not-finite"


def test_deep_text_is_refused_however_little_stack_is_left() -> None:
    def at_depth(frames: int) -> str:
        return at_depth(frames - 1) if frames else refused("[" * 5000).code

    assert at_depth(sys.getrecursionlimit() // 2) == "too-deep"


def test_maths_fields_are_guarded_at_every_depth_and_no_other_field_is() -> None:
    text = '{"steps": [{"tex": "\\theta"}], "note": "\\theta"}'
    assert read_json(text, maths_fields=("lhs",)).value["note"] == "\theta"
    assert refused(text, maths_fields=("tex",)).code == "latex-escape"
    assert refused(text, maths_fields={"steps"}).position == text.index("\\theta")


def test_any_json_value_is_read_where_any_is_expected() -> None:
    for value in (None, True, 0, -1.5, "x", [], [1, {"a": None}], {}):
        assert read_json(json.dumps(value), expect="any").value == value
    assert read_json("[1, 'a',]", expect="any").repairs == ("single-quotes", "trailing-comma")
