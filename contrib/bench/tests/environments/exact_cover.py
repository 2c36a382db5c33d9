"""Knuth's algorithm X with sets: a second solver of Sudoku, which shares nothing with the package's."""

from math import isqrt


def count_solutions(grid: list[int], size: int, limit: int) -> int:
    """How many solutions a grid has, at most `limit`."""
    block = isqrt(size)
    rows = {}
    for r in range(size):
        for c in range(size):
            for v in range(1, size + 1):
                if grid[r * size + c] in (0, v):
                    b = (r // block) * block + c // block
                    rows[r, c, v] = [("cell", r, c), ("row", r, v), ("column", c, v), ("block", b, v)]
    columns: dict[tuple[str, int, int], set[tuple[int, int, int]]] = {}
    for row, needs in rows.items():
        for need in needs:
            columns.setdefault(need, set()).add(row)
    if len(columns) < 4 * size * size:
        return 0
    return _search(columns, rows, limit)


def _search(columns: dict, rows: dict, limit: int) -> int:  # type: ignore[type-arg]
    if not columns:
        return 1
    column = min(columns, key=lambda need: len(columns[need]))
    found = 0
    for row in list(columns[column]):
        taken = _select(columns, rows, row)
        found += _search(columns, rows, limit - found)
        _deselect(columns, rows, row, taken)
        if found >= limit:
            break
    return found


def _select(columns: dict, rows: dict, row: tuple) -> list:  # type: ignore[type-arg]
    taken = []
    for need in rows[row]:
        for other in columns[need]:
            for each in rows[other]:
                if each != need:
                    columns[each].remove(other)
        taken.append(columns.pop(need))
    return taken


def _deselect(columns: dict, rows: dict, row: tuple, taken: list) -> None:  # type: ignore[type-arg]
    for need in reversed(rows[row]):
        columns[need] = taken.pop()
        for other in columns[need]:
            for each in rows[other]:
                if each != need:
                    columns[each].add(other)
