"""The tasks of a file, one by one, with what every loader checks: ids differ, and texts can be written as UTF-8.

The invariant: memory does not grow with the file, but for one number per task (24 bytes at most): that is how two equal
ids are found. Only then is the file read again, to say on which line the id was before.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from concertino_bench.tasks.task import DataError, Task

from .bad_rows import SkippedRows, allowed_now
from .row_values import is_number, number_text
from .rows import DataRow, read_rows

Make = Callable[[DataRow], "Task | Sequence[Task] | None"]
"""Makes the task of a row, or several; None where a row is none on purpose."""


class DataWarning(UserWarning):
    """Something in a file of tasks is odd, and the loader says how it took it."""


def stream(path: str | Path, make: Make) -> Iterator[Task]:
    """The tasks of a file's rows.

    Raises:
        DataError: the file is missing or of another format; later, a row is wrong, or an id is there twice.
    """
    # One count for both readings, also where the second comes after the block of `skip_bad_rows`.
    skipped = allowed_now()
    return distinct(read_rows(path, skipped), make, lambda: read_rows(path, skipped))


def distinct(rows: Iterable[DataRow], make: Make, again: Callable[[], Iterable[DataRow]]) -> Iterator[Task]:
    """The tasks of rows, as long as no two have one id.

    Args:
        rows: the rows.
        make: makes their tasks.
        again: gives the rows once more.

    Raises:
        DataError: a row is wrong, or its id is that of an earlier one, and `skip_bad_rows` does not allow it.
    """
    return _distinct(rows, make, again, allowed_now())


def _distinct(
    rows: Iterable[DataRow], make: Make, again: Callable[[], Iterable[DataRow]], skipped: SkippedRows
) -> Iterator[Task]:
    seen = Numbers()
    for row in rows:
        try:
            tasks = _made(row, make)
            for task in tasks:
                # The hash and not the id: 8 bytes per task, of which a file may have millions.
                if not seen.add(hash(task.id)):
                    _refuse_second(row, task.id, make, again())
        except DataError as error:
            skipped.leave_out(error)
            continue
        yield from tasks


class Numbers:
    """A set of numbers as one array, open addressing: a fifth of what a set of Python's numbers takes."""

    def __init__(self, size: int = 1 << 10) -> None:
        self.slots = array("q", [0]) * size  # 0 is a free one
        self.count = 0

    def add(self, number: int) -> bool:
        """Put a number in; False if it was there."""
        at = self._place(number)
        if self.slots[at]:
            return False
        # 0 marks a free slot, so the hash 0 shares the place of 1: at worst a false alarm, which is looked into.
        self.slots[at] = number or 1
        self.count += 1
        # Beyond two thirds, open addressing needs ever longer walks to a free slot.
        if 3 * self.count > 2 * len(self.slots):
            larger = Numbers(2 * len(self.slots))
            for each in filter(None, self.slots):
                larger.add(each)
            self.slots = larger.slots
        return True

    def __contains__(self, number: int) -> bool:
        return self.slots[self._place(number)] != 0

    def _place(self, number: int) -> int:
        """Where a number is, or the free slot where it would be."""
        # The size is a power of two, so `&` takes the place of a division.
        number, last = number or 1, len(self.slots) - 1
        at = number & last
        while self.slots[at] not in (0, number):
            at = (at + 1) & last
        return at


def _made(row: DataRow, make: Make) -> Sequence[Task]:
    try:
        made = make(row)
        tasks = [] if made is None else [made] if isinstance(made, Task) else made
        for task in tasks:
            # JSON can write half a surrogate pair, which no model server and no results file takes.
            "\n".join((task.id, task.question, *task.answers)).encode()
        return tasks
    except DataError:
        raise
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise row.error(f"half a surrogate pair ({half!r}) in a text; expected Unicode: correct the escape") from None
    except ValueError as error:
        raise row.error(f"{error}; correct the row") from error


def _refuse_second(row: DataRow, task_id: str, make: Make, rows: Iterable[DataRow]) -> None:
    for earlier in rows:
        if earlier.number >= row.number:
            return  # two ids with one hash
        try:
            tasks = _made(earlier, make)
        except DataError:
            continue  # left out before
        if any(task.id == task_id for task in tasks):
            place = f"line {earlier.line}" if earlier.path == row.path else earlier.place
            raise row.error(
                f"the id {task_id!r} is that of {place} too; expected ids that differ: "
                "remove one of the rows, or change its id"
            )


def id_of(name: str, row: DataRow, *columns: str) -> str:
    """The id of a row's task: a text of these columns as it is, a number behind the set's name, else the row's number.

    Raises:
        DataError: the column holds something else.
    """
    column = row.column(*columns)
    if column is None:
        return f"{name}/row-{row.number}"
    value = row.data[column]
    if is_number(value):
        return f"{name}/{number_text(value)}"
    text = row.text(column)
    # A bare number would clash with that of another set in one evaluation.
    return f"{name}/{text}" if text.isdecimal() else text


def split_of(row: DataRow, given: str) -> str:
    """The split that was given for all rows, else that of the column `split`, else "".

    Raises:
        DataError: the column holds something else than a text.
    """
    return given or row.text("split", default="")


def rest(row: DataRow, *columns: str) -> dict[str, object]:
    """Those of these columns that the row has, as metadata."""
    return {column: row.data[column] for column in columns if row.data.get(column) is not None}
