"""A largest one-to-one matching, so that what fits twice is not used up by the wrong partner."""

from __future__ import annotations

from collections.abc import Sequence


def match(fits: Sequence[Sequence[bool]]) -> list[int | None]:
    """Match rows with columns, one to one, as many as possible.

    Args:
        fits: for each row, which columns would do.

    Returns:
        For each row the index of its column, None where it has none.
    """
    column_of: dict[int, int] = {}
    row_of: dict[int, int] = {}
    for row in range(len(fits)):
        _place(row, fits, column_of, row_of)
    return [column_of.get(row) for row in range(len(fits))]


def _place(first: int, fits: Sequence[Sequence[bool]], column_of: dict[int, int], row_of: dict[int, int]) -> None:
    """Give a row a column, if need be by moving others: along the shortest path to a column that is free."""
    came: dict[int, int] = {}
    rows = [first]
    for row in rows:
        for column, fit in enumerate(fits[row]):
            if not fit or column in came:
                continue
            came[column] = row
            # The row that holds this column may find another one, so it is asked next.
            if column in row_of:
                rows.append(row_of[column])
                continue
            free: int | None = column
            while free is not None:  # back along the path: each row takes what it reached, and frees what it had
                mover = came[free]
                had = column_of.get(mover)
                column_of[mover], row_of[free] = free, mover
                free = had
            return
