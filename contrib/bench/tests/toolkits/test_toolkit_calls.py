"""A toolkit: what a call does to the state, what it does not, and how it looks in a pool."""

from __future__ import annotations

import asyncio
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel, run_call
from concertino_bench import Task
from concertino_bench.toolkits import ToolError, ToolkitWorld, digest, worlds
from concertino_bench.toolkits.toolkit import Database
from toolkit_examples import Books, data


@pytest.fixture
def books() -> Books:
    return Books(data())


def test_functions_have_the_schema_of_their_annotations_and_docstrings(books: Books) -> None:
    functions = books.functions()
    assert list(functions) == [
        "get_book",
        "titles",
        "spoil",
        "lend",
        "give_back",
        "add",
        "corrupt",
        "drop",
        "hand_over",
    ]
    assert functions["get_book"].spec.input_schema["properties"]["book_id"] == {
        "type": "string",
        "description": "such as 'b1'",
    }
    assert functions["lend"].spec.input_schema["required"] == ["book_id", "member_id"]
    assert [name for name, function in functions.items() if function.writes] == [
        "lend",
        "give_back",
        "add",
        "corrupt",
        "drop",
    ]
    assert functions["hand_over"].spec.description == "Hand over to a person."


def test_a_call_that_writes_changes_the_state_and_names_the_record(books: Books) -> None:
    outcome = books.call("lend", {"book_id": "b1", "member_id": "m1"})
    assert outcome.ok
    assert outcome.content["lent_to"] == "m1"
    assert outcome.written == outcome.read == {("books", "b1")}
    assert books.state()["books"]["b1"]["lent_to"] == "m1"
    assert books.changes() == {("books", "b1")}


@pytest.mark.parametrize(
    ("name", "arguments", "error", "broken"),
    [
        ("lend", {"book_id": "b3", "member_id": "m1"}, "b3 is lent to m9", False),
        ("get_book", {"book_id": "b7"}, "book 'b7' not found", False),
        ("lend", {"book_id": "b1"}, "member_id", False),
        ("lend", {"book_id": "b1", "member_id": 7}, "/member_id: expected string, got 7", False),
        ("lend", {"book_id": "b1", "member_id": "m", "weeks": 5}, "/weeks", False),
        ("lent", {}, "there is no tool 'lent'; did you mean lend", False),
        ("add", {"book_id": "b9", "title": 5}, "AttributeError", True),
        ("add", {"book_id": "odd", "title": "x"}, "TypeError", True),
    ],
)
def test_a_call_that_fails_leaves_the_state_as_it_was(
    books: Books, name: str, arguments: dict[str, Any], error: str, broken: bool
) -> None:
    books.call("lend", {"book_id": "b2", "member_id": "m2"})
    before = books.digest()
    outcome = books.call(name, arguments)
    assert not outcome.ok
    assert error in outcome.error
    assert (outcome.broken, outcome.content, outcome.read, outcome.written) == (broken, None, set(), set())
    assert books.digest() == before == digest(books.state())


@pytest.mark.parametrize("how", ["set", "cycle", "nan", "key", "table"])
def test_what_is_no_json_never_gets_into_the_state(books: Books, how: str) -> None:
    outcome = books.call("corrupt", {"how": how})
    assert outcome.broken
    assert books.digest() == digest(data())


def test_a_reading_tool_cannot_change_the_state(books: Books) -> None:
    before = books.digest()
    assert books.call("spoil", {"book_id": "b1"}).ok
    assert books.digest() == before


def test_what_a_call_returns_is_not_part_of_the_state(books: Books) -> None:
    content = books.call("lend", {"book_id": "b1", "member_id": "m1"}).content
    content["lent_to"] = "somebody else"
    given = {"book_id": "b2", "member_id": "m1"}
    books.call("lend", given)
    books.state()["books"].clear()
    books.db["books"]["b1"]["title"] = "lost"
    assert books.state()["books"]["b1"] == {"title": "Book 1", "lent_to": "m1", "log": ["m1"], "weeks": 2}


def test_arguments_are_taken_as_they_are_and_never_converted(books: Books) -> None:
    assert not books.call("lend", {"book_id": "b1", "member_id": 1}).ok
    books.call("lend", {"book_id": "b1", "member_id": "007"})
    assert books.state()["books"]["b1"]["lent_to"] == "007"


