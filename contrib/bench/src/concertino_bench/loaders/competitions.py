r"""Problems of mathematics competitions: MATH and MATH-500, whose answers are LaTeX, AIME and AMC, whose are numbers.

A row gives its answer, or a list of answers that are all right, or only a solution: then it is what stands in the last
`\boxed{}`. LaTeX stays as it is written; an AIME answer `033` or `33.0` is given as `33`, and the metadata keeps what
was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import Task

from .row_values import is_number
from .rows import DataRow
from .streaming import id_of, rest, split_of, stream

_PROBLEM = ("problem", "question", "Problem", "Question")
_ANSWER = ("answer", "Answer", "expected_answer")
_SOLUTION = ("solution", "Solution")
_IDS = ("unique_id", "id", "ID")
_KEPT = ("subject", "type", "difficulty", "url", "year", "source")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)")
_LEVEL = re.compile(r"(?:level )?(\d+)(?:\.0)?", re.I)


def math(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "math", with the axis "difficulty" where a row tells its level.

    Args:
        path: rows with `problem` and `answer` or `solution`, and maybe `level`, `subject`, `unique_id`. Of a list of
            answers the first is the answer, and the others are as right: `metadata["aliases"]`.
    """
    return stream(path, lambda row: _problem("math", row, split, "math", _answer(row)))


def aime(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "number", whose answers are whole numbers from 0 to 999.

    Args:
        path: rows with `problem` (or `question`) and `answer`, in any of the usual capitals.
    """
    return stream(path, lambda row: _problem("aime", row, split, "number", _contest_answer(row)))


def amc(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "number", or "math" where an answer is not a plain number.

    Args:
        path: rows with `problem` (or `question`) and `answer`; `27.0` is 27.
    """
    return stream(path, lambda row: _either("amc", row, split))


def boxed(text: str) -> str | None:
    r"""What stands in the last box, as the graders read it; None where there is none."""
    from concertino_bench.graders.answers import boxes

    found = boxes(text)
    return found[-1].text if found else None


def _answer(row: DataRow) -> str:
    if row.column(*_ANSWER) is not None:
        return row.plains(*_ANSWER)[0]
    if row.column(*_SOLUTION) is None:
        return row.plain(*_ANSWER)  # says that it is missing
    found = boxed(row.text(*_SOLUTION))
    if not found:
        row.wrong(row.needed(*_SOLUTION), "a solution with its answer in \\boxed{…}; or add a column 'answer'")
    return found


def _contest_answer(row: DataRow) -> str:
    answer = _answer(row)
    number = _plain(answer)
    one = row.column(*_ANSWER) is None or len(row.plains(*_ANSWER)) == 1
    # AIME's answers have three digits; anything else is a row of another competition.
    if not one or number is None or not number.isdecimal() or int(number) > 999:
        row.wrong(row.needed(*_ANSWER, *_SOLUTION), "a whole number from 0 to 999, as in AIME; else load it as 'math'")
    return number


def _either(name: str, row: DataRow, split: str) -> Task:
    answer = _answer(row)
    several = row.column(*_ANSWER) is not None and len(row.plains(*_ANSWER)) > 1
    # The grader of numbers compares with one; that of mathematics takes aliases.
    number = None if several else _plain(answer)
    return _problem(name, row, split, "math" if number is None else "number", answer if number is None else number)


def _plain(answer: str) -> str | None:
    """A number in one way of writing, None for what is not a plain number."""
    text = answer.strip().strip("$").replace(",", "")
    if not _NUMBER.fullmatch(text):
        return None
    whole, _, part = text.removeprefix("+").partition(".")
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    part = part.rstrip("0")
    # AIME writes 033, and the hub's files write 33.0.
    digits = digits.lstrip("0") or "0"
    return f"{sign if digits != '0' or part else ''}{digits}{'.' if part else ''}{part}"


def _problem(name: str, row: DataRow, split: str, kind: str, answer: str) -> Task:
    level = _level(row)
    metadata: dict[str, Any] = rest(row, *_KEPT)
    if row.column(*_SOLUTION):
        metadata["solution"] = row.text(*_SOLUTION)
    written = row.column(*_ANSWER)
    others = row.plains(*_ANSWER)[1:] if written else []
    if others:
        metadata["aliases"] = [*dict.fromkeys(others)]
    elif written and str(row.data[written]) != answer:
        metadata["gold"] = row.data[written]
    return Task(
        id_of(name, row, *_IDS),
        row.text(*_PROBLEM),
        (answer,),
        kind,
        "" if level is None else "difficulty",
        level,
        split_of(row, split),
        metadata,
    )


def _level(row: DataRow) -> int | None:
    """`5`, `5.0` or "Level 5" as 5; None where there is none, and for "Level ?"."""
    value = row.data.get("level")
    match = _LEVEL.fullmatch(str(value)) if isinstance(value, str) or is_number(value) else None
    return int(match[1]) if match else None
