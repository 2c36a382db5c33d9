"""How many rows of a file may be wrong: none, unless that is allowed.

The invariant: only a row is left out, and its error is kept. What is wrong with a file as a whole, such as a missing
column name in the header or a damaged archive, is always an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from concertino_bench.tasks.task import DataError

_ALLOWED: ContextVar[SkippedRows | None] = ContextVar("concertino_bench_skipped_rows", default=None)


class SkippedRows:
    """The rows that were left out, and how many more may be.

    Args:
        limit: rows that may be left out.
    """

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self.refused = False
        self._errors: dict[str, DataError] = {}

    @property
    def errors(self) -> Sequence[DataError]:
        """The error of each row that was left out, in order."""
        return list(self._errors.values())

    def leave_out(self, error: DataError) -> None:
        """Leave out the row that an error is about.

        Raises:
            DataError: no more rows may be left out.
        """
        # A file is read twice where an id seems to be there twice; a row that was counted is not counted again.
        if str(error) in self._errors:
            return
        if len(self._errors) >= self.limit:
            self.refused = True
            if not self.limit:
                raise error
            allowed = f"{self.limit} bad {'row' if self.limit == 1 else 'rows'} may be left out, and this is one more"
            raise DataError(f"{error} ({allowed})") from error
        self._errors[str(error)] = error


def allowed_now() -> SkippedRows:
    """What `skip_bad_rows` allows here; nothing without it."""
    return _ALLOWED.get() or SkippedRows()


@contextmanager
def skip_bad_rows(limit: int) -> Iterator[SkippedRows]:
    """Leave out rows that are wrong, in all files whose loaders are called in this block.

        with skip_bad_rows(3) as skipped:
            tasks = list(gsm8k(path="test.jsonl"))
        print(skipped.errors)

    Args:
        limit: rows of all these files together; one more is an error.

    Raises:
        ValueError: `limit` is below 0.
    """
    if limit < 0:
        raise ValueError(f"skip_bad_rows({limit}); expected a whole number from 0")
    skipped = SkippedRows(limit)
    token = _ALLOWED.set(skipped)
    try:
        yield skipped
    finally:
        _ALLOWED.reset(token)
