"""Final states and worlds that know themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from concertino_bench import Submission, Task
from concertino_bench.graders import EnvironmentGrader, FinalState
from concertino_bench.graders.final_state import difference
from concertino_bench.toolkits import digest
from concertino_bench.toolkits.toolkit import Database
from hypothesis import given
from hypothesis import strategies as st

STATE = {"users": {"a": {"age": 3, "tags": ["x", "y"]}}, "open": True}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


async def verdict(found: Any, bench: Any, **metadata: Any) -> tuple[str, str]:
    seen = await FinalState().grade(Task("t", "?", (), "state", metadata=metadata), Submission("", state=found), bench)
    return seen.verdict, seen.reason


async def test_the_order_of_names_does_not_matter_and_that_of_a_list_does(no_bench: Any) -> None:
    other = {"open": True, "users": {"a": {"tags": ["x", "y"], "age": 3}}}
    assert (await verdict(other, no_bench, state=STATE))[0] == "right"
    assert (await verdict(other, no_bench, digest=digest(STATE)))[0] == "right"
    other["users"]["a"]["tags"] = ["y", "x"]  # type: ignore[index]
    assert await verdict(other, no_bench, state=STATE) == (
        "wrong",
        "the final state differs at /users/a/tags/0: 'y', expected 'x'",
    )
    assert "has the digest" in (await verdict(other, no_bench, digest=digest(STATE)))[1]


def test_one_and_one_point_nothing_and_a_text_and_true_are_four_things() -> None:
    assert len({digest({"a": value}) for value in (1, 1.0, "1", True)}) == 4


@pytest.mark.parametrize(
    ("found", "where"),
    [
        ({"a": 1}, "/b: missing"),
        ({"a": 1, "b": [1, 2], "c": 0}, "/c: not expected"),
        ({"a": 1, "b": [1]}, "/b: 1 items, expected 2"),
        ({"a": 1.0, "b": [1, 2]}, "/a: 1.0, expected 1"),
        ({"a": 1, "b": [1, 2]}, ""),
    ],
)
def test_a_difference_says_where(found: Any, where: str) -> None:
    assert difference({"a": 1, "b": [1, 2]}, found) == where


@given(values, values)
def test_equal_digests_and_no_difference_are_the_same_thing(one: Any, other: Any) -> None:
    assert difference(one, one) == ""
    if difference(one, other) == "":
        assert digest(one) == digest(other)


async def test_no_state_and_no_json_data_are_unparsable(no_bench: Any) -> None:
    assert (await verdict(None, no_bench, state=STATE))[0] == "unparsable"
    assert (await verdict({"a": {1, 2}}, no_bench, state=STATE))[0] == "unparsable"
    assert (await verdict({1: 2}, no_bench, state=STATE))[0] == "unparsable"


async def test_a_task_with_nothing_to_compare_with_is_refused(no_bench: Any) -> None:
    with pytest.raises(ValueError, match=r"expected metadata\['state'\]"):
        await verdict(STATE, no_bench)
    with pytest.raises(ValueError, match="not JSON data"):
        await verdict(STATE, no_bench, state={"a": object()})


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"reached": True, "reward": 0.0}, "right"),
        ({"reached": False, "done": True}, "wrong"),
        ({"reward": 1}, "right"),
        ({"reward": 0.5, "done": True}, "wrong"),
        ({"done": True}, "right"),
        ({"done": False}, "wrong"),
        ({"reached": "yes"}, "unparsable"),
        ({"reward": float("nan")}, "unparsable"),
        ({}, "unparsable"),
        (None, "unparsable"),
        ([True], "unparsable"),
        ({"reward": True}, "unparsable"),
    ],
)
async def test_the_world_says_whether_its_goal_is_reached(state: Any, expected: str, no_bench: Any) -> None:
    task = Task("t", "?", (), "environment")
    assert (await EnvironmentGrader().grade(task, Submission("I did it", state=state), no_bench)).verdict == expected


async def test_a_reward_is_a_value_and_its_least_is_a_setting(no_bench: Any) -> None:
    seen = await EnvironmentGrader(least=0.5).grade(
        Task("t", "?", (), "environment"), Submission("", state={"reward": 0.5}), no_bench
    )
    assert (seen.verdict, seen.values) == ("right", {"reward": 0.5})
    lost = Submission("", state={"reached": False, "reason": "a box is stuck"})
    seen = await EnvironmentGrader().grade(Task("t", "?", (), "environment"), lost, no_bench)
    assert seen.reason == "the goal is not reached: a box is stuck"


# -- facts that the answer must tell -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "text", "right", "marks"),
    [
        (STATE, "You get $1,234 back, on Monday.", "right", (True, True, True)),
        (STATE, "I will not tell you.", "wrong", (True, False, False)),
        (STATE, "It is 1234.", "wrong", (True, True, False)),
        ({}, "1234, on Mon", "wrong", (False, True, True)),
    ],
)
async def test_a_task_with_facts_is_right_only_if_the_answer_tells_them(
    found: Any, text: str, right: str, marks: tuple[bool, ...], no_bench: Any
) -> None:
    meta = {"digest": digest(STATE), "required": ["1234", ["Monday", "Mon"]]}
    seen = await FinalState().grade(Task("t", "?", (), "state", metadata=meta), Submission(text, state=found), no_bench)
    assert (seen.verdict, seen.marks) == (right, marks)
    assert seen.values == {"state": float(marks[0]), "told": sum(marks[1:]) / 2}
    assert ("does not tell" in seen.reason) == (not all(marks[1:]))
    assert len(seen.expected) == 3


async def test_the_untold_fact_is_named(no_bench: Any) -> None:
    meta = {"state": STATE, "required": ["1234"]}
    seen = await FinalState().grade(Task("t", "?", (), "state", metadata=meta), Submission("", state=STATE), no_bench)
    assert seen.reason == "the final state is right; the answer does not tell '1234'"


def test_a_broken_task_is_found_before_anything_is_graded() -> None:
    for meta in ({}, {"digest": "x", "required": "a fact"}, {"digest": "x", "required": [5]}):
        with pytest.raises(ValueError, match=r"^t: "):
            FinalState().check(Task("t", "?", (), "state", metadata=meta))


@pytest.mark.slow
async def test_a_large_state_does_not_hold_up_the_event_loop(no_bench: Any) -> None:
    large = {"rows": {f"r{n}": {"values": [*range(20)], "name": "x" * 20} for n in range(20_000)}}
    grading = asyncio.create_task(
        FinalState().grade(
            Task("t", "?", (), "state", metadata={"state": large}), Submission("", state=large), no_bench
        )
    )
    turns = 0
    while not grading.done():
        turns += 1
        await asyncio.sleep(0)
    assert (await grading).verdict == "right"
    assert turns > 20  # on the event loop there would be two or three


def test_the_digest_of_data_that_is_not_json_is_refused() -> None:
    with pytest.raises(TypeError, match="the key 1"):
        digest({1: 2})
    with pytest.raises(TypeError, match="the key 1"):
        Database({"t": {"k": {}}}).digest({"t": {1: {}}})
