"""The notebook of a stateless orchestrator: documents, code and answers, from whatever a tool returned."""

import json
from typing import Any

import pytest
from concertino.strategies.serial_calls import Notebook
from concertino.strategies.serial_calls.notebook import Attempt, CodeRun, answer_of, code_of, documents_of
from hypothesis import given
from hypothesis import strategies as st

docs = st.lists(st.sampled_from("abcdefgh"), max_size=6)


def test_a_search_leaves_its_best_document_last() -> None:
    assert Notebook(("old",)).with_documents(["best", "next"]).documents == ("old", "next", "best")


def test_a_known_document_is_left_out() -> None:
    assert Notebook(("a", "b")).with_documents(["c", "a"]).documents == ("a", "b", "c")


def test_training_weaves_new_documents_among_the_old() -> None:
    book = Notebook(("a", "b", "c", "d", "e")).with_documents(["y", "x"], woven=True)
    assert book.documents == ("x", "a", "b", "y", "c", "d", "e")
    assert Notebook(("a",)).with_documents(["z", "y"], woven=True).documents == ("a", "y", "z")


@given(docs.map(tuple), docs, st.booleans())
def test_no_document_is_lost(old: tuple[str, ...], new: list[str], woven: bool) -> None:
    assert set(Notebook(old).with_documents(new, woven=woven).documents) == {*old, *new}


def test_code_that_printed_nothing_is_left_out() -> None:
    assert Notebook().with_code("pass", " \n").code == ()


def test_a_notebook_survives_a_round_trip() -> None:
    book = Notebook(("d",), (CodeRun("c", "o"),), (Attempt("m", "a"),))
    assert Notebook.from_json(json.loads(json.dumps(book.to_json()))) == book


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        ("one text", ["one text"]),
        ("", []),
        (None, []),
        (["a", "", "b"], ["a", "b"]),
        ({"results": [{"title": "T", "text": "x"}, {"contents": "y"}]}, ["T\nx", "y"]),
        ({"documents": [{"document": {"content": "z"}}]}, ["z"]),
        ({"text": "alone"}, ["alone"]),
        ([{"score": 3}], ['{"score": 3}']),
    ],
)
def test_documents_are_found_in_what_searches_return(content: Any, documents: list[str]) -> None:
    assert documents_of(content) == documents


@pytest.mark.parametrize(
    ("content", "run"),
    [
        ({"code": "c", "output": "o"}, CodeRun("c", "o")),
        ({"generated_code": "c", "exec_result": "o"}, CodeRun("c", "o")),
        ({"stdout": "o"}, CodeRun("", "o")),
        ({"code": "c", "output": ""}, None),
        ("text", None),
    ],
)
def test_code_is_found_in_what_reasoners_return(content: Any, run: CodeRun | None) -> None:
    assert code_of(content) == run


@pytest.mark.parametrize(
    ("content", "answer"), [(" 42 ", "42"), ({"answer": "a"}, "a"), ({"pred": " b"}, "b"), (None, ""), (7, "7")]
)
def test_an_answer_is_a_text(content: Any, answer: str) -> None:
    assert answer_of(content) == answer
