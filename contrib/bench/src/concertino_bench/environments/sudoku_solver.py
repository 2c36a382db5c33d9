"""An exact Sudoku solver: propagation of single candidates, then search at the cell with the fewest.

The invariant: `solutions` gives all of them up to the limit, each once, so `limit=2` decides uniqueness. Candidates of
a cell are the bits of a number; a grid is a flat list of values, 0 for empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isqrt


@lru_cache
def units(size: int) -> tuple[tuple[int, ...], ...]:
    """Rows, columns and blocks as numbers of cells.

    Raises:
        ValueError: the size is not a square.
    """
    block = isqrt(size)
    if size < 4 or block * block != size:
        raise ValueError(f"size={size}: expected a square such as 4, 9 or 16")
    rows = [tuple(range(row * size, (row + 1) * size)) for row in range(size)]
    columns = [tuple(range(column, size * size, size)) for column in range(size)]
    blocks = [
        tuple((top + row) * size + left + column for row in range(block) for column in range(block))
        for top in range(0, size, block)
        for left in range(0, size, block)
    ]
    return (*rows, *columns, *blocks)


@lru_cache
def peers(size: int) -> tuple[tuple[int, ...], ...]:
    """The cells that share a unit with each cell."""
    found: list[set[int]] = [set() for _ in range(size * size)]
    for unit in units(size):
        for cell in unit:
            found[cell].update(unit)
    return tuple(tuple(sorted(cells - {cell})) for cell, cells in enumerate(found))


@lru_cache
def _units_of(size: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    return tuple(tuple(unit for unit in units(size) if cell in unit) for cell in range(size * size))


def conflicts(grid: Sequence[int], size: int) -> list[tuple[int, int]]:
    """Pairs of cells of one unit that hold the same value."""
    near = peers(size)
    return [
        (cell, peer)
        for cell, value in enumerate(grid)
        if value
        for peer in near[cell]
        if peer > cell and grid[peer] == value
    ]


def is_solved(grid: Sequence[int], size: int) -> bool:
    """Whether every unit holds every value."""
    return all({grid[cell] for cell in unit} == set(range(1, size + 1)) for unit in units(size))


def solutions(grid: Sequence[int], size: int, limit: int = 2) -> list[list[int]]:
    """Its solutions, at most `limit`.

    Args:
        grid: values row by row, 0 for empty.
        size: rows of the grid.
        limit: how many to look for.
    """
    candidates = [(1 << size) - 1] * (size * size)
    for cell, value in enumerate(grid):
        if value and not (candidates[cell] & (1 << (value - 1)) and _assign(candidates, cell, value - 1, size)):
            return []
    found: list[list[int]] = []
    _search(candidates, size, limit, found)
    return found


def solve(grid: Sequence[int], size: int) -> list[int] | None:
    """A solution; None if there is none."""
    found = solutions(grid, size, 1)
    return found[0] if found else None


def _search(candidates: list[int], size: int, limit: int, found: list[list[int]]) -> None:
    # `bits & (bits - 1)` clears the lowest bit: something is left where a cell has two candidates or more.
    open_cells = [(bits.bit_count(), cell) for cell, bits in enumerate(candidates) if bits & (bits - 1)]
    if not open_cells:
        found.append([bits.bit_length() for bits in candidates])
        return
    # The cell with the fewest candidates makes the fewest branches.
    _, cell = min(open_cells)
    bits = candidates[cell]
    while bits and len(found) < limit:
        low = bits & -bits
        bits ^= low
        # Each branch propagates in a copy, so giving it up is to forget it.
        twin = candidates.copy()
        if _assign(twin, cell, low.bit_length() - 1, size):
            _search(twin, size, limit, found)


def _assign(candidates: list[int], cell: int, value: int, size: int) -> bool:
    """Leave one candidate in a cell, and what follows from it; False if nothing is left somewhere."""
    bit = 1 << value
    waiting = [(cell, candidates[cell] & ~bit)]  # (cell, candidates that it loses)
    near, around = peers(size), _units_of(size)
    while waiting:
        place, gone = waiting.pop()
        gone &= candidates[place]
        if not gone:
            continue
        left = candidates[place] & ~gone
        if not left:
            return False
        candidates[place] = left
        # One candidate is left, so no peer may keep it.
        if not left & (left - 1):
            waiting.extend((peer, left) for peer in near[place] if candidates[peer] & left)
        for unit in around[place]:
            for only in _hidden(candidates, unit, gone):
                if only is None:
                    return False
                waiting.append(only)
    return not any(candidates[peer] & candidates[cell] for peer in near[cell])


def _hidden(candidates: list[int], unit: tuple[int, ...], gone: int) -> list[tuple[int, int] | None]:
    """What cells lose because they alone may hold one of the values `gone`; None if no cell may hold one."""
    # One pass in bits: what is in `once` and not in `twice` has a single cell of the unit.
    once = twice = 0
    for cell in unit:
        bits = candidates[cell]
        twice |= once & bits
        once |= bits
    if gone & ~once:
        return [None]
    single = gone & once & ~twice
    if not single:
        return []
    lost: list[tuple[int, int] | None] = []
    for cell in unit:
        mine = candidates[cell] & single
        if mine and candidates[cell] != mine:
            if mine & (mine - 1):
                return [None]  # two values that only this cell may hold
            lost.append((cell, candidates[cell] & ~mine))
    return lost
