"""A Sokoban solver: A* over pushes. It shares no code with the generator, which plays backwards, nor with the rules.

The invariant: a solution is a list of single steps from the first position, with the fewest pushes; `None` means that
every position was looked at and none is solved. If there are too many to look at, `SearchLimit` says so.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class SearchLimit(Exception):
    """More positions than were allowed."""


class SokobanSolution(NamedTuple):
    """A way to solve a level.

    Attributes:
        moves: steps as U, D, L, R.
        pushes: how many of them push a box; no solution has fewer.
        positions: how many positions were looked at.
    """

    moves: str
    pushes: int
    positions: int


# More pushes than any level has, and still a number that can be compared.
_FAR = 1 << 20
_Node = tuple[int, frozenset[int]]


class _Board:
    """The level as numbers: cell = row * width + column, with a margin of walls."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.width = max(map(len, rows)) + 2
        # With walls all around, no step needs a check of the border, and no step leads to another row.
        margin = "#" * self.width
        text = margin + "".join(f"#{row.ljust(self.width - 2, '#')}#" for row in rows) + margin
        self.steps = {"U": -self.width, "D": self.width, "L": -1, "R": 1}
        self.wall = [sign == "#" for sign in text]
        self.goals = frozenset(cell for cell, sign in enumerate(text) if sign in ".*+")
        self.boxes = frozenset(cell for cell, sign in enumerate(text) if sign in "$*")
        self.player = next(cell for cell, sign in enumerate(text) if sign in "@+")
        self.pushes_left = self._pushes_left(len(text))

    def _pushes_left(self, cells: int) -> list[int]:
        """For each cell the fewest pushes that bring a box to some goal, other boxes left out."""
        left = [_FAR] * cells
        waiting = deque(self.goals)
        for goal in self.goals:
            left[goal] = 0
        while waiting:
            cell = waiting.popleft()
            for step in self.steps.values():
                before, player = cell - step, cell - 2 * step
                # In this order: where `before` is free, `player` is at most in the margin, so its index exists.
                if not self.wall[before] and not self.wall[player] and left[before] == _FAR:
                    left[before] = left[cell] + 1
                    waiting.append(before)
        return left

    def reach(self, player: int, boxes: frozenset[int]) -> dict[int, tuple[int, str]]:
        """The cells that the player can walk to, each with the one before it and the step."""
        found = {player: (player, "")}
        waiting = deque([player])
        while waiting:
            cell = waiting.popleft()
            for name, step in self.steps.items():
                near = cell + step
                if near not in found and not self.wall[near] and near not in boxes:
                    found[near] = (cell, name)
                    waiting.append(near)
        return found


def solve_level(rows: Sequence[str], most: int = 200_000, *, prune: bool = True) -> SokobanSolution | None:
    """Solve a level with the fewest pushes.

    Args:
        rows: of the level, in the usual signs.
        most: positions to look at.
        prune: leave out positions with a box from which alone no goal can be reached.

    Raises:
        SearchLimit: there are more positions.
    """
    board = _Board(rows)
    start: _Node = (board.player, board.boxes)
    came: dict[_Node, tuple[int, _Node | None, str]] = {start: (0, None, "")}
    closed: set[_Node] = set()
    queue: list[tuple[int, int, _Node]] = [(_estimate(board, board.boxes), 0, start)]
    while queue:
        _, _, node = heapq.heappop(queue)
        player, boxes = node
        reach = board.reach(player, boxes)
        # Positions between which the player can walk are one; the smallest cell that it reaches stands for all.
        key = (min(reach), boxes)
        if key in closed:
            continue
        closed.add(key)
        pushes = came[node][0]
        if boxes <= board.goals:
            return SokobanSolution(_way(board, came, node), pushes, len(closed))
        if len(closed) > most:
            raise SearchLimit(f"more than {most} positions; pass a larger `most`")
        for after, name in _pushes(board, boxes, reach, prune):
            # A shorter way is pushed again; the old entry is skipped by `closed` when it comes up.
            if after in came and came[after][0] <= pushes + 1:
                continue
            came[after] = (pushes + 1, node, name)
            # The count of positions breaks ties by age, before the positions themselves are compared.
            heapq.heappush(queue, (pushes + 1 + _estimate(board, after[1]), len(came), after))
    return None


def _pushes(
    board: _Board, boxes: frozenset[int], reach: Mapping[int, tuple[int, str]], prune: bool
) -> Iterator[tuple[_Node, str]]:
    """The positions that one push leads to."""
    for box in boxes:
        for name, step in board.steps.items():
            target = box + step
            if box - step not in reach or board.wall[target] or target in boxes:
                continue
            if not prune or board.pushes_left[target] < _FAR:
                yield (box, (boxes - {box}) | {target}), name


def _estimate(board: _Board, boxes: frozenset[int]) -> int:
    """A lower bound of the pushes that are still needed, which A* requires to find the fewest."""
    # A box that cannot come home counts 1 and not `_FAR`: without pruning, its positions are looked at in their turn.
    return sum(left if (left := board.pushes_left[box]) < _FAR else 1 for box in boxes)


def _way(board: _Board, came: Mapping[_Node, tuple[int, _Node | None, str]], node: _Node) -> str:
    """The steps from the start to a position."""
    parts: list[str] = []
    _, before, name = came[node]
    while before is not None:
        player, boxes = before
        cell = node[0] - board.steps[name]  # from where the box was pushed
        reach = board.reach(player, boxes)
        parts.append(name)
        while cell != player:
            cell, step = reach[cell]
            parts.append(step)
        node = before
        _, before, name = came[node]
    return "".join(reversed(parts))