def test_the_shared_database_stays_bit_identical_whatever_many_runs_do() -> None:
    original = data()
    database = Database(original)
    before = repr(original)
    for number in range(20):
        run = Books(database)
        run.call("lend", {"book_id": "b1", "member_id": f"m{number}"})
        run.call("drop", {"book_id": "b2"})
        run.call("lend", {"book_id": "b3", "member_id": "x"})
        assert "b2" not in run.state()["books"]
    assert repr(original) == before
    assert database.digest() == digest(data())


def test_going_back_to_a_snapshot_gives_the_state_of_then_and_can_be_repeated(books: Books) -> None:
    books.call("lend", {"book_id": "b1", "member_id": "m1"})
    then, before = books.snapshot(), books.digest()
    for number in range(3):
        books.call("lend", {"book_id": "b2", "member_id": f"m{number}"})
        books.call("give_back", {"book_id": "b1"})
        assert books.digest() != before
        books.restore(then)
        assert books.digest() == before


def test_a_fresh_toolkit_begins_at_the_database(books: Books) -> None:
    books.call("hand_over", {"summary": "x"})
    books.call("lend", {"book_id": "b1", "member_id": "m1"})
    other = books.fresh()
    assert other.digest() == digest(data())
    assert other.call("lend", {"book_id": "b1", "member_id": "m2"}).ok
    assert books.state()["books"]["b1"]["lent_to"] is None


def test_nothing_can_be_called_after_the_matter_was_handed_over(books: Books) -> None:
    assert books.call("hand_over", {"summary": "x"}).ok
    assert books.call("get_book", {"book_id": "b1"}).error == "nothing can be called after hand_over"


def test_a_function_without_a_docstring_or_annotation_is_refused_with_its_name() -> None:
    from concertino_bench.toolkits import Toolkit, reads

    class Silent(Toolkit):
        @reads
        def quiet(self, word) -> str:  # type: ignore[no-untyped-def]
            """Says nothing."""
            return ""

    with pytest.raises(ct.SpecError, match="word"):
        Silent({}).functions()


def test_a_subclass_overrides_a_function_and_keeps_its_mark() -> None:
    class Strict(Books):
        def give_back(self, book_id: str) -> str:
            """Take a book back."""
            raise ToolError("never")

    strict = Strict(data())
    assert strict.call("give_back", {"book_id": "b1"}).error == "never"
    assert strict.functions()["give_back"].writes
    assert Books(data()).call("give_back", {"book_id": "b1"}).ok


# -- in a pool -------------------------------------------------------------------------------------------------------


async def test_a_refusal_is_an_exec_err_whose_text_the_model_reads(books: Books) -> None:
    (lend,) = [tool for tool in books.tools() if tool.name == "lend"]
    seen = await run_call(lend, {"book_id": "b3", "member_id": "m1"})
    assert (seen.status, seen.content) == (ct.Status.EXEC_ERR, "Error: b3 is lent to m9")
    assert seen.error is not None
    assert seen.error.code == "tool_refused"
    wrong = await run_call(lend, {"book_id": "b1"})
    assert wrong.status is ct.Status.PARSE_ERR
    assert [outcome.ok for outcome in books.outcomes] == [False]


def test_tools_say_whether_they_write(books: Books) -> None:
    assert {tool.name: (tool.writes, tool.retry_safe) for tool in books.tools()}["lend"] == (True, False)
    assert {tool.name: (tool.writes, tool.retry_safe) for tool in books.tools()}["get_book"] == (False, True)


def test_each_run_has_a_world_of_its_own_with_members_and_a_state() -> None:
    shared = Books(data())
    task = Task(
        "t",
        "Lend b1.",
        (),
        "state",
        metadata={"before": [{"name": "lend", "arguments": {"book_id": "b2", "member_id": "m2"}}]},
    )
    make = worlds(lambda task: shared)
    one, two = make(task), make(task)
    with ScriptedModel([("lend", {"book_id": "b1", "member_id": "m1"})], "<answer>lent</answer>") as model:
        run = asyncio.run(ct.Orchestrator(model).run("Lend b1.", pool=ct.Pool.of(*one.members())))
    assert run.answer == "lent"
    assert isinstance(one, ToolkitWorld)
    assert one.state()["books"]["b1"]["lent_to"] == "m1"
    assert two.state()["books"]["b1"]["lent_to"] is None
    assert two.state()["books"]["b2"]["lent_to"] == "m2"
    assert shared.digest() == digest(data())


def test_a_world_whose_first_calls_fail_is_not_made() -> None:
    task = Task("t", "?", (), "state", metadata={"before": [{"name": "drop", "arguments": {"book_id": "b8"}}]})
    with pytest.raises(ValueError, match="no such book"):
        worlds(lambda task: Books(data()))(task)
