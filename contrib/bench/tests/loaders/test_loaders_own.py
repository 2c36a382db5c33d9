"""A file of one's own: three lines of TOML, or keywords; what a declaration may say, and how a wrong one is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError, Task
from concertino_bench.loaders import jsonl, load_toml
from concertino_bench.loaders.own import Column

THREE_LINES = 'path = "data/questions.jsonl"\nquestion = "text"\nanswer = "gold"\n'
ROWS = [
    {"text": "How many?", "gold": 4, "nr": "q-1", "part": "test", "sort": "number", "note": {"by": "Ann"}, "x": None},
    {"text": "Which city?", "gold": ["Rome", "Roma"], "nr": 2, "part": "train", "sort": "text", "note": {}, "x": "y"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "data" / "questions.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def declare(folder: Path, text: str) -> Path:
    file = folder / "quiz.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_three_lines_declare_a_task_set_whose_path_counts_from_its_folder(folder: Path) -> None:
    quiz = load_toml(declare(folder, THREE_LINES))
    assert (quiz.name, quiz.world) == ("quiz", None)
    assert list(quiz.load()) == [
        Task("quiz/row-1", "How many?", ("4",), "text"),
        Task("quiz/row-2", "Which city?", ("Rome",), "text", metadata={"aliases": ["Roma"]}),
    ]
    assert list(quiz.load()) == list(quiz.load())


def test_another_file_with_the_same_columns_can_be_given(folder: Path) -> None:
    other = folder / "other.csv"
    other.write_text("gold,text\n7,Days?\n", encoding="utf-8")
    assert [task.answer for task in load_toml(declare(folder, THREE_LINES)).load(path=other)] == ["7"]


def test_everything_that_a_declaration_may_say_is_in_the_tasks(folder: Path) -> None:
    text = THREE_LINES + (
        'name = "legs"\nsummary = "Legs."\nid = "nr"\nkind = { column = "sort" }\nsplit = { column = "part" }\n'
        'grader = "llm-judge"\nmetadata = ["note"]\ntemplate = "Q{nr}: {text} {{short}}"\n'
    )
    quiz = load_toml(declare(folder, text))
    assert (quiz.name, quiz.summary) == ("legs", "Legs.")
    first, second = quiz.load()
    assert first == Task(
        "q-1",
        "Qq-1: How many? {short}",
        ("4",),
        "number",
        split="test",
        metadata={"note": {"by": "Ann"}, "grader": "llm-judge"},
    )
    assert (second.id, second.question) == ("legs/2", "Q2: Which city? {short}")
    assert second.metadata == {"note": {}, "aliases": ["Roma"], "grader": "llm-judge"}


def test_several_answers_are_one_each_for_kinds_that_have_several(folder: Path) -> None:
    tasks = list(load_toml(declare(folder, THREE_LINES + 'kind = "answers"\n')).load())
    assert [task.answers for task in tasks] == [("4",), ("Rome", "Roma")]


def test_a_kind_that_is_not_compared_needs_no_answer(folder: Path) -> None:
    text = 'path = "data/questions.jsonl"\nquestion = "text"\nkind = "environment"\nmetadata = ["note"]\n'
    assert [task.answers for task in load_toml(declare(folder, text)).load()] == [(), ()]


def test_the_same_can_be_said_by_keywords_or_by_naming_the_declaration(folder: Path) -> None:
    path = folder / "data" / "questions.jsonl"
    tasks = list(jsonl(path=path, question="text", answer="gold", kind=Column("sort"), id="nr"))
    assert [(task.id, task.kind) for task in tasks] == [("q-1", "number"), ("questions/2", "text")]
    assert list(jsonl(path=declare(folder, THREE_LINES))) == list(load_toml(declare(folder, THREE_LINES)).load())
    with pytest.raises(DataError, match="columns are given beside a declaration; expected one of both"):
        jsonl(path=declare(folder, THREE_LINES), kind="number")


def test_aliases_have_a_column_of_their_own(folder: Path) -> None:
    path = folder / "aliases.jsonl"
    rows = [{"question": "Q?", "answer": "a", "also": ["b", "a"]}, {"question": "Q!", "answer": "a", "also": "c"}]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert [task.metadata["aliases"] for task in jsonl(path=path, aliases="also")] == [["b"], ["c"]]


def test_aliases_of_several_answers_are_a_list_for_each(folder: Path) -> None:
    path = folder / "several.jsonl"
    path.write_text(json.dumps({"question": "Q?", "answer": ["a", "b"], "also": [["A"], []]}), encoding="utf-8")
    (task,) = jsonl(path=path, kind="answers", aliases="also")
    assert (task.answers, task.metadata["aliases"]) == (("a", "b"), [["A"], []])
    path.write_text(json.dumps({"question": "Q?", "answer": ["a", "b"], "also": ["A"]}), encoding="utf-8")
    with pytest.raises(DataError, match=r"column 'also' is a list .*; expected 2 lists of texts, one list for each"):
        list(jsonl(path=path, kind="answers", aliases="also"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (THREE_LINES.replace("question", "qestion"), r"quiz\.toml:2: unknown key 'qestion'; did you mean 'question'\?"),
        (THREE_LINES + "[columns]\nx = 1\n", r"quiz\.toml:4: unknown key 'columns'; there are name, summary"),
        (THREE_LINES + "kind = 5\n", r'quiz\.toml:4: kind is 5; expected a text, or \{ column = "…" \}'),
        (THREE_LINES + 'split = { colum = "x" }\n', r"quiz\.toml:4: split is \{'colum': 'x'\}; expected a text, or"),
        (THREE_LINES + 'metadata = "note"\n', r"quiz\.toml:4: metadata is 'note'; expected a list of columns"),
        (THREE_LINES + "id = 3\n", r"quiz\.toml:4: id is 3; expected the name of a column"),
        (THREE_LINES + "id\n", r"quiz\.toml: invalid TOML \(.*line 4.*\); correct the line"),
        (THREE_LINES.partition("\n")[2], "no key 'path'; expected the file of the tasks"),
        ('path = "x.jsonl"\nanswer = "gold"\n', "neither 'question' nor 'template'; expected a column"),
        ('path = "x.jsonl"\nquestion = "text"\n', "no key 'answer'; expected a column: answer = \"gold\""),
        ("path = 5\n", r"quiz\.toml:1: path is a number; expected a text in quotes"),
    ],
)
def test_a_wrong_declaration_says_what_was_expected_and_where(text: str, message: str, folder: Path) -> None:
    with pytest.raises(DataError, match=message):
        load_toml(declare(folder, text))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"question": "txt"}, r":1: no column 'txt'; the row has 'text', .*; did you mean 'text'\? Rename it"),
        ({"answer": "golden"}, "did you mean 'gold'"),
        ({"id": "number"}, "no column 'number'"),
        ({"metadata": ["x"]}, "column 'x' is null"),
        ({"template": "{text} {nr} {missing}"}, "no column 'missing'"),
        ({"template": "{note}"}, r"column 'note' is an object .*; expected a text or a number, since it stands in"),
        ({"split": Column("note")}, "column 'note' is an object"),
        ({"answer": "note"}, "column 'note' is an object"),
    ],
)
def test_a_column_that_is_not_as_declared_is_named(options: dict[str, Any], message: str, folder: Path) -> None:
    with pytest.raises(DataError, match=message):
        list(jsonl(path=folder / "data" / "questions.jsonl", **{"question": "text", "answer": "gold"} | options))


def test_a_declaration_that_is_missing_or_no_toml_is_refused(tmp_path: Path) -> None:
    declare(tmp_path, THREE_LINES)
    with pytest.raises(DataError, match=r"file not found; did you mean 'quiz\.toml'\?"):
        load_toml(tmp_path / "quizz.toml")
    (tmp_path / "quiz.yaml").write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"extension '\.yaml'; expected one of \.toml"):
        load_toml(tmp_path / "quiz.yaml")
    with pytest.raises(DataError, match=r"questions\.jsonl: file not found"):
        load_toml(tmp_path / "quiz.toml").load()
