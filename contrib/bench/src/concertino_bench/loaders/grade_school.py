"""GSM8K: questions of grade-school mathematics, whose answer is one whole number.

The gold answer is what follows the last `####`, or the last `A:` in the file of recorded solutions. It is given as a
plain number; the text with its calculator marks (`<<16-3-4=9>>9`) stays as it is in the metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from concertino_bench.tasks.task import Task

from .rows import DataRow
from .streaming import id_of, rest, split_of, stream

_MARKERS = ("####", "\nA:")
_WHOLE = re.compile(r"-?\d+")


def gsm8k(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "number".

    Args:
        path: rows with `question` and `answer` (or `ground_truth`), and maybe `id`.

    Returns:
        The tasks; metadata holds `solution`, the gold text as it is, and `gold`, the number as it is written there.
    """
    return stream(path, lambda row: _task(row, split))


def gold_of(row: DataRow, *columns: str) -> str:
    """What follows the last marker in a gold text, with its commas.

    Raises:
        DataError: there is no marker, or no whole number behind it.
    """
    column = row.needed(*columns)
    text = row.text(column)
    # `####` first: a solution may have a line that begins with "A:" before it.
    marker = next((marker for marker in _MARKERS if marker in text), None)
    if marker is None:
        row.wrong(column, "a solution that ends in '#### 42' or 'A: 42'; for plain numbers take the loader 'jsonl'")
    gold = text.rpartition(marker)[2].strip()
    if not _WHOLE.fullmatch(plain_number(gold)):
        raise row.error(f"column {column!r}: {gold!r} behind {marker.strip()!r}; expected a whole number: correct it")
    return gold


def plain_number(text: str) -> str:
    """A number without its thousands separators."""
    return text.replace(",", "").strip()


def _task(row: DataRow, split: str) -> Task:
    gold = gold_of(row, "answer", "ground_truth")
    return Task(
        id_of("gsm8k", row, "id"),
        row.text("question"),
        (plain_number(gold),),
        "number",
        split=split_of(row, split),
        metadata={"gold": gold, "solution": row.text("answer", "ground_truth")} | rest(row, "subject"),
    )
