"""MMLU-Pro and other questions with lettered options.

The options are written below the question, one a line, `A. …`; the answer is a letter. The metadata keeps the question
without them as `stem`, and the options as `choices`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from string import ascii_uppercase

from concertino_bench.tasks.task import Task

from .row_values import is_number
from .rows import DataRow
from .streaming import id_of, rest, split_of, stream

_ASK = "Answer with the letter of the right option."


def mmlu_pro(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "choice".

    Args:
        path: rows with `question`, `options` (2 to 26 texts) and `answer` (a letter) or `answer_index` (from 0).

    Returns:
        The tasks; metadata holds `stem`, `choices`, and `category` and `src` where a row has them.
    """
    return stream(path, lambda row: _task(row, split))


def lettered(choices: list[str]) -> str:
    """The options, one a line, each behind its letter."""
    return "\n".join(f"{letter}. {choice}" for letter, choice in zip(ascii_uppercase, choices, strict=False))


def lettered_question(stem: str, choices: list[str], right: int) -> tuple[str, str]:
    """A question with its options below it, and the letter of the right one.

    Args:
        right: its place among the options, from 0.
    """
    return f"{stem}\n\n{lettered(choices)}\n\n{_ASK}", ascii_uppercase[right]


def _task(row: DataRow, split: str) -> Task:
    stem, choices = row.text("question"), _choices(row)
    right = ascii_uppercase.index(_letter(row, len(choices)))
    question, letter = lettered_question(stem, choices, right)
    return Task(
        id_of("mmlu-pro", row, "question_id", "id"),
        question,
        (letter,),
        "choice",
        split=split_of(row, split),
        metadata={"stem": stem, "choices": choices} | rest(row, "category", "src"),
    )


def _choices(row: DataRow) -> list[str]:
    column = row.needed("options", "choices")
    choices = row.texts(column)
    while choices and choices[-1].strip() == "N/A":
        choices = choices[:-1]  # older files fill up to ten
    if not 2 <= len(choices) <= len(ascii_uppercase):
        row.wrong(column, f"2 to 26 options, and there are {len(choices)}; correct the row")
    return choices


def _letter(row: DataRow, count: int) -> str:
    letters = ascii_uppercase[:count]
    index = row.data.get("answer_index")
    if index is not None and (not is_number(index) or index not in range(count)):
        row.wrong("answer_index", f"a number from 0 to {count - 1}")
    if row.column("answer") is None and index is not None:
        return letters[int(index)]
    letter = row.text("answer").strip()
    if len(letter) != 1 or letter not in letters:
        row.wrong("answer", f"a letter from A to {letters[-1]}, one of the {count} options")
    # A file whose options were shuffled for only one of the two columns would grade silently wrong.
    if index is not None and letters[int(index)] != letter:
        raise row.error(f"answer {letter!r} and answer_index {index} ({letters[int(index)]!r}) differ; correct one")
    return letter
