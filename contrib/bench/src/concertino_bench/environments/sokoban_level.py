"""A Sokoban level: floor, goals, boxes and the player; and positions that can never be solved.

Signs, as in common level files: `#` wall, `.` goal, `$` box, `*` box on a goal, `@` player, `+` player on a goal, and a
blank for floor. The invariant of `is_deadlock`: it is never true of a position that can be solved; a position of which
it is false may still be lost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from .reading import MOVES

Cell = tuple[int, int]
STEPS = tuple(MOVES.values())


@dataclass(frozen=True)
class Level:
    """A level in its first position.

    Raises:
        ValueError: an unknown sign, not one player, no box, or fewer goals than boxes.
    """

    rows: tuple[str, ...]

    def __post_init__(self) -> None:
        text = "".join(self.rows)
        if set(text) - set("#.$*@+ "):
            raise ValueError(f"rows={self.rows!r}: expected texts of '#', '.', '$', '*', '@', '+' and blanks")
        players, boxes, goals = (sum(map(text.count, signs)) for signs in ("@+", "$*", ".*+"))
        if players != 1 or not 1 <= boxes <= goals:
            raise ValueError(
                f"rows={self.rows!r}: {players} players, {boxes} boxes, {goals} goals; expected one player, at least "
                "one box, and a goal for every box"
            )

    def cells(self, signs: str) -> frozenset[Cell]:
        """The cells that hold one of some signs."""
        return frozenset(
            (row, column) for row, line in enumerate(self.rows) for column, sign in enumerate(line) if sign in signs
        )

    @cached_property
    def floor(self) -> frozenset[Cell]:
        """All cells without a wall."""
        return self.cells(".$*@+ ")

    @cached_property
    def goals(self) -> frozenset[Cell]:
        """Where boxes belong."""
        return self.cells(".*+")

    @cached_property
    def boxes(self) -> frozenset[Cell]:
        """Where boxes are at the start."""
        return self.cells("$*")

    @cached_property
    def player(self) -> Cell:
        """Where the player is at the start."""
        return next(iter(self.cells("@+")))

    @cached_property
    def live(self) -> frozenset[Cell]:
        """Cells from which a box that is alone can be pushed to a goal. From all others it never comes back."""
        found, waiting = set(self.goals), list(self.goals)
        while waiting:
            row, column = waiting.pop()
            for down, right in STEPS:
                # Pushed from `behind` to here, the player stood one cell further.
                behind, player = (row - down, column - right), (row - 2 * down, column - 2 * right)
                if behind not in found and behind in self.floor and player in self.floor:
                    found.add(behind)
                    waiting.append(behind)
        return frozenset(found)

    def is_deadlock(self, boxes: Collection[Cell]) -> bool:
        """Whether the position is lost for sure.

        A box stands where it can never reach a goal, or boxes hold each other and one of them is not on a goal. With
        more goals than boxes this holds as well: a box that cannot move, or not to any goal, is lost either way.
        """
        standing = frozenset(boxes)
        if standing - self.live:
            return True
        return any(box not in self.goals and self._frozen(box, standing, self.floor) for box in standing)

    def _frozen(self, box: Cell, boxes: frozenset[Cell], floor: frozenset[Cell]) -> bool:
        """Whether a box can never move again, taking boxes that are asked about already for walls."""
        row, column = box
        # A box that is asked about counts as a wall from here on, so two boxes do not ask about each other for ever.
        inside = floor - {box}
        return all(
            self._held(first, second, boxes, inside)
            for first, second in (((row - 1, column), (row + 1, column)), ((row, column - 1), (row, column + 1)))
        )

    def _held(self, one: Cell, other: Cell, boxes: frozenset[Cell], floor: frozenset[Cell]) -> bool:
        """Whether a box between two cells cannot be pushed along them without being lost."""
        if one not in floor or other not in floor:
            return True
        # Either push would be legal, and lose the box for good.
        if one not in self.live and other not in self.live:
            return True
        return any(near in boxes and self._frozen(near, boxes, floor) for near in (one, other))

    def shown(self, boxes: Collection[Cell], player: Cell) -> list[str]:
        """The rows of a position."""
        lines = []
        for row, line in enumerate(self.rows):
            signs = []
            for column, _ in enumerate(line):
                cell = (row, column)
                goal = cell in self.goals
                if cell not in self.floor:
                    signs.append("#")
                elif cell in boxes:
                    signs.append("*" if goal else "$")
                elif cell == player:
                    signs.append("+" if goal else "@")
                else:
                    signs.append("." if goal else " ")
            lines.append("".join(signs))
        return lines


def parse_level(rows: Sequence[str]) -> Level:
    """A level from its rows; shorter rows are filled with walls, so that nothing can leave it."""
    width = max(map(len, rows), default=0)
    return Level(tuple(row.ljust(width, "#") for row in rows))
