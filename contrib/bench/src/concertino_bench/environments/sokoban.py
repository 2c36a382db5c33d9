"""Sokoban: push every box onto a goal; boxes cannot be pulled.

The invariant: the state is the text of all steps that were made. Levels are made by playing backwards, from all boxes
on goals, with pulls: so a level is solvable by the way it was made, and the fewest pushes are known before anything
solves it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from concertino.strategies.role_workflow import Stepped

from . import rewards
from .acting import ActingEnvironment, Judged, Ran, Turn, UnreadableAction, refuse_snapshot
from .reading import MOVES, read_moves
from .sokoban_level import STEPS, Cell, parse_level
from .sokoban_solver import solve_level
from .splits import symmetries

BOXES = range(1, 4)
"""Boxes of generated levels."""
SIDE = 6
"""Rows and columns of generated levels, the walls around included, as in the paper."""
_MOST_POSITIONS = 20_000
_Position = tuple[frozenset[Cell], frozenset[Cell]]
"""Boxes, and the cells that the player can walk to."""


class Sokoban(ActingEnvironment):
    """One level to solve.

    Args:
        rows: of the level, in the signs of `Level`.
    """

    domain = "sokoban"

    def __init__(self, rows: Sequence[str]) -> None:
        super().__init__()
        self.level = parse_level(rows)
        cells = len(self.level.floor)
        self.most_at_once, self.most = 8 * cells, 32 * cells
        self._begin()

    def _begin(self) -> None:
        self._moves, self._boxes, self._player = "", self.level.boxes, self.level.player

    @property
    def moves(self) -> str:
        """All steps that were made."""
        return self._moves

    @property
    def boxes(self) -> frozenset[Cell]:
        """Where the boxes are, counted from 0."""
        return self._boxes

    def snapshot(self) -> Any:
        """The steps that were made."""
        return self._moves

    def restore(self, snapshot: Any) -> None:
        """Make those steps."""
        if not isinstance(snapshot, str) or len(snapshot) > self.most or set(snapshot) - set(MOVES):
            raise refuse_snapshot(snapshot, "the steps so far as a text of U, D, L and R")
        boxes, player, made, _ = self._walk(self.level.boxes, self.level.player, snapshot)
        if made < len(snapshot):
            raise refuse_snapshot(snapshot, "steps that are legal in this level")
        self._moves, self._boxes, self._player = snapshot, boxes, player

    @property
    def reached(self) -> bool:
        """Every box is on a goal."""
        return self._boxes <= self.level.goals

    @property
    def lost(self) -> bool:
        """The position can be seen to be lost."""
        return self.level.is_deadlock(self._boxes)

    @property
    def done(self) -> bool:
        """Solved, lost, or all steps of the task are used up."""
        return self.reached or self.lost or len(self._moves) >= self.most

    @property
    def observation(self) -> str:
        """The rows of the position, and how many boxes are on goals."""
        on_goal, boxes = len(self._boxes & self.level.goals), len(self._boxes)
        told = f"{on_goal} of {boxes} boxes are on goals."
        if self.lost:
            told += " This position is lost: a box that is not on a goal can never reach one."
        return "\n".join([*self.level.shown(self._boxes, self._player), told])

    def judge(self, action: Any, ran: Sequence[Ran] = ()) -> Stepped:
        """Make the steps up to the solution, a lost position, or the first step that is not legal."""
        moves = read_moves(action, self.most_at_once)
        if self.done:
            return self._stepped(Judged(len(moves)), 0.0, "Nothing was done: the task is over.")
        left = moves[: self.most - len(self._moves)]
        self._boxes, self._player, made, illegal = self._walk(self._boxes, self._player, left)
        self._moves += moves[:made]
        reward = rewards.sokoban_team(len(self._boxes & self.level.goals), len(self._boxes))
        return self._stepped(Judged(len(moves), made, illegal), reward, f"{made} of {len(moves)} steps were made.")

    def _walk(self, boxes: frozenset[Cell], player: Cell, moves: str) -> tuple[frozenset[Cell], Cell, int, str]:
        """Boxes and player behind some steps, how many were made, and why the next one was not."""
        for made, move in enumerate(moves):
            near, beyond = _moved(player, MOVES[move]), _moved(player, MOVES[move], 2)
            pushes = near in boxes
            if near not in self.level.floor:
                what = "there is a wall."
            elif pushes and beyond in boxes:
                what = "the box cannot be pushed, another one stands behind it."
            elif pushes and beyond not in self.level.floor:
                what = "the box cannot be pushed, a wall stands behind it."
            else:
                player = near
                if pushes:
                    boxes = (boxes - {near}) | {beyond}
                    # The game is over here: later steps must not unsolve a level, and cannot save a lost one.
                    if boxes <= self.level.goals or self.level.is_deadlock(boxes):
                        return boxes, player, made + 1, ""
                continue
            where = f"row {player[0] + 1}, column {player[1] + 1}"
            return boxes, player, made, f"step {made + 1}, {move}, from {where}: {what}"
        return boxes, player, len(moves), ""

    @property
    def potential(self) -> int:
        """A.1.5: minus the sum of each box's distance to the goal that is nearest to it, in rows and columns."""
        goals = self.level.goals
        return -sum(min(abs(box[0] - goal[0]) + abs(box[1] - goal[1]) for goal in goals) for box in self._boxes)

    def turn_reward(self, turn: Turn, ran: Sequence[Ran] = ()) -> rewards.TurnReward:
        """A.1.5. A list of steps is scored step by step; those behind the first illegal one are as bad as it is.

        Steps that are missing count as bad: fewer than the boxes are away from goals cannot solve the level, so writing
        less never earns more. Where a turn has one step, this is the paper's score.
        """
        twin = self._twin(turn.before)
        team = rewards.sokoban_team(len(twin.boxes & self.level.goals), len(twin.boxes))
        scores = {"planner": {"format": 0.0, "legal": 0.0, "deadlock_free": 0.0}}
        if turn.printed is not None:
            scores["programmer"] = self._programmer(turn)
        was_over, away = twin.done, -twin.potential
        try:
            twin.step(turn.action)
        except UnreadableAction:
            return rewards.TurnReward(self.domain, team, scores)
        # A step behind the end earns 0, though the boxes still stand where they stand.
        if not was_over:
            team = twin.reward
        given = twin.last.made if twin.reached else max(twin.last.given, away)
        free = twin.last.made - int(twin.lost)  # a lost position ends the walk, so only the last step leads to one
        scores["planner"] = {
            "format": 1.0,
            "legal": rewards.share_of(twin.last.made, given),
            "deadlock_free": rewards.share_of(max(0, free), given),
        }
        return rewards.TurnReward(self.domain, team, scores)

    def _programmer(self, turn: Turn) -> dict[str, float]:
        twin = self._twin(turn.before)
        before = twin.potential
        try:
            twin.step(turn.printed)
        except UnreadableAction:
            return {"format": 0.0, "runs": 0.0, "potential": 0.0}
        runs = turn.ran and twin.last.made > 0 and not twin.last.illegal
        return {
            "format": 1.0,
            "runs": float(runs),
            "potential": rewards.potential_kept(before, twin.potential),
        }

    def _twin(self, snapshot: Any) -> Sokoban:
        twin = Sokoban(self.level.rows)
        twin.restore(snapshot)
        return twin


