"""DROP: spans with numbers, dates and words, against figures worked out by hand and every pairing tried."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from concertino_bench import DataError, Task
from concertino_bench.graders import DropSpans
from concertino_bench.graders.matching import heaviest
from concertino_bench.graders.spans import drop_scores
from concertino_bench.loaders.drop import drop


@pytest.mark.parametrize(
    ("found", "gold", "em", "f1"),
    [
        (["3"], ["3"], 1, 1.0),
        (["3.0"], ["3"], 1, 1.0),
        (["1,200"], ["1200"], 1, 1.0),
        (["4"], ["3"], 0, 0.0),
        (["3 yards"], ["3"], 0, 0.67),
        (["4 yards"], ["3 yards"], 0, 0.0),
        (["The Bears"], ["bears"], 1, 1.0),
        (["Chicago Bears"], ["Bears"], 0, 0.67),
        (["Ann", "Bob"], ["Bob", "Ann"], 1, 1.0),
        (["Ann"], ["Ann", "Bob"], 0, 0.5),
        (["Ann", "Bob", "Cid"], ["Ann"], 0, 0.33),
        (["Ann", "Ann"], ["Ann", "Bob"], 0, 0.5),
        (["3 March 1990"], ["3 March 1990"], 1, 1.0),
        (["March 1990"], ["3 March 1990"], 0, 0.8),
        (["April"], ["3 March 1990"], 0, 0.0),
        (["forty-two"], ["forty two"], 1, 1.0),
    ],
)
def test_spans_are_scored_as_drop_scores_them(found: list[str], gold: list[str], em: float, f1: float) -> None:
    assert drop_scores(found, gold) == (em, f1)


def test_the_published_cases_of_token_f1_without_numbers_agree(shared_data: Path) -> None:
    file = shared_data / "lighteval_metrics" / "f1_score.json"
    if not file.is_file():
        pytest.skip(f"{file} is not there")
    # Bags of words with repeats have another F1, and that script keeps the articles: only what both define is compared.
    for case in json.loads(file.read_text(encoding="utf-8"))["test_cases"]:
        golds = case["doc"]["choices"]
        expected = case["expected_output"]["f1"]
        if expected in (0.0, 1.0):
            assert max(drop_scores(case["model_response"]["text"], [gold])[1] for gold in golds) == expected


def test_pairs_are_the_heaviest_of_all() -> None:
    random = Random(3)
    for _ in range(150):
        rows, columns = random.randint(0, 5), random.randint(1, 5)
        weights = [[random.choice((0.0, 0.25, 0.5, random.random())) for _ in range(columns)] for _ in range(rows)]
        pairs = heaviest(weights)
        used = [column for column in pairs if column is not None]
        assert len(set(used)) == len(used) == min(rows, columns)
        wide = [*range(columns), *[None] * rows]
        best = max(
            sum(weights[row][column] for row, column in enumerate(order) if column is not None)
            for order in itertools.permutations(wide, rows)
        )
        assert sum(weights[row][column] for row, column in enumerate(pairs) if column is not None) == pytest.approx(
            best
        )


@pytest.mark.parametrize(
    ("text", "verdict", "f1"),
    [
        ("The answer is 3.", "right", 1.0),
        ("Ann; Bob", "wrong", 0.0),
        ("", "unparsable", None),
    ],
)
def test_an_answer_is_read_from_what_was_said(text: str, verdict: str, f1: float | None) -> None:
    grade = DropSpans().judge(Task("t", "?", ("3",), "spans"), text)
    assert (grade.verdict, grade.values.get("f1")) == (verdict, f1)


def test_the_best_of_several_golds_and_of_both_readings_counts() -> None:
    task = Task("t", "?", ("Ann",), "spans", metadata={"golds": [["Ann"], ["Ann", "Bob"], ["March 3, 1990"]]})
    for text in ("Ann", "Ann and Bob", "Bob; Ann", "March 3, 1990"):
        assert DropSpans().judge(task, text).verdict == "right", text


def test_a_task_without_spans_is_refused() -> None:
    for task in (Task("t", "?", (), "spans"), Task("t", "?", (), "spans", metadata={"golds": ["Ann"]})):
        with pytest.raises(ValueError, match="expected lists of spans"):
            DropSpans().check(task)


def test_both_published_forms_of_drop_are_read(tmp_path: Path) -> None:
    answer = {"number": "", "date": {"day": "3", "month": "March", "year": "1990"}, "spans": []}
    other = {"number": "", "date": {}, "spans": ["3 March"]}
    pairs: list[dict[str, Any]] = [
        {"question": "When?", "query_id": "q1", "answer": answer, "validated_answers": [other, answer]},
        {"question": "How many?", "query_id": "q2", "answer": {"number": "12", "date": {}, "spans": []}},
    ]
    file = tmp_path / "drop_dataset_dev.json"
    file.write_text(json.dumps({"nfl_1": {"passage": "On 3 March …", "qa_pairs": pairs}}), encoding="utf-8")
    first, second = drop(path=file)
    assert (first.id, first.metadata["golds"]) == ("q1", [["3 March 1990"], ["3 March"]])
    assert (second.id, second.answers) == ("q2", ("12",))
    assert first.question.startswith("On 3 March …\n\nWhen?")
    row = {"query_id": "q3", "passage": "A.", "question": "Who?", "answers_spans": {"spans": ["Ann", "Bob"]}}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (third,) = drop(path=tmp_path / "rows.jsonl")
    assert (third.id, third.answers) == ("q3", ("Ann", "Bob"))
    pairs[1]["answer"] = {"number": "", "date": {}, "spans": []}
    file.write_text(json.dumps({"nfl_1": {"passage": "On", "qa_pairs": pairs}}), encoding="utf-8")
    with pytest.raises(DataError, match="expected a number, a date or spans"):
        list(drop(path=file))
