"""A file of one's own as a task set: columns are named, in Python or in three lines of TOML.

    path = "questions.jsonl"
    question = "text"
    answer = "gold"

The invariant: a declaration says everything; nothing is guessed from the rows, and an unknown key is an error.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from concertino.schema import suggestion

from concertino_bench.tasks.task import DataError, Task, TaskSet

from .row_values import brief, is_number, kind_of, number_text
from .rows import DataRow, checked
from .streaming import id_of, stream

SEVERAL = ("answers", "masbench")
"""Kinds whose tasks have several answers: a list in the answer column is one each. Elsewhere the first is the answer
and the others are aliases."""

NO_ANSWER = ("code", "program", "calls", "state", "environment")
"""Kinds whose answers are not compared, so that the answer column may be missing."""

_COLUMN = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Column:
    """The name of a column, where else a fixed text would stand."""

    name: str


@dataclass(frozen=True, slots=True)
class OwnColumns:
    """What is read from which column.

    Attributes:
        question: column of the question; may be left out where there is a template.
        answer: column of the answer: a text, a number, or a list of them.
        id: column of the id; without it, tasks are numbered by row.
        aliases: column of further right answers, a text or a list; for kinds with several answers a list for each.
        kind: of all tasks, or the `Column` that says it.
        grader: name of the grader of all tasks, or the `Column` that says it; it is put into the metadata.
        split: of all tasks, or the `Column` that says it.
        metadata: columns that are kept.
        template: text of the question, with columns as `{name}`; `{{` writes a brace.
    """

    question: str = ""
    answer: str = ""
    id: str = ""
    aliases: str = ""
    kind: str | Column = "text"
    grader: str | Column = ""
    split: str | Column = ""
    metadata: Sequence[str] = ()
    template: str = ""


def jsonl(
    *,
    path: str | Path,
    question: str = "question",
    answer: str = "answer",
    id: str = "",
    aliases: str = "",
    kind: str | Column = "text",
    grader: str | Column = "",
    split: str | Column = "",
    metadata: Sequence[str] = (),
    template: str = "",
) -> Iterator[Task]:
    """The tasks of a file of one's own.

    Args:
        path: JSON Lines, JSON, CSV or TSV, or the `.toml` that declares one, which then says everything else too.
        question: column, as are `answer`, `id`, `aliases` and the names in `metadata`; see `Columns`.

    Raises:
        DataError: the file, the declaration or a row is wrong.
    """
    columns = OwnColumns(question, answer, id, aliases, kind, grader, split, metadata, template)
    if Path(path).suffix == ".toml":
        if columns != OwnColumns("question", "answer"):
            raise DataError(f"{path}: columns are given beside a declaration; expected one of both: write them into it")
        return load_toml(path).load()
    return _tasks(path, Path(path).name.split(".")[0], columns)


def load_toml(path: str | Path) -> TaskSet:
    """The task set that a TOML file declares.

    Its keys are `path` (counted from the file's folder), those of `Columns`, and `name` and `summary` of the set. Where
    `kind`, `grader` or `split` differ from row to row, write `kind = { column = "type" }`.

    Args:
        path: of the declaration.

    Returns:
        The set; its `load` takes `path`, for another file with the same columns.

    Raises:
        DataError: the declaration is wrong; says the line.
    """
    data = _declaration(path)
    name = str(data.pop("name", Path(path).stem))
    summary = str(data.pop("summary", f"Tasks that {Path(path).name} declares."))
    declared = data.pop("path", None)
    if not declared:
        raise DataError(f"{path}: no key 'path'; expected the file of the tasks: path = \"questions.jsonl\"")
    columns = _columns(path, data)
    file = Path(path).parent / declared

    def load(*, path: str | Path = file) -> Iterator[Task]:
        return _tasks(path, name, columns)

    return TaskSet(name, summary, load)


# -- a row -------------------------------------------------------------------------------------------------------------


def _tasks(path: str | Path, name: str, columns: OwnColumns) -> Iterator[Task]:
    return stream(path, lambda row: _task(name, row, columns))


def _task(name: str, row: DataRow, columns: OwnColumns) -> Task:
    kind = _given(row, columns.kind)
    answers, aliases = _answers(row, kind, columns)
    metadata = {column: row.data[column] for column in columns.metadata if row.needed(column)}
    if columns.aliases and kind in SEVERAL:
        metadata["aliases"] = _lists(row, columns.aliases, len(answers))
    elif columns.aliases or aliases:
        aliases += row.plains(columns.aliases) if row.column(columns.aliases) else []
        metadata["aliases"] = [*dict.fromkeys(alias for alias in aliases if alias not in answers)]
    grader = _given(row, columns.grader)
    if grader:
        metadata["grader"] = grader
    question = _rendered(row, columns.template) if columns.template else row.plain(columns.question)
    # A declared id column must be there in each row; a row number in its place would change with the file's order.
    own_id = id_of(name, row, columns.id) if columns.id and row.needed(columns.id) else id_of(name, row)
    return Task(own_id, question, tuple(answers), kind, split=_given(row, columns.split), metadata=metadata)


def _answers(row: DataRow, kind: str, columns: OwnColumns) -> tuple[list[str], list[str]]:
    """The answers, and further ones that are as right."""
    if not columns.answer or (kind in NO_ANSWER and row.column(columns.answer) is None):
        return [], []
    texts = row.plains(columns.answer)
    return (texts, []) if kind in SEVERAL else (texts[:1], texts[1:])


def _lists(row: DataRow, column: str, count: int) -> list[Any]:
    lists = row.items(column)
    texts = [text for each in lists for text in (each if isinstance(each, list) else [None])]
    if len(lists) != count or not all(isinstance(text, str) for text in texts):
        row.wrong(column, f"{count} lists of texts, one list for each answer")
    return lists


def _given(row: DataRow, what: str | Column) -> str:
    return row.plain(what.name) if isinstance(what, Column) else what


def _rendered(row: DataRow, template: str) -> str:
    def fill(match: re.Match[str]) -> str:
        if match[1] is None:
            # `{{` and `}}` stand for one brace each.
            return match[0][0]
        value = row.data[row.needed(match[1])]
        if is_number(value):
            return number_text(value)
        if not isinstance(value, str):
            row.wrong(match[1], "a text or a number, since it stands in the template")
        return value

    return _COLUMN.sub(fill, template)


# -- a declaration -----------------------------------------------------------------------------------------------------

_KEYS = ("name", "summary", "path", *(each.name for each in fields(OwnColumns)))


def _declaration(path: str | Path) -> dict[str, Any]:
    file = checked(path, (".toml",))
    try:
        text = file.read_text(encoding="utf-8-sig")
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: invalid TOML ({error}); correct the line") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8; expected UTF-8: convert the file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; check the file and its rights") from error
    unknown = next((key for key in data if key not in _KEYS), None)
    if unknown is not None:
        step = suggestion(unknown, _KEYS)
        raise DataError(f"{path}:{_line_of(text, unknown)}: unknown key {unknown!r}; {step}")
    for key in ("name", "summary", "path"):
        if key in data and not isinstance(data[key], str):
            raise DataError(f"{path}:{_line_of(text, key)}: {key} is {kind_of(data[key])}; expected a text in quotes")
    return data


def _columns(path: str | Path, data: dict[str, Any]) -> OwnColumns:
    read: dict[str, Any] = {}
    for key, value in data.items():
        read[key], expected = _setting(key, value)
        if read[key] is None:
            line = _line_of(Path(path).read_text(encoding="utf-8-sig"), key)
            raise DataError(f"{path}:{line}: {key} is {brief(value)}; expected {expected}")
    columns = OwnColumns(**read)
    if not columns.question and not columns.template:
        raise DataError(f"{path}: neither 'question' nor 'template'; expected a column: question = \"text\"")
    if not columns.answer and columns.kind not in NO_ANSWER and isinstance(columns.kind, str):
        kinds = ", ".join(NO_ANSWER)
        raise DataError(f"{path}: no key 'answer'; expected a column: answer = \"gold\" (only {kinds} have none)")
    return columns


def _setting(key: str, value: Any) -> tuple[Any, str]:
    """What a key says, None if it is not what was expected; and what was."""
    if key == "metadata":
        fits = isinstance(value, list) and all(isinstance(name, str) for name in value)
        return value if fits else None, "a list of columns"
    if key not in ("kind", "grader", "split"):
        expected = "the name of a column, as text" if key != "template" else "a text"
        return value if isinstance(value, str) and value else None, expected
    if isinstance(value, Mapping) and list(value) == ["column"] and isinstance(value["column"], str):
        value = Column(value["column"])
    return value if isinstance(value, str | Column) and value else None, 'a text, or { column = "…" }'


def _line_of(text: str, key: str) -> int:
    lines = text.splitlines()
    pattern = re.compile(rf'\s*\[*\s*["\']?{re.escape(key)}\b')
    return next((number for number, line in enumerate(lines, 1) if pattern.match(line)), 1)
