"""The instance guard: what passes, what is refused, and where."""

import sys
from typing import Any

import pytest
from concertino.schema import InstanceRefused, guard_instance

from .nasty import deep


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        1.5,
        "",
        "é\U0001f600",
        [],
        {},
        {"a": [1, {"b": None}]},
        10**40 - 1,
        -(10**40) + 1,
        deep(64),
        deep(64, "k"),
        "x" * 100_000,
    ],
    ids=lambda value: repr(value)[:20],
)
def test_plain_json_within_the_limits_passes(value: Any) -> None:
    guard_instance(value)


@pytest.mark.parametrize(
    ("value", "reason", "pointer"),
    [
        ({"a": [0, float("nan")]}, "not_finite", "/a/1"),
        (float("-inf"), "not_finite", ""),
        ([10**40], "too_many_digits", "/0"),
        (-(10**40), "too_many_digits", ""),
        ({"a/b": {"~": "\ud800"}}, "lone_surrogate", "/a~1b/~0"),
        ({"a": {"\udc00": 1}}, "lone_surrogate", "/a"),
        ({"a": {1: 1}}, "key_not_text", "/a"),
        ([(1, 2)], "not_json", "/0"),
        ({"a": b"x"}, "not_json", "/a"),
        (1j, "not_json", ""),
        (["x" * (3 << 20), "y" * (3 << 20)], "too_large", ""),
        ("x" * (5 << 20), "too_large", ""),
        ([[0] * 600_000, [0] * 600_000], "too_large", "/0"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_anything_else_is_refused_at_its_place(value: Any, reason: str, pointer: str) -> None:
    with pytest.raises(InstanceRefused) as caught:
        guard_instance(value)
    assert caught.value.reason == reason
    assert caught.value.pointer == pointer
    assert len(str(caught.value)) < 300


def test_depth_is_limited_without_recursion() -> None:
    guard_instance(deep(64))
    for depth in (65, 10 * sys.getrecursionlimit()):
        with pytest.raises(InstanceRefused, match="64 levels"):
            guard_instance(deep(depth))


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InstanceRefused) as caught:
        guard_instance(loop)
    assert caught.value.reason == "too_deep"
    twice: dict[str, Any] = {}
    twice["a"] = twice["b"] = twice
    with pytest.raises(InstanceRefused):
        guard_instance(twice)


def test_arrays_are_limited_only_where_their_items_are_compared() -> None:
    value = {"a": list(range(10_001))}
    guard_instance(value)
    with pytest.raises(InstanceRefused) as caught:
        guard_instance(value, max_items=10_000)
    assert (caught.value.reason, caught.value.pointer) == ("too_many_items", "/a")
