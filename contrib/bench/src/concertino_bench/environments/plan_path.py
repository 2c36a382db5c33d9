"""Plan-Path: a grid with walls, a start and a goal; moves go to one of four neighbours.

The invariant: the state is the text of all moves that were made, so it can only be one that legal moves lead to. The
oracle is a breadth-first search from the goal, which gives the fewest moves from every cell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, Literal, get_args

from concertino.strategies.role_workflow import Stepped

from . import rewards
from .acting import ActingEnvironment, Judged, Ran, Turn, UnreadableAction, refuse_snapshot
from .reading import MOVES, read_moves
from .splits import symmetries

Cell = tuple[int, int]
View = Literal["grid", "words", "both"]
SIDES = range(4, 21)
"""Sides of grids; the paper's is 10."""
MOST_WALLS = 0.35
"""Share of cells that may be walls; above it, few grids have a way."""


@dataclass(frozen=True)
class Grid:
    """A grid: `#` is a wall, `S` the start, `G` the goal, `.` anything else.

    Raises:
        ValueError: the rows differ in length, hold other characters, or not one start and one goal.
    """

    rows: tuple[str, ...]

    def __post_init__(self) -> None:
        text = "".join(self.rows)
        if not self.rows or len({len(row) for row in self.rows}) != 1 or set(text) - set("#.SG"):
            raise ValueError(f"rows={self.rows!r}: expected texts of one length, of '#', '.', 'S' and 'G'")
        if text.count("S") != 1 or text.count("G") != 1:
            raise ValueError(f"rows={self.rows!r}: expected one 'S' and one 'G'")

    def find(self, sign: str) -> Cell:
        """The cell of a sign, counted from 0."""
        at = "".join(self.rows).index(sign)
        return divmod(at, len(self.rows[0]))

    @cached_property
    def start(self) -> Cell:
        """Where a run begins."""
        return self.find("S")

    @cached_property
    def goal(self) -> Cell:
        """Where it is to end."""
        return self.find("G")

    def free(self, cell: Cell) -> bool:
        """Whether a cell lies in the grid and is not a wall."""
        row, column = cell
        return 0 <= row < len(self.rows) and 0 <= column < len(self.rows[0]) and self.rows[row][column] != "#"

    @cached_property
    def distances(self) -> dict[Cell, int]:
        """The fewest moves to the goal, for every cell from which there is a way."""
        # From the goal: one search gives the distances of all cells.
        found = {self.goal: 0}
        waiting = deque([self.goal])
        while waiting:
            cell = waiting.popleft()
            for step in MOVES.values():
                near = _moved(cell, step)
                if near not in found and self.free(near):
                    found[near] = found[cell] + 1
                    waiting.append(near)
        return found

    def shortest(self, start: Cell | None = None) -> str | None:
        """A way with the fewest moves; None if there is none."""
        cell, moves = start or self.start, ""
        if cell not in self.distances:
            return None
        while self.distances[cell]:
            for move, step in MOVES.items():
                near = _moved(cell, step)
                if self.distances.get(near) == self.distances[cell] - 1:
                    cell, moves = near, moves + move
                    break
        return moves

    def manhattan(self, cell: Cell) -> int:
        """Rows and columns between a cell and the goal."""
        return abs(cell[0] - self.goal[0]) + abs(cell[1] - self.goal[1])


