"""Sudoku with 4, 9 or 16 rows: fill the grid so that no row, column or block holds a value twice.

The invariant: the state is the list of cells that were filled, in the order of the grid; given cells are never in it.
Every generated puzzle has exactly one solution, which the solver proves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from random import Random
from typing import Any

from concertino.strategies.role_workflow import Stepped

from . import rewards
from .acting import ActingEnvironment, Judged, Ran, Turn, UnreadableAction, refuse_snapshot
from .reading import Fill, read_fills
from .splits import symmetries
from .sudoku_solver import conflicts, is_solved, peers, solutions, solve

SIZES = (4, 9, 16)
BLANKS: Mapping[int, int] = {4: 9, 9: 46, 16: 110}
"""Empty cells of a generated puzzle, unless told otherwise; a few less where more would leave a second solution."""
_SIGNS = ".123456789ABCDEFG"


def parse(text: str) -> list[int]:
    """A grid from its signs, row by row: 1 to 9, then A for 10 and so on; 0 or . is empty, blanks are left out.

    Raises:
        ValueError: an unknown sign, or a number of cells that is not a grid.
    """
    signs = [sign.upper() for sign in text if not sign.isspace()]
    unknown = next((sign for sign in signs if sign not in _SIGNS + "0"), None)
    if unknown is not None or len(signs) not in {size * size for size in SIZES}:
        what = f"{unknown!r}" if unknown is not None else f"{len(signs)} cells"
        raise ValueError(f"a grid has 16, 81 or 256 cells of the signs {_SIGNS} and 0; got {what}")
    return [0 if sign == "0" else _SIGNS.index(sign) for sign in signs]


def unparse(grid: Sequence[int]) -> str:
    """The signs of a grid, in one line."""
    return "".join(_SIGNS[value] for value in grid)


class Sudoku(ActingEnvironment):
    """One puzzle to fill.

    Args:
        puzzle: its signs, as `parse` reads them.
    """

    domain = "sudoku"

    def __init__(self, puzzle: str) -> None:
        super().__init__()
        self.given = tuple(parse(puzzle))
        self.size = isqrt(len(self.given))
        if conflicts(self.given, self.size):
            raise ValueError(f"puzzle={puzzle!r}: a value stands twice in a row, column or block")
        self._begin()

    def _begin(self) -> None:
        self._fills: dict[int, int] = {}

    @property
    def grid(self) -> list[int]:
        """All values now, row by row."""
        return [value or self._fills.get(cell, 0) for cell, value in enumerate(self.given)]

    def snapshot(self) -> Any:
        """The filled cells as [row, column, value], counted from 1."""
        return [[cell // self.size + 1, cell % self.size + 1, value] for cell, value in sorted(self._fills.items())]

    def restore(self, snapshot: Any) -> None:
        """Fill those cells."""
        expected = "a list of [row, column, value] that break no rule"
        try:
            fills, whole = read_fills(snapshot, self.size) if snapshot else ([], False)
        except UnreadableAction as error:
            raise refuse_snapshot(snapshot, expected) from error
        twin = Sudoku(unparse(self.given))
        if whole or not isinstance(snapshot, list) or twin._fill(fills)[1]:
            raise refuse_snapshot(snapshot, expected)
        self._fills = twin._fills

    @property
    def reached(self) -> bool:
        """Every cell is filled, and no rule is broken."""
        return len(self._fills) == self.given.count(0) and is_solved(self.grid, self.size)

    @property
    def observation(self) -> str:
        """The rows, `.` for an empty cell, and how many are empty."""
        grid, size = self.grid, self.size
        width = len(str(size))
        lines = [
            " ".join((str(value) if value else ".").rjust(width) for value in grid[row * size : (row + 1) * size])
            for row in range(size)
        ]
        left = grid.count(0)
        return "\n".join([*lines, "The grid is complete." if self.reached else f"{left} cells are empty."])

    def judge(self, action: Any, ran: Sequence[Ran] = ()) -> Stepped:
        """Fill cells up to the first one that breaks a rule; a whole grid replaces what was filled before."""
        fills, whole = read_fills(action, self.size)
        if self.done:
            return self._stepped(Judged(len(fills)), 0.0, "Nothing was done: the grid is complete.")
        # A whole grid is a new solution, and must not fail at a wrong cell that was filled before.
        if whole:
            self._fills = {}
        made, illegal = self._fill(fills)
        reward = float(self.reached)
        told = f"{made} of {len(fills)} cells were taken."
        return self._stepped(Judged(len(fills), made, illegal), reward, told)

    def _fill(self, fills: Sequence[Fill]) -> tuple[int, str]:
        """How many were made, and why the next one was not."""
        near = peers(self.size)
        for made, (row, column, value) in enumerate(fills):
            cell = (row - 1) * self.size + column - 1
            where = f"row {row}, column {column}"
            if self.given[cell]:
                # A given cell with its own value is not a fault: whole grids repeat what is given.
                if self.given[cell] != value:
                    return made, f"{value or 'an empty cell'} at {where}, where {self.given[cell]} is given."
                continue
            if not value:
                self._fills.pop(cell, None)
                continue
            peer = next((p for p in near[cell] if value in (self.given[p], self._fills.get(p))), None)
            if peer is not None:
                other = f"row {peer // self.size + 1}, column {peer % self.size + 1}"
                return made, f"{value} at {where}: it stands at {other} already."
            self._fills[cell] = value
        return len(fills), ""

    def turn_reward(self, turn: Turn, ran: Sequence[Ran] = ()) -> rewards.TurnReward:
        """A.1.3: the planner by what it fills, the programmer by what its script printed; the team in the last turn.

        Fills are legal up to the first that breaks a rule, and cells that are left empty count as not legal, so that
        writing less never earns more.
        """
        twin = Sudoku(unparse(self.given))
        twin.restore(turn.before)
        scores = {"planner": {"format": 0.0, "legal": 0.0, "progress": 0.0}}
        filled, empty = set(twin._fills), twin.grid.count(0)
        if turn.printed is not None:
            scores["programmer"] = self._programmer(turn)
        try:
            solved = twin.step(turn.action).reward
        except UnreadableAction:
            return rewards.TurnReward(self.domain, 0.0, scores, frozenset({"planner"}))
        new = len(set(twin._fills) - filled)
        legal = rewards.share_of(new, max(empty, new + bool(twin.last.illegal)))
        scores["planner"] = {"format": 1.0, "legal": legal, "progress": rewards.progress(new, self.size**2)}
        return rewards.TurnReward(self.domain, solved if turn.final else 0.0, scores)

    def _programmer(self, turn: Turn) -> dict[str, float]:
        twin = Sudoku(unparse(self.given))
        twin.restore(turn.before)
        try:
            twin.step(turn.printed)
        except UnreadableAction:
            return {"format": 0.0, "runs": float(turn.ran), "sane": 0.0}
        return {"format": 1.0, "runs": float(turn.ran), "sane": float(not twin.last.illegal)}


def draw(rng: Random, size: int, blanks: int | None = None) -> dict[str, Any]:
    """A puzzle with one solution: a full grid, cells emptied, and given back where there would be two solutions.

    Args:
        rng: the randomness.
        size: 4, 9 or 16.
        blanks: how many cells to empty.
    """
    wanted = BLANKS[size] if blanks is None else blanks
    if not 1 <= wanted < size * size:
        raise ValueError(f"blanks={wanted}: expected a number from 1 to {size * size - 1}")
    full = _full(rng, size)
    puzzle = full.copy()
    for cell in rng.sample(range(size * size), wanted):
        puzzle[cell] = 0
    # Two solutions already disprove uniqueness; more would only cost time.
    while len(found := solutions(puzzle, size, 2)) > 1:
        other = found[0] if found[0] != full else found[1]
        cell = rng.choice([cell for cell in range(size * size) if other[cell] != full[cell]])
        # A cell in which two solutions differ is given back, so each round rules at least one of them out.
        puzzle[cell] = full[cell]
    return {"puzzle": unparse(puzzle), "size": size}


def canonical(instance: Mapping[str, Any]) -> str:
    """The same text for puzzles that differ by the names of values, turns and mirrors."""
    text, size = instance["puzzle"], instance["size"]
    rows = tuple(text[row * size : (row + 1) * size] for row in range(size))
    # Renamed in order of appearance, so puzzles that differ only by a permutation of values get one name.
    return min(_renamed("".join(turned)) for turned in symmetries(rows))


def question(instance: Mapping[str, Any]) -> str:
    """The task in words."""
    size = instance["size"]
    block = isqrt(size)
    return (
        f"Solve this Sudoku of {size} rows and {size} columns. Fill every empty cell (.) with a number from 1 to "
        f"{size}, so that no row, no column and no block of {block} by {block} holds a number twice. Give either the "
        "whole grid as a JSON list of rows, or a JSON list of [row, column, number], counted from 1, for the cells "
        "to fill; the number 0 empties a cell again.\n\n" + Sudoku(instance["puzzle"]).observation
    )


def oracle(instance: Mapping[str, Any]) -> dict[str, Any]:
    """The solution, in the signs of the puzzle."""
    solved = solve(parse(instance["puzzle"]), instance["size"])
    return {"solution": None if solved is None else unparse(solved)}


def _full(rng: Random, size: int) -> list[int]:
    """A full grid: the plain pattern with its bands, rows, stacks, columns and values shuffled."""
    block = isqrt(size)

    def shuffled() -> list[int]:
        bands = rng.sample(range(block), block)
        return [band * block + row for band in bands for row in rng.sample(range(block), block)]

    rows, columns, values = shuffled(), shuffled(), rng.sample(range(1, size + 1), size)
    pattern = [values[(row * block + row // block + column) % size] for row in rows for column in columns]
    if rng.random() < 0.5:
        return [pattern[column * size + row] for row in range(size) for column in range(size)]
    return pattern


def _renamed(text: str) -> str:
    names: dict[str, str] = {".": "."}
    for sign in text:
        if sign not in names:
            names[sign] = _SIGNS[len(names)]
    return "".join(names[sign] for sign in text)
