"""Recorded answers: one a row, or several models in one; verdicts are true, false or unknown."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError
from concertino_bench.loaders import read_predictions, skip_bad_rows
from concertino_bench.loaders.predictions import Prediction

PUBLISHED = {
    "question": "How many?",
    "ground_truth": "Many.\nA: 1,018",
    "6b": {"is_correct": False, "solution": "A: 3"},
    "175b": {"is_correct": True, "solution": "A: 1018"},
}


def load(tmp_path: Path, *rows: dict[str, Any]) -> list[Prediction]:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return list(read_predictions(file))


def test_the_models_of_a_published_row_answer_one_question(tmp_path: Path) -> None:
    assert load(tmp_path, PUBLISHED) == [
        Prediction("gsm8k/row-1", "6b", "A: 3", False, "1018", "How many?"),
        Prediction("gsm8k/row-1", "175b", "A: 1018", True, "1018", "How many?"),
    ]


def test_a_wrong_row_is_left_out_as_a_whole_where_that_is_allowed(tmp_path: Path) -> None:
    half = {**PUBLISHED, "175b": {"is_correct": "yes", "solution": "A: 1018"}}
    with pytest.raises(DataError, match="expected true or false"):
        load(tmp_path, half, PUBLISHED)
    with skip_bad_rows(1) as skipped:
        assert len(load(tmp_path, half, PUBLISHED)) == 2
    assert len(skipped.errors) == 1


def test_a_row_with_one_answer_may_lack_model_and_verdict(tmp_path: Path) -> None:
    assert load(tmp_path, {"task_id": "a", "solution": "x"}) == [Prediction("a", "", "x", None)]
    assert load(tmp_path, {"task_id": 3, "output": "", "is_correct": True})[0] == Prediction("task/3", "", "", True)


def test_a_repaired_verdict_counts_before_the_published_one(tmp_path: Path) -> None:
    models = {
        "a": {"output": "37.00", "correct": False, "numeric_correct": True},
        "b": {"output": "3", "correct": False},
    }
    found = load(tmp_path, {"question_id": "q", "question": "Q?", "gold": "37", "models": models})
    assert [(each.model, each.right) for each in found] == [("a", True), ("b", False)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"task_id": "a"}, "no column 'output' or 'solution'"),
        ({"output": "x"}, "no column 'question_id' or 'task_id'"),
        ({"task_id": "a", "output": "x", "is_correct": 1}, "the verdict of 'is_correct' is 1; expected true or false"),
        ({**PUBLISHED, "6b": {"solution": 5}}, "the answer of '6b' is 5; expected a text"),
        ({**PUBLISHED, "ground_truth": "3"}, "expected a solution that ends in"),
    ],
)
def test_what_is_no_recorded_answer_is_refused(row: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"rows\.jsonl:1: .*{message}"):
        load(tmp_path, row)


@pytest.mark.parametrize(
    ("path", "count", "models"),
    [
        ("gsm8k/model_solutions.jsonl", 800, 4),
        ("replay_pool_gsm8k/pool.jsonl", 2400, 6),
        ("code_tasks/humaneval_gpt4_solutions.jsonl", 82, 1),
        ("code_tasks/mbpp_gpt4_solutions.jsonl", 99, 1),
        ("mmlu_pro_outputs/outputs.jsonl", 286, 6),
    ],
)
def test_the_recorded_answers_load_completely(path: str, count: int, models: int, shared_data: Path) -> None:
    predictions = list(read_predictions(shared_data / path))
    assert len(predictions) == count
    assert len(Counter(each.model for each in predictions)) == models


def test_the_last_number_behind_the_marker_has_the_published_verdict(shared_data: Path) -> None:
    """An oracle of two lines, on what OpenAI judged: the reader joins the right answer to the right verdict."""
    for each in read_predictions(shared_data / "gsm8k" / "model_solutions.jsonl"):
        said = each.text.rpartition("A:")[2].strip().replace(",", "").removesuffix(".").removesuffix(".0")
        assert each.right == (said == each.answer.replace(",", "")), each