class PlanPath(ActingEnvironment):
    """One grid to walk in.

    Args:
        rows: of the grid, as `Grid` has them.
        at_once: moves that an action may have; by default four for each cell.
        view: what is observed: `grid`; `words`, which neighbours are free and on which side the goal lies, for policies
            that cannot read a grid; or `both`.
    """

    domain = "plan-path"

    def __init__(self, rows: Sequence[str], at_once: int | None = None, view: View = "grid") -> None:
        super().__init__()
        self._view = _check_view(view)
        self.grid = Grid(tuple(rows))
        cells = len(self.grid.rows) * len(self.grid.rows[0])
        self.most_at_once, self.most = at_once or 4 * cells, 8 * cells
        self._begin()

    def _begin(self) -> None:
        self._moves, self._cell = "", self.grid.start

    @property
    def moves(self) -> str:
        """All moves that were made."""
        return self._moves

    @property
    def cell(self) -> Cell:
        """Where the walker is, counted from 0."""
        return self._cell

    def snapshot(self) -> Any:
        """The moves that were made."""
        return self._moves

    def restore(self, snapshot: Any) -> None:
        """Walk those moves."""
        if not isinstance(snapshot, str) or len(snapshot) > self.most:
            raise refuse_snapshot(snapshot, "the moves so far as a text of U, D, L and R")
        cell, made, illegal = self._walk(self.grid.start, snapshot)
        if illegal or made < len(snapshot):
            raise refuse_snapshot(snapshot, "moves that are legal in this grid")
        self._moves, self._cell = snapshot, cell

    @property
    def reached(self) -> bool:
        """At the goal."""
        return self._cell == self.grid.goal

    @property
    def done(self) -> bool:
        """At the goal, or all moves of the task are used up."""
        return self.reached or len(self._moves) >= self.most

    @property
    def observation(self) -> str:
        """The grid with `A` for the walker, and both places; in words, what lies around."""
        if self.reached:
            return "\n".join([*self._drawn(), f"You are at the goal, after {len(self._moves)} moves."])
        if self._view == "words":
            places = f"You are at {_place(self._cell)}, the goal is at {_place(self.grid.goal)}."
            return f"{places}\n{self._around()}"
        lines = [*self._drawn(), f"You (A) are at {_place(self._cell)}, the goal (G) is at {_place(self.grid.goal)}."]
        return "\n".join([*lines, *([self._around()] if self._view == "both" else [])])

    def _drawn(self) -> list[str]:
        rows = [list(row.replace("S", ".")) for row in self.grid.rows]
        rows[self._cell[0]][self._cell[1]] = "A"
        return ["".join(row) for row in rows]

    def _around(self) -> str:
        near = ((move, _moved(self._cell, step)) for move, step in MOVES.items())
        sides = ", ".join(f"{move} {'free' if self.grid.free(cell) else 'wall'}" for move, cell in near)
        down, right = self.grid.goal[0] - self._cell[0], self.grid.goal[1] - self._cell[1]
        row = "same row" if not down else "below" if down > 0 else "above"
        column = "same column" if not right else "right" if right > 0 else "left"
        return f"Neighbours: {sides}. The goal: {row}, {column}."

    def judge(self, action: Any, ran: Sequence[Ran] = ()) -> Stepped:
        """Make the moves up to the goal, or up to the first that is not legal."""
        moves = read_moves(action, self.most_at_once)
        if self.done:
            return self._stepped(Judged(len(moves)), 0.0, "Nothing was done: the task is over.")
        before = self.grid.manhattan(self._cell)
        # The state is the text of all moves, so their number has a limit.
        self._cell, made, illegal = self._walk(self._cell, moves[: self.most - len(self._moves)])
        self._moves += moves[:made]
        first = self.grid.manhattan(self.grid.start)
        reward = rewards.plan_path_team(before, self.grid.manhattan(self._cell), first)
        return self._stepped(Judged(len(moves), made, illegal), reward, f"{made} of {len(moves)} moves were made.")

    def _walk(self, cell: Cell, moves: str) -> tuple[Cell, int, str]:
        """Where moves lead, how many were made, and why the next one was not."""
        for made, move in enumerate(moves):
            if cell == self.grid.goal:
                return cell, made, ""
            near = _moved(cell, MOVES[move])
            if not self.grid.free(near):
                inside = 0 <= near[0] < len(self.grid.rows) and 0 <= near[1] < len(self.grid.rows[0])
                what = "there is a wall" if inside else "it leaves the grid"
                return cell, made, f"move {made + 1}, {move}, from {_place(cell)}: {what}."
            cell = near
        return cell, len(moves), ""

    def turn_reward(self, turn: Turn, ran: Sequence[Ran] = ()) -> rewards.TurnReward:
        """A.1.4. A list of moves is scored move by move; moves behind the first illegal one are as bad as it is.

        A list that ends before the goal is scored as if the moves that the shortest way still needs were bad, so that
        writing less never earns more; as far as an action may have so many. Where it may have one, this is the paper's
        score.
        """
        twin = PlanPath(self.grid.rows, self.most_at_once)
        twin.restore(turn.before)
        before = twin.cell
        scores = {"planner": self._planner(before, turn.action)}
        if turn.printed is not None:
            scores["programmer"] = self._programmer(before, turn)
        # An action that cannot be read made no move: the team came no nearer.
        reward = 0.0
        if turn.action is not None:
            try:
                reward = twin.step(turn.action).reward
            except UnreadableAction:
                reward = 0.0
        return rewards.TurnReward(self.domain, reward, scores)

    def _planner(self, cell: Cell, action: Any) -> dict[str, float]:
        try:
            moves = read_moves(action, self.most_at_once)
        except UnreadableAction:
            return {"format": 0.0, "legal": 0.0, "shortest": 0.0}
        legal = best = 0
        needed = min(self.grid.distances.get(cell, 0), self.most_at_once)
        for move in moves:
            near = _moved(cell, MOVES[move])
            if cell == self.grid.goal or not self.grid.free(near):
                break
            legal += 1
            # Cells without a way have -1 on both sides, which never differ by one.
            best += self.grid.distances.get(near, -1) == self.grid.distances.get(cell, -1) - 1
            cell = near
        # What stands behind the goal is not walked; what is missing on the way to it counts as given and bad.
        given = legal if cell == self.grid.goal else max(len(moves), needed)
        return {
            "format": 1.0,
            "legal": rewards.share_of(legal, given),
            "shortest": rewards.share_of(best, given),
        }

    def _programmer(self, cell: Cell, turn: Turn) -> dict[str, float]:
        try:
            moves = read_moves(turn.printed, self.most_at_once)
        except UnreadableAction:
            return {"format": 0.0, "runs": 0.0, "potential": 0.0}
        end, made, illegal = self._walk(cell, moves)
        kept = rewards.potential_kept(-self.grid.manhattan(cell), -self.grid.manhattan(end))
        return {"format": 1.0, "runs": float(turn.ran and made > 0 and not illegal), "potential": kept}


