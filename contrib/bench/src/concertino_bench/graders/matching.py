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


def heaviest(weights: Sequence[Sequence[float]]) -> list[int | None]:
    """Match rows with columns, one to one, so that the weights of the pairs add up to as much as possible.

    Args:
        weights: for each row its weight with each column, 0 or more; cubic in their number.

    Returns:
        For each row the index of its column, None where it has none.
    """
    rows, columns = len(weights), len(weights[0]) if weights else 0
    if rows > columns:
        turned = heaviest([[row[column] for row in weights] for column in range(columns)])
        return [turned.index(row) if row in turned else None for row in range(rows)]
    # The Hungarian method with potentials; place 0 of each list is a helper and no row or column.
    of_row, of_column = [0.0] * (rows + 1), [0.0] * (columns + 1)
    held = [0] * (columns + 1)
    for row in range(1, rows + 1):
        held[0] = row
        column, came = _path(weights, held, of_row, of_column)
        while column:
            held[column], column = held[came[column]], came[column]
    places = {held[column]: column - 1 for column in range(1, columns + 1)}
    return [places.get(row) for row in range(1, rows + 1)]


def _path(
    weights: Sequence[Sequence[float]], held: list[int], of_row: list[float], of_column: list[float]
) -> tuple[int, list[int]]:
    """The free column at the end of the best path, and from which column each was reached."""
    count, now = len(held), 0
    least, came, reached = [float("inf")] * count, [0] * count, [False] * count
    while held[now]:
        reached[now] = True
        row = held[now]
        for column in range(1, count):
            slack = -weights[row - 1][column - 1] - of_row[row] - of_column[column]
            if not reached[column] and slack < least[column]:
                least[column], came[column] = slack, now
        best = min((column for column in range(1, count) if not reached[column]), key=lambda place: least[place])
        step = least[best]
        for column in range(count):
            if reached[column]:
                of_row[held[column]] += step
                of_column[column] -= step
            else:
                least[column] -= step
        now = best
    return now, came
