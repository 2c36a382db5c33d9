"""What a plugin returned becomes plain JSON data of bounded size, or is refused with its type."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pydantic
import pytest
from concertino.executor.content import BadResult, to_content, truncate
from hypothesis import given
from hypothesis import strategies as st

LIMIT = 1000
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


class Colour(str):
    __slots__ = ()


@dataclasses.dataclass
class Point:
    x: int
    y: int


class City(pydantic.BaseModel):
    name: str
    people: int | None = None


@given(JSON, st.sampled_from([0, LIMIT, 100 * LIMIT]))
def test_json_data_passes_unchanged_and_as_a_copy(value: Any, shown: int) -> None:
    content, text = to_content(value, LIMIT, shown)
    assert content == value
    assert json.dumps(content) == json.dumps(value)
    assert containers(content).isdisjoint(containers(value))
    whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    assert text == whole or (text == "" and (len(whole) <= shown or not isinstance(value, (str, list, dict))))


def containers(value: Any) -> set[int]:
    """Which lists and dicts a value is made of."""
    if not isinstance(value, (list, dict)):
        return set()
    inner = value.values() if isinstance(value, dict) else value
    return {id(value)}.union(*map(containers, inner))


@pytest.mark.parametrize("shown", [0, 100 * LIMIT])
@pytest.mark.parametrize(
    ("value", "content"),
    [
        (Point(1, 2), {"x": 1, "y": 2}),
        (City(name="Oslo"), {"name": "Oslo", "people": None}),
        ((1, (2, 3)), [1, [2, 3]]),
        ({1: "a"}, {"1": "a"}),
        (Colour("red"), "red"),
    ],
)
def test_near_relatives_of_json_are_converted(value: Any, content: Any, shown: int) -> None:
    found, _ = to_content(value, LIMIT, shown)
    assert found == content
    assert type(found) is type(content)


@pytest.mark.parametrize("shown", [0, 100 * LIMIT])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "float that is not JSON"),
        ([float("inf")], "list that is not JSON"),
        ({1, 2}, "type set; expected JSON data"),
        (object(), "type object"),
        (b"bytes", "type bytes"),
        (iter([1]), "type list_iterator"),
        ({(1, 2): 3}, "dict that is not JSON"),
        ("x" * (LIMIT + 1), "1001 characters; at most 1000 bytes"),
        (["x" * LIMIT, "x"], "1000 bytes"),
        ({"x" * LIMIT: "x"}, "1000 bytes"),
        ([[]] * 300_000, "200000 values"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_not_json_or_too_large_is_refused(value: Any, said: str, shown: int) -> None:
    with pytest.raises(BadResult, match=said):
        to_content(value, LIMIT, shown)


def test_a_long_text_is_cut_in_the_middle_and_says_how_much_is_missing() -> None:
    text = "".join(str(n % 10) for n in range(1000))
    shown, missing = truncate(*to_content(text, LIMIT, 90), 90)
    assert shown == f"{text[:60]}\n[... 910 characters cut ...]\n{text[-30:]}"
    assert missing == 910


@pytest.mark.parametrize("value", ["x" * 90, 12345678901234567890, None, True, {"a": 1}, []])
def test_what_fits_is_not_touched(value: Any) -> None:
    assert truncate(*to_content(value, LIMIT, 90), 90) == (value, 0)


@given(st.lists(st.text(max_size=20), max_size=30), st.integers(1, 200))
def test_long_data_becomes_text_and_no_character_is_lost_uncounted(value: list[str], limit: int) -> None:
    shown, missing = truncate(*to_content(value, 10_000, limit), limit)
    text = json.dumps(value, ensure_ascii=False)
    if missing:
        assert isinstance(shown, str)
        assert len(text) - missing == limit
        assert shown.startswith(text[: limit * 2 // 3])
    else:
        assert shown == value


def test_a_forgotten_await_is_named() -> None:
    async def ask() -> str:
        return "never"

    forgotten = ask()
    with pytest.raises(BadResult, match=r"returned what 'ask' will give.*; write `await` before it"):
        to_content(forgotten, LIMIT, 0)
    forgotten.close()