def draw(rng: Random, boxes: int, side: int = SIDE) -> dict[str, Any] | None:
    """A level made by playing backwards; None if this board allows too few pulls."""
    if not 5 <= side <= 8:
        raise ValueError(f"side={side}: expected 5 to 8")
    inside = [(row, column) for row in range(1, side - 1) for column in range(1, side - 1)]
    walls = set(rng.sample(inside, rng.randint(0, len(inside) // 5)))
    floor = frozenset(cell for cell in inside if cell not in walls)
    goals = frozenset(rng.sample(sorted(floor), boxes))
    depths = _pulled(floor, goals)
    deepest = max(depths.values(), default=0)
    if deepest < 2 * boxes:
        return None
    # Far positions alone: a random one is most often a push or two from its solution.
    far = [position for position, depth in depths.items() if depth >= max(2 * boxes, 0.6 * deepest)]
    # Sorted, since the order of frozensets does not follow the seed.
    standing, region = rng.choice(sorted(far, key=lambda position: (sorted(position[0]), min(position[1]))))
    player = rng.choice(sorted(region))
    rows = []
    for row in range(side):
        signs = []
        for column in range(side):
            cell = (row, column)
            goal = cell in goals
            sign = "." if goal else " "
            if cell in standing:
                sign = "*" if goal else "$"
            elif cell == player:
                sign = "+" if goal else "@"
            signs.append(sign if cell in floor else "#")
        rows.append("".join(signs))
    return {"rows": rows, "pushes": depths[standing, region]}


def _pulled(floor: frozenset[Cell], goals: frozenset[Cell]) -> dict[_Position, int]:
    """Every position that pulls lead to from the solved ones, with the fewest pulls."""
    found: dict[_Position, int] = {}
    waiting: deque[_Position] = deque()
    # The player may stand in any region around the solved boxes, so playing backwards begins in each.
    left = set(floor - goals)
    while left:
        region = _region(next(iter(left)), floor - goals)
        left -= region
        found[goals, region] = 0
        waiting.append((goals, region))
    # Breadth first, so the first way to a position has the fewest pulls; the limit bounds time and memory.
    while waiting and len(found) < _MOST_POSITIONS:
        boxes, region = waiting.popleft()
        for position in _pulls(floor, boxes, region):
            if position not in found:
                found[position] = found[boxes, region] + 1
                waiting.append(position)
    return found


def _pulls(floor: frozenset[Cell], boxes: frozenset[Cell], region: frozenset[Cell]) -> Iterator[_Position]:
    """Positions one pull before this one."""
    for box in boxes:
        for step in STEPS:
            to, player = _moved(box, step), _moved(box, step, 2)
            # A pull is a push played backwards: the player stands where the box goes, and steps one cell further.
            if to in region and player in floor and player not in boxes:
                after = (boxes - {box}) | {to}
                yield after, _region(player, floor - after)


def _region(start: Cell, free: frozenset[Cell]) -> frozenset[Cell]:
    """The cells that can be walked to."""
    found, waiting = {start}, [start]
    while waiting:
        cell = waiting.pop()
        for step in STEPS:
            near = _moved(cell, step)
            if near in free and near not in found:
                found.add(near)
                waiting.append(near)
    return frozenset(found)


def canonical(instance: Mapping[str, Any]) -> str:
    """The same text for turned and mirrored levels."""
    return "\n".join(min(symmetries(tuple(instance["rows"]))))


def question(instance: Mapping[str, Any]) -> str:
    """The task in words."""
    return (
        "Solve this Sokoban level: push every box onto a goal. # is a wall, a blank is floor, . a goal, $ a box, * a "
        "box on a goal, @ the player, + the player on a goal. A step goes to a neighbouring cell: U one row up, D one "
        "row down, L one column to the left, R one column to the right. Stepping onto a box pushes it one cell "
        "further; that cell must be free, of walls and of boxes. Boxes cannot be pulled. Give your steps as a JSON "
        "list, such as "
        '["U", "R"].\n\n' + "\n".join(instance["rows"])
    )


def oracle(instance: Mapping[str, Any]) -> dict[str, Any]:
    """A solution with the fewest pushes."""
    solution = solve_level(instance["rows"])
    return {"moves": solution and solution.moves, "pushes": solution and solution.pushes}


def _moved(cell: Cell, step: Cell, times: int = 1) -> Cell:
    return cell[0] + times * step[0], cell[1] + times * step[1]
