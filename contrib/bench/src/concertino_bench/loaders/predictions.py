"""Recorded answers of models to tasks, with the verdict of those who published them.

Rows hold the answers of several models (GSM8K's example solutions, RouteLLM's pool), or of one. A grader is tried on
them, or a pool is replayed from them, without any model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import DataError

from .bad_rows import SkippedRows, allowed_now
from .grade_school import gold_of, plain_number
from .row_values import brief
from .rows import DataRow, read_rows
from .streaming import id_of

_TEXT = ("output", "solution", "prediction", "response")
_TASK = ("question_id", "task_id", "name", "id")
_RIGHT = ("numeric_correct", "upstream_is_correct", "is_correct", "upstream_is_solved", "is_solved", "correct")


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model answered.

    Attributes:
        task: id of the task.
        model: who answered; empty where the file does not tell.
        text: the whole answer.
        right: the published verdict; None where there is none.
        answer: the gold answer where the file has it, else empty.
        question: the question where the file has it, else empty.
    """

    task: str
    model: str
    text: str
    right: bool | None
    answer: str = ""
    question: str = ""


def read_predictions(path: str | Path) -> Iterator[Prediction]:
    """Recorded answers, one by one.

    Args:
        path: rows with the answer as `output` or `solution`, the task as `question_id`, `task_id` or `name`, and maybe
            `model`, `is_correct` (or `upstream_is_correct`, `is_solved`), `gold`; or several models by name, as columns
            or in the column `models`.
    """
    skipped = allowed_now()
    return _all(read_rows(path, skipped), skipped)


def _all(rows: Iterable[DataRow], skipped: SkippedRows) -> Iterator[Prediction]:
    for row in rows:
        try:
            # All of a row before the first is given, so that a row is left out as a whole.
            found = list(_predictions(row))
        except DataError as error:
            skipped.leave_out(error)
            continue
        yield from found


def _predictions(row: DataRow) -> Iterator[Prediction]:
    table = row.data.get("models", row.data)
    models = table.items() if isinstance(table, dict) else ()
    several = {name: value for name, value in models if isinstance(value, dict) and any(map(value.get, _TEXT))}
    # A row of one model has its answer in a column of its own.
    if not several:
        yield _single(row)
        return
    gold = row.plain("gold") if row.column("gold") else gold_of(row, "ground_truth", "answer")
    for model, value in several.items():
        text = next(value[name] for name in _TEXT if value.get(name))
        if not isinstance(text, str):
            raise row.error(f"the answer of {model!r} is {brief(text)}; expected a text: correct the row")
        right = next((value[name] for name in _RIGHT if name in value), None)
        task = id_of("gsm8k", row, *_TASK)
        yield Prediction(task, model, text, _verdict(row, model, right), plain_number(gold), row.text("question"))


def _single(row: DataRow) -> Prediction:
    row.needed(*_TEXT)
    row.needed(*_TASK)
    gold = row.plain("gold") if row.column("gold") else ""
    right = row.column(*_RIGHT)
    return Prediction(
        id_of("task", row, *_TASK),
        row.text("model", default=""),
        row.text(*_TEXT, default=""),
        _verdict(row, right, row.data[right]) if right else None,
        gold,
        row.text("question", default=""),
    )


def _verdict(row: DataRow, what: str, value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise row.error(f"the verdict of {what!r} is {brief(value)}; expected true or false: correct the row")
    return value
