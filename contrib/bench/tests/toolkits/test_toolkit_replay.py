"""Replays, and the three criteria: which one fails for what."""

from __future__ import annotations

from typing import Any

import pytest
from concertino_bench.toolkits import replay, verify
from concertino_bench.toolkits.criteria import (
    Verification,
    execution_correctness,
    mentions,
    operation_completeness,
    process_fidelity,
)
from concertino_bench.toolkits.replaying import GoldenCall, Operated, replay_async
from toolkit_examples import Books, call, data

LEND_B1 = call("lend", book_id="b1", member_id="m1")
GET_B2 = call("get_book", book_id="b2")
REFUSED = {**call("lend", book_id="b3", member_id="m1"), "fails": True}
GOLDEN = [GET_B2, REFUSED, LEND_B1]


@pytest.fixture
def books() -> Books:
    return Books(data())


def judged(books: Books, calls: list[dict[str, Any]], text: str = "lent until 24 June") -> Verification:
    golden, found = replay(books, GOLDEN), replay(books, calls)
    return verify(
        golden.digest, golden.operated, ["24 June"], found_digest=found.digest, found=found.operated, text=text
    )


def test_a_replay_begins_at_the_database_and_leaves_the_toolkit_alone(books: Books) -> None:
    books.call("lend", {"book_id": "b2", "member_id": "m5"})
    before = books.digest()
    one, two = replay(books, GOLDEN), replay(books, GOLDEN)
    assert one.digest == two.digest
    assert one.faults == ()
    assert one.changed
    assert books.digest() == before
    assert one.operated == Operated(frozenset({("books", "b1"), ("books", "b2")}), frozenset({("books", "b1")}))


async def test_a_replay_that_is_awaited_gives_the_same(books: Books) -> None:
    assert await replay_async(books, GOLDEN) == replay(books, GOLDEN)


def test_a_golden_call_that_fails_or_should_have_failed_is_a_fault(books: Books) -> None:
    wrong = replay(books, [call("drop", book_id="b8"), {**LEND_B1, "fails": True}, call("add", book_id="x", title=1)])
    assert [fault.partition(":")[0] for fault in wrong.faults] == [
        "call 1, drop(book_id='b8')",
        "call 2, lend(book_id='b1', member_id='m1')",
        "call 3, add(book_id='x', title=1)",
    ]
    assert "was meant to fail" in wrong.faults[1]


def test_calls_before_make_the_first_state_and_may_not_fail(books: Books) -> None:
    done = replay(books, [call("give_back", book_id="b1")], before=[LEND_B1])
    assert done.steps[0].outcome.written == {("books", "b1")}
    with pytest.raises(ValueError, match="first state"):
        replay(books, [], before=[REFUSED])


@pytest.mark.parametrize(
    "data",
    [
        {"name": "lend", "arguments": {"a": 1}},
        {"name": "lend", "kwargs": {"a": 1}},
        {"function_name": "lend", "arguments": {"a": 1}},
    ],
)
def test_the_forms_of_calls_in_use_are_read(data: dict[str, Any]) -> None:
    assert GoldenCall.of(data) == GoldenCall("lend", {"a": 1})


@pytest.mark.parametrize("data", [{}, {"name": 3}, {"name": "x", "arguments": "{}"}])
def test_what_is_no_call_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is not a call"):
        GoldenCall.of(data)


def test_the_golden_calls_pass_all_three_criteria(books: Books) -> None:
    verified = judged(books, GOLDEN)
    assert verified.passed
    assert verified.failed == ()


def test_looking_more_up_or_being_refused_more_or_less_often_does_no_harm(books: Books) -> None:
    assert judged(books, [call("titles"), GET_B2, call("get_book", book_id="b3"), LEND_B1]).passed
    assert judged(books, [GET_B2, REFUSED, REFUSED, call("drop", book_id="none"), LEND_B1]).passed


@pytest.mark.parametrize(
    ("calls", "text", "failed"),
    [
        ([GET_B2], "24 June", ("execution", "completeness")),
        ([LEND_B1], "24 June", ("completeness",)),
        ([GET_B2, LEND_B1], "24 May", ("fidelity",)),
        ([GET_B2, call("lend", book_id="b1", member_id="m2")], "24 June", ("execution",)),
        ([GET_B2, call("lend", book_id="b2", member_id="m1")], "24 June", ("execution", "completeness")),
        ([GET_B2, LEND_B1, call("drop", book_id="b2")], "24 June", ("execution",)),
        ([], "", ("execution", "fidelity", "completeness")),
    ],
    ids=["dropped write", "dropped look-up", "fact not told", "wrong member", "wrong book", "extra write", "nothing"],
)
def test_each_deviation_fails_the_criterion_that_it_is_about(
    books: Books, calls: list[dict[str, Any]], text: str, failed: tuple[str, ...]
) -> None:
    verified = judged(books, calls, text)
    assert verified.failed == failed
    assert not verified.passed
    for name in failed:
        assert name in verified.reason


def test_a_state_that_is_right_in_the_end_may_still_lack_an_operation(books: Books) -> None:
    golden = replay(books, [LEND_B1, call("give_back", book_id="b1"), call("drop", book_id="b2")])
    found = replay(books, [call("drop", book_id="b2")])
    assert operation_completeness(golden.operated, found.operated).missing == ("books/b1 not written",)


def test_reads_can_be_left_out_of_completeness() -> None:
    golden = Operated(frozenset({("books", "b1")}), frozenset())
    assert not operation_completeness(golden, Operated()).passed
    assert operation_completeness(golden, Operated(), reads=False).passed
    assert operation_completeness(golden, Operated(frozenset(), frozenset({("books", "b1")}))).passed


def test_the_reason_of_a_wrong_state_names_what_was_changed() -> None:
    wrong = execution_correctness("a" * 64, "b" * 64, [("books", "b7")])
    assert "changed books/b7" in wrong.reason
    assert "changed nothing" in execution_correctness("a", "b", []).reason


def test_operated_records_are_written_and_read_back() -> None:
    operated = Operated(frozenset({("a", "1"), ("a", "0")}), frozenset({("b", "2")}))
    assert operated.to_json() == {"read": [["a", "0"], ["a", "1"]], "written": [["b", "2"]]}
    assert Operated.from_json(operated.to_json()) == operated


@pytest.mark.parametrize(
    ("text", "fact", "said"),
    [
        ("It costs 5 euros.", "5", True),
        ("It costs 15 euros.", "5", False),
        ("It costs 5.5 euros.", "5", False),
        ("It costs 5.00 euros.", "5", True),
        ("It costs $1,234.50 in all", "1234.5", True),
        ("It costs 1,234 in all", "1234", True),
        ("on 2024-05-15", "15", False),
        ("a refund of -20", "20", False),
        ("a refund of -20", "-20", True),
        ("(20)", "20", True),
        ("20%", "20", True),
        ("Sailing S105.", "s105", True),
        ("Sailing S1055", "S105", False),
        ("lent until  24\nJune", "24 June", True),
        ("lent until 124 June", "24 June", False),
        ("mail to ida@holm.example now", "ida@holm.example", True),
        ("anything", "", True),
        ("", "5", False),
    ],
)
def test_a_fact_is_said_as_a_whole_word_or_as_a_number_of_its_value(text: str, fact: str, said: bool) -> None:
    assert mentions(text, fact) is said


def test_one_of_several_wordings_is_enough() -> None:
    assert mentions("That is impossible.", ("cannot", "impossible"))
    assert process_fidelity([("cannot", "impossible"), "no"], "It is impossible.").missing == ("'no'",)
