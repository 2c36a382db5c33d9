"""Rows in the columns of the published data set, written and read.

Every column is a text: `axis`, `value` (the level), `prompt_json` (a list of chat messages), `reward_model_json`
(`{"ground_truth": "7<<horizon>>12"}`), `extra_info_json` and `data` (the whole record). Published rows of the
configuration `combine` have no `value`; the level then stands in `extra_info_json`, or nowhere.

The invariant: `from_row(to_row(task)) == task`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import Task

SEPARATOR = "<<horizon>>"
"""Between several answers."""


class RowError(ValueError):
    """A row lacks a column, or a column does not hold what it should; says which."""


def to_row(task: Task) -> dict[str, str]:
    """The row of a task."""
    record = {
        "id": task.id,
        "question": task.question,
        "answers": list(task.answers),
        "kind": task.kind,
        "axis": task.axis,
        "level": task.level,
        "split": task.split,
        "metadata": dict(task.metadata),
    }
    return {
        "axis": task.axis,
        "value": "" if task.level is None else str(task.level),
        "prompt_json": _dump([{"role": "user", "content": task.question}]),
        "reward_model_json": _dump({"ground_truth": SEPARATOR.join(task.answers)}),
        "extra_info_json": _dump({"id": task.id, "split": task.split}),
        "data": _dump(record),
    }


def from_row(row: Mapping[str, Any], *, number: int = 0, split: str = "") -> Task:
    """The task of a row, generated here or published.

    Args:
        row: at least `prompt_json` and `reward_model_json`; the other columns may be missing.
        number: of the row in its file; published rows have no id of their own.
        split: for published rows, which do not tell it.

    Raises:
        RowError: a column is missing or is not what it should be.
    """
    record = _load(row, "data", {})
    # Rows written here carry the whole task; published ones have other keys in that column.
    if isinstance(record, dict) and record.keys() >= {"id", "question", "answers", "kind", "axis", "metadata"}:
        fields = {**record, "answers": tuple(record["answers"])}
        return Task(**{name: fields[name] for name in Task.__dataclass_fields__ if name in fields})
    extra = _load(row, "extra_info_json", {})
    axis = str(row.get("axis") or "")
    value = row.get("value") or (extra.get("depth") if isinstance(extra, dict) else None)
    level = int(str(value)) if str(value).isdecimal() else None
    split = split or str(extra.get("split", "") if isinstance(extra, dict) else "")
    question, answers = _question(row), _answers(row)
    name = "-".join(part for part in ("published", axis, str(level or ""), split, str(number)) if part)
    metadata = {"extra": extra} if extra else {}
    return Task(f"masbench/{name}", question, answers, "masbench", axis, level, split, metadata)


def write_jsonl(tasks: Iterable[Task]) -> Iterator[str]:
    """One line of JSON per task, each with its line feed."""
    for task in tasks:
        yield _dump(to_row(task)) + "\n"


def read_jsonl(path: str | Path, *, split: str = "") -> Iterator[Task]:
    """The tasks of a file, one by one.

    Raises:
        RowError: a line is not a row, or the file is no text; says which.
        OSError: the file cannot be read.
    """
    with Path(path).open(encoding="utf-8") as file:
        try:
            yield from _rows(file, path, split)
        except UnicodeDecodeError:
            raise RowError(
                f"{path}: not UTF-8 text; expected JSON Lines, as `concertino bench generate` writes"
            ) from None


def _rows(lines: Iterable[str], path: str | Path, split: str) -> Iterator[Task]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise RowError(f"expected a JSON object, got {line[:40]!r}")
            yield from_row(row, number=number, split=split)
        except ValueError as error:
            raise RowError(f"{path}, line {number}: {error}") from error


def _question(row: Mapping[str, Any]) -> str:
    messages = _load(row, "prompt_json", None)
    if not isinstance(messages, list):
        messages = []
    users = [message for message in messages if isinstance(message, dict) and message.get("role") == "user"]
    told = [message["content"] for message in users if message.get("content")]
    if not told or not isinstance(told[-1], str):
        raise RowError("prompt_json: expected a list of chat messages, one of them the user's, as JSON")
    return str(told[-1])


def _answers(row: Mapping[str, Any]) -> tuple[str, ...]:
    reward = _load(row, "reward_model_json", None)
    if not isinstance(reward, dict) or not str(reward.get("ground_truth", "")).strip():
        raise RowError('reward_model_json: expected {"ground_truth": "7"} as JSON')
    return tuple(answer.strip() for answer in str(reward["ground_truth"]).split(SEPARATOR))


def _load(row: Mapping[str, Any], column: str, default: Any) -> Any:
    text = row.get(column)
    if text is None or text == "":
        return default
    if not isinstance(text, str):
        raise RowError(f"{column}: expected JSON in a text, got {type(text).__name__}")
    try:
        return json.loads(text)
    except ValueError as error:
        raise RowError(f"{column}: invalid JSON: {error}") from error


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
