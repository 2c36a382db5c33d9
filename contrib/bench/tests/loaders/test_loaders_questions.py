"""Questions over several facts, and questions with options: one shape of task for all the shapes of the files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError, Task
from concertino_bench.loaders import DataWarning
from concertino_bench.loaders.choices import mmlu_pro
from concertino_bench.loaders.multihop import bamboogle, fanoutqa, hotpotqa, musique, two_wiki

SENTENCES = ["Ann was born in Rome. ", " She died in 1900."]
PAIRS = [["Ann", SENTENCES], ["Rome", ["A city."]]]
QUESTION = {"_id": "q1", "question": "Where was Ann born?", "answer": "Rome", "type": "bridge", "level": "easy"}


def load(loader: Callable[..., Any], tmp_path: Path, *rows: dict[str, Any], **options: Any) -> list[Task]:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return list(loader(path=file, **options))


@pytest.mark.parametrize("context", [PAIRS, {"title": ["Ann", "Rome"], "sentences": [SENTENCES, ["A city."]]}])
@pytest.mark.parametrize("facts", [[["Ann", 0], ["Rome", 9]], {"title": ["Ann", "Rome"], "sent_id": [0, 9]}])
def test_both_shapes_of_context_and_of_supporting_facts_are_one(context: Any, facts: Any, tmp_path: Path) -> None:
    (task,) = load(hotpotqa, tmp_path, {**QUESTION, "context": context, "supporting_facts": facts})
    assert task.id == "q1"
    assert task.question == "Where was Ann born?"
    assert (task.kind, task.answer) == ("text", "Rome")
    assert task.metadata == {
        "aliases": [],
        "paragraphs": [
            {"title": "Ann", "text": "Ann was born in Rome. She died in 1900.", "sentences": SENTENCES},
            {"title": "Rome", "text": "A city.", "sentences": ["A city."]},
        ],
        "supporting_facts": [["Ann", 0], ["Rome", 9]],
        "type": "bridge",
        "level": "easy",
    }


def test_paragraphs_are_written_above_the_question_if_asked_for(tmp_path: Path) -> None:
    (task,) = load(two_wiki, tmp_path, {**QUESTION, "context": PAIRS}, paragraphs=True)
    assert task.question == (
        "[1] Ann\nAnn was born in Rome. She died in 1900.\n\n[2] Rome\nA city.\n\nQuestion: Where was Ann born?"
    )
    with pytest.raises(DataError, match="no column 'context' or 'paragraphs'"):
        load(two_wiki, tmp_path, QUESTION, paragraphs=True)


def test_musique_rows_keep_aliases_and_which_paragraphs_support(tmp_path: Path) -> None:
    paragraphs = [{"idx": 0, "title": "Ann", "paragraph_text": "Born in Rome.", "is_supporting": True}]
    row = {
        "id": "2hop__1",
        "question": "Where?",
        "answer": "Rome",
        "answer_aliases": ["Roma", "Rome", "Roma"],
        "answerable": True,
        "paragraphs": paragraphs,
        "question_decomposition": [{"id": 1}],
    }
    (task,) = load(musique, tmp_path, row)
    assert task.metadata["aliases"] == ["Roma"]
    assert task.metadata["paragraphs"] == [{"title": "Ann", "text": "Born in Rome.", "supporting": True}]
    assert task.metadata["question_decomposition"] == [{"id": 1}]


def test_unanswerable_rows_are_left_out_with_one_warning(tmp_path: Path) -> None:
    rows = [{"id": f"q{number}", "question": "Q?", "answer": "A", "answerable": number > 2} for number in range(5)]
    with pytest.warns(DataWarning, match=r"rows\.jsonl:1: a question marked as unanswerable; it and further") as seen:
        tasks = load(musique, tmp_path, *rows)
    assert [task.id for task in tasks] == ["q3", "q4"]
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("columns", "expected", "aliases"),
    [
        ({"answer": ["Rome", "Roma"]}, "Rome", ["Roma"]),
        ({"golden_answers": ["Rome"]}, "Rome", []),
        ({"answer": 1065}, "1065", []),
        ({"answer": "yes", "answer_aliases": "Yes."}, "yes", ["Yes."]),
    ],
)
def test_an_answer_is_a_text_a_number_or_a_list_of_which_the_first_counts(
    columns: dict[str, Any], expected: str, aliases: list[str], tmp_path: Path
) -> None:
    (task,) = load(bamboogle, tmp_path, {"idx": 7, "Question": "Q?", **columns})
    assert (task.id, task.answers, task.metadata["aliases"]) == ("bamboogle/7", (expected,), aliases)


def test_bamboogle_is_read_from_its_csv_file(tmp_path: Path) -> None:
    file = tmp_path / "bamboogle.csv"
    file.write_text('Question,Answer\n"Who, then?",Ann\nWhen?,1900\n', encoding="utf-8")
    assert [(task.id, task.question, task.answer) for task in bamboogle(path=file)] == [
        ("bamboogle/row-1", "Who, then?", "Ann"),
        ("bamboogle/row-2", "When?", "1900"),
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"answer": []}, "column 'answer' is a list"),
        ({"answer": None}, "column 'answer' is null; expected a value: fill it in, or leave the row out"),
        ({"context": {"title": ["a"], "sentences": []}}, "'title' and 'sentences', two lists of equal length"),
        ({"context": [["a", 5]]}, r"column 'context' holds \['a', 5\]; expected paragraphs as"),
        ({"context": "text"}, "a list of paragraphs"),
        ({"supporting_facts": {"title": ["a"], "sent_id": []}}, "'title' and 'sent_id', two lists of equal length"),
        ({"supporting_facts": [["a", "0"]]}, "pairs of a title and a number"),
        ({"supporting_facts": 3}, r"\[\[title, index\], …\]"),
        ({"answer_aliases": [1]}, "a list of texts"),
    ],
)
def test_columns_of_another_shape_are_refused(columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        load(hotpotqa, tmp_path, {**QUESTION, **columns})


def test_answers_of_fanoutqa_are_one_text_each_and_stay_as_they_are_in_the_metadata(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "question": "Q?", "answer": {"x": 1, "y": ["p", 2.5]}},
        {"id": "b", "question": "Q?", "answer": ["Rome", 2006, True]},
        {"id": "c", "question": "Q?", "answer": 12},
    ]
    tasks = load(fanoutqa, tmp_path, *rows)
    assert [task.answers for task in tasks] == [("1", "p, 2.5"), ("Rome", "2006", "yes"), ("12",)]
    assert tasks[0].metadata["keys"] == ["x", "y"]
    assert tasks[1].metadata["ordered"] is False
    assert [task.kind for task in tasks] == ["answers", "answers", "text"]
    assert [task.metadata["gold"] for task in tasks] == [row["answer"] for row in rows]


# -- options -----------------------------------------------------------------------------------------------------------

CHOICE = {"question_id": 70, "question": "Which?", "options": ["x", "y", "N/A"], "answer": "B", "category": "law"}


def test_options_are_lettered_below_the_question(tmp_path: Path) -> None:
    (task,) = load(mmlu_pro, tmp_path, CHOICE)
    assert task.question == "Which?\n\nA. x\nB. y\n\nAnswer with the letter of the right option."
    assert (task.id, task.kind, task.answer) == ("mmlu-pro/70", "choice", "B")
    assert task.metadata == {"stem": "Which?", "choices": ["x", "y"], "category": "law"}


def test_an_index_is_as_good_as_a_letter(tmp_path: Path) -> None:
    row = {key: value for key, value in CHOICE.items() if key != "answer"}
    assert load(mmlu_pro, tmp_path, {**row, "answer_index": 1})[0].answer == "B"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"answer": "C"}, "a letter from A to B, one of the 2 options"),
        ({"answer": "y"}, "a letter from A to B"),
        ({"answer_index": 0}, r"answer 'B' and answer_index 0 \('A'\) differ"),
        ({"answer_index": 2}, "a number from 0 to 1"),
        ({"answer_index": True}, "a number from 0 to 1"),
        ({"options": ["x"]}, "2 to 26 options, and there are 1"),
        ({"options": "['x' 'y']"}, "column 'options' is a text"),
        ({"options": ["x", 2]}, "a list of texts"),
    ],
)
def test_letters_and_options_that_do_not_fit_are_refused(columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        load(mmlu_pro, tmp_path, {**CHOICE, **columns})


# -- real files --------------------------------------------------------------------------------------------------------


def test_hotpotqa_loads_completely_and_its_facts_are_of_its_paragraphs(shared_data: Path) -> None:
    tasks = list(hotpotqa(path=shared_data / "hotpotqa" / "items_150.jsonl", paragraphs=True))
    assert len(tasks) == 150
    for task in tasks:
        titles = {each["title"] for each in task.metadata["paragraphs"]}
        assert {title for title, _ in task.metadata["supporting_facts"]} <= titles
        gold = {each["title"] for each in task.metadata["paragraphs"] if each["supporting"]}
        assert gold == {title for title, _ in task.metadata["supporting_facts"]}
        assert task.question.startswith("[1] ")


@pytest.mark.parametrize(
    ("loader", "name", "count"),
    [(two_wiki, "2wiki_100", 100), (musique, "musique_100", 100), (bamboogle, "bamboogle", 125)],
)
def test_question_sets_load_completely(loader: Any, name: str, count: int, shared_data: Path) -> None:
    tasks = list(loader(path=shared_data / "multihop_questions" / f"{name}.jsonl"))
    assert len(tasks) == count
    assert all(task.answer for task in tasks)


def test_annotated_rows_of_three_sets_load_with_their_paragraphs(shared_data: Path) -> None:
    tasks = list(musique(path=shared_data / "ircot_multihop" / "items_30.jsonl", paragraphs=True))
    assert len(tasks) == 30
    assert Counter(task.id.partition("/")[0] for task in tasks) == {"2wikimultihopqa": 11, "iirc": 10, "musique": 9}
    assert all(task.metadata["paragraphs"] and task.metadata["cot"] for task in tasks)


def test_fanoutqa_loads_completely(shared_data: Path) -> None:
    tasks = list(fanoutqa(path=shared_data / "fanoutqa" / "dev_120.jsonl"))
    assert len(tasks) == 120
    assert Counter(task.kind for task in tasks) == {"answers": 113, "text": 7}


def test_mmlu_pro_loads_completely_with_the_letters_of_the_file(shared_data: Path) -> None:
    path = shared_data / "mmlu_pro_outputs" / "outputs.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    tasks = list(mmlu_pro(path=path))
    assert len(tasks) == 286
    for task, row in zip(tasks, rows, strict=True):
        letter = row["answer"]
        assert task.answer == letter
        assert f"\n{letter}. {row['options'][ord(letter) - 65]}\n" in task.question
