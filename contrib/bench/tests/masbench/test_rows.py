"""Rows and tasks: the public columns, all texts; nothing is lost on the way; a bad row says what it lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from concertino_bench import Task
from concertino_bench.masbench import generate, make_task
from concertino_bench.masbench.generator import AXES
from concertino_bench.masbench.rows import RowError, from_row, read_jsonl, to_row, write_jsonl

COLUMNS = {"axis", "value", "prompt_json", "reward_model_json", "extra_info_json", "data"}


@pytest.mark.parametrize("axis", AXES)
def test_a_row_has_the_public_columns_and_all_are_texts(axis: str) -> None:
    task = make_task(axis, 4, 0)
    row = to_row(task)
    assert set(row) == COLUMNS
    assert all(isinstance(value, str) for value in row.values())
    assert (row["axis"], row["value"]) == (axis, "4")
    assert json.loads(row["prompt_json"]) == [{"role": "user", "content": task.question}]
    assert json.loads(row["reward_model_json"])["ground_truth"].split("<<horizon>>") == list(task.answers)


@pytest.mark.parametrize("axis", AXES)
def test_a_task_written_and_read_is_the_same(axis: str, tmp_path: Path) -> None:
    tasks = list(generate(axis, 3, 5))
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(write_jsonl(tasks)), encoding="utf-8")
    assert list(read_jsonl(file)) == tasks


def published(**columns: object) -> dict[str, object]:
    row = {
        "axis": "parallel",
        "value": "2",
        "prompt_json": json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]),
        "reward_model_json": json.dumps({"ground_truth": "7<<horizon>> 12"}),
        "extra_info_json": "{}",
        "data": "{}",
    }
    return {**row, **columns}


def test_a_published_row_becomes_a_task() -> None:
    assert from_row(published(), number=5, split="test") == Task(
        "masbench/published-parallel-2-test-5", "Why?", ("7", "12"), "masbench", "parallel", 2, "test"
    )


def test_a_row_without_a_value_takes_its_level_from_the_extra_columns() -> None:
    row = published(axis="combine", extra_info_json=json.dumps({"depth": 8, "split": "train"}))
    del row["value"]
    task = from_row(row)
    assert (task.level, task.split, task.metadata) == (8, "train", {"extra": {"depth": 8, "split": "train"}})
    assert from_row(published(value=None, extra_info_json=None, data=None)).level is None


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"prompt_json": None}, "prompt_json: expected a list of chat messages"),
        ({"prompt_json": "Why?"}, "prompt_json: invalid JSON"),
        ({"prompt_json": "[]"}, "prompt_json: expected a list"),
        ({"prompt_json": [{"role": "user", "content": "Why?"}]}, "prompt_json: expected JSON in a text, got list"),
        ({"reward_model_json": "{}"}, "reward_model_json: expected"),
        ({"reward_model_json": '{"ground_truth": " "}'}, "reward_model_json: expected"),
        ({"extra_info_json": "{"}, "extra_info_json: invalid JSON"),
    ],
)
def test_a_bad_row_says_which_column_is_wrong(columns: dict[str, object], message: str) -> None:
    with pytest.raises(RowError, match=message):
        from_row(published(**columns))


def test_a_bad_line_is_named_with_its_file_and_number(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(f"{json.dumps(published())}\n\n[1]\n", encoding="utf-8")
    with pytest.raises(RowError, match=r"rows\.jsonl, line 3: expected a JSON object"):
        list(read_jsonl(file))


def test_a_task_without_a_question_or_with_a_bare_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="both not empty"):
        Task("x", "", ("7",), "masbench")
    with pytest.raises(ValueError, match="a tuple of texts"):
        Task("x", "?", "7", "masbench")  # type: ignore[arg-type]


def test_a_single_answer_is_had_only_where_there_is_one() -> None:
    assert Task("x", "?", ("7",), "masbench").answer == "7"
    with pytest.raises(ValueError, match="x has 2 answers"):
        _ = Task("x", "?", ("7", "8"), "masbench").answer
