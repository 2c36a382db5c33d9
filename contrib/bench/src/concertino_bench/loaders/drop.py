"""DROP: questions over a paragraph whose answers are numbers, dates or spans of the text.

The invariant: every accepted answer of a row is in `golds`; the first is the task's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import Task

from .row_values import brief, is_number, number_text
from .rows import DataRow
from .streaming import id_of, split_of, stream

_ASK = "Answer with a number, a date, or words of the text; part several answers by semicolons."


def drop(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "spans".

    Args:
        path: rows with `passage`, `question` and `answers_spans`, as in the Parquet files; or the published JSON object
            of passages, such as `drop_dataset_dev.json`.
    """
    return stream(path, lambda row: _tasks(row, split))


def _tasks(row: DataRow, split: str) -> Sequence[Task]:
    if not row.data or not all(isinstance(each, Mapping) and "qa_pairs" in each for each in row.data.values()):
        return [_row_task(row, split)]
    return [
        _pair_task(row, str(each.get("passage") or ""), pair, f"{name}/{number}", split)
        for name, each in row.data.items()
        for number, pair in enumerate(each["qa_pairs"] if isinstance(each["qa_pairs"], list) else [])
    ]


def _row_task(row: DataRow, split: str) -> Task:
    value = row.data[row.needed("answers_spans")]
    spans = value.get("spans") if isinstance(value, Mapping) else None
    if not isinstance(spans, list) or not spans or not all(isinstance(span, str) and span.strip() for span in spans):
        row.wrong("answers_spans", "an object with a list of texts 'spans' that is not empty")
    question = _question(row.text("passage"), row.text("question"))
    return _task(id_of("drop", row, "query_id"), question, [spans], split_of(row, split))


def _pair_task(row: DataRow, passage: str, pair: Any, name: str, split: str) -> Task:
    if not isinstance(pair, Mapping) or not isinstance(pair.get("question"), str) or not passage.strip():
        raise row.error(f"{name}: {brief(pair)}; expected a question of a passage")
    validated = pair.get("validated_answers")
    answers = [pair.get("answer"), *(validated if isinstance(validated, list) else [])]
    golds = [gold for answer in answers if (gold := _gold(answer))]
    if not golds:
        raise row.error(f"{name}: the answer is {brief(pair.get('answer'))}; expected a number, a date or spans")
    return _task(str(pair.get("query_id") or f"drop/{name}"), _question(passage, pair["question"]), golds, split)


def _gold(answer: Any) -> list[str]:
    """The spans of an answer: a number, the parts of a date as one, or the spans that it lists."""
    if not isinstance(answer, Mapping):
        return []
    number: Any = answer.get("number")
    day, spans = answer.get("date"), answer.get("spans")
    if is_number(number) or (isinstance(number, str) and number.strip()):
        return [number_text(number) if is_number(number) else str(number)]
    if isinstance(spans, list) and spans:
        return [span for span in spans if isinstance(span, str) and span.strip()]
    parts = [str(day.get(part) or "").strip() for part in ("day", "month", "year")] if isinstance(day, Mapping) else []
    return [" ".join(filter(None, parts))] if any(parts) else []


def _question(passage: str, question: str) -> str:
    return f"{passage.strip()}\n\n{question.strip()}\n\n{_ASK}"


def _task(name: str, question: str, golds: list[list[str]], split: str) -> Task:
    # A `golds` that repeats an answer adds nothing.
    different = [list(gold) for gold in dict.fromkeys(map(tuple, golds))]
    return Task(name, question, tuple(golds[0]), "spans", split=split, metadata={"golds": different})