def draw(
    rng: Random, side: int, walls: float | None = None, at_once: int | None = None, view: View = "grid"
) -> dict[str, Any] | None:
    """A grid at random; None if it has no way, or a way of fewer moves than half its side.

    Args:
        walls: share of cells that are walls; drawn by default.
        at_once: moves that an action may have.
        view: as in `PlanPath`.
    """
    if at_once is not None and at_once < 1:
        raise ValueError(f"at_once={at_once}: expected 1 or more moves, or nothing")
    _check_view(view)
    share = rng.uniform(0.15, 0.35) if walls is None else walls
    if not 0 <= share <= MOST_WALLS:
        raise ValueError(f"walls={share}: expected a share from 0 to {MOST_WALLS}")
    cells = [(row, column) for row in range(side) for column in range(side)]
    # A list and not a set is drawn from: the order of a set does not follow the seed.
    blocked = set(rng.sample(cells, int(share * len(cells))))
    start, goal = rng.sample([cell for cell in cells if cell not in blocked], 2)
    signs = {start: "S", goal: "G", **dict.fromkeys(blocked, "#")}
    grid = Grid(tuple("".join(signs.get((row, column), ".") for column in range(side)) for row in range(side)))
    if grid.distances.get(start, 0) < side // 2:
        return None
    # What is as usual is left out, so that tasks keep their digests.
    options = {"at_once": at_once, "view": view if view != "grid" else None}
    return {"rows": list(grid.rows), **{name: value for name, value in options.items() if value}}


def canonical(instance: Mapping[str, Any]) -> str:
    """The same text for turned and mirrored grids."""
    return "\n".join(min(symmetries(tuple(instance["rows"]))))


def question(instance: Mapping[str, Any]) -> str:
    """The task in words."""
    rows, most = instance["rows"], instance.get("at_once")
    limit = "" if most is None else f" An action may have {most} move{'s' if most > 1 else ''}."
    return (
        f"Find a way through a grid of {len(rows)} rows and {len(rows[0])} columns, from the start S to the goal G. "
        "# is a wall, . is free. A move goes to a neighbouring cell: U one row up, D one row down, L one column to the "
        "left, R one column to the right. Moves must stay in the grid and out of walls; use as few as you can. "
        f'Give your moves as a JSON list, such as ["U", "R"].{limit}\n\n' + "\n".join(rows)
    )


def oracle(instance: Mapping[str, Any]) -> dict[str, Any]:
    """The fewest moves, and a way that has them."""
    moves = Grid(tuple(instance["rows"])).shortest()
    return {"moves": moves, "length": None if moves is None else len(moves)}


def _check_view(view: View) -> View:
    if view not in get_args(View):
        raise ValueError(f"view={view!r}: expected {', '.join(get_args(View))}")
    return view


def _moved(cell: Cell, step: Cell) -> Cell:
    return cell[0] + step[0], cell[1] + step[1]


def _place(cell: Cell) -> str:
    return f"row {cell[0] + 1}, column {cell[1] + 1}"
