"""The expert of the role workflows: it finds ways and fills grids by search, and errs as often as it is careless."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Sequence
from math import isqrt
from random import Random

from concertino import ChatRequest, Message, Model, Reply, Usage

from concertino_toy.practice.scripts import SCRIPT, STEP

from .progress import Habits

_STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
_PLACES = re.compile(r"You \(A\) are at row (\d+), column (\d+), the goal \(G\) is at row (\d+), column (\d+)")
_AROUND = re.compile(r"Neighbours: (.*)\. The goal: (.*)\.")
_TOWARDS = {"below": "D", "above": "U", "right": "R", "left": "L"}
_ROW = re.compile(r"[.#AG]{2,}")
_CELLS = re.compile(r"[.\d](?: [.\d])+")
_PRINTED = re.compile(r"^printed: (.*)$", re.MULTILINE)
Cell = tuple[int, int]


class RoleExpert(Model):
    """Speaks for every role of a practice workflow; the prompt says which role is asked, and what.

    Args:
        habits: `careless` is the share of turns that are wrong, `slips` of those that are malformed.
    """

    def __init__(self, habits: Habits | None = None) -> None:
        self.habits = habits or Habits()

    async def chat(self, request: ChatRequest) -> Reply:
        """Write a script, or decide."""
        text = self.write(list(request.messages))
        return Reply(text, usage=Usage(output_tokens=self.count_tokens(text)))

    def write(self, messages: Sequence[Message]) -> str:
        """What the role that is asked says."""
        asked = [message.text for message in messages if message.role == "user"]
        prompt, scripting = asked[0], asked[0].endswith(SCRIPT)
        seen = _PLACES.search(prompt) is not None
        moving = seen or _AROUND.search(prompt) is not None
        rng = Random(f"roles {self.habits.seed} {prompt}")
        if not scripting and not self.habits.draws("careless", prompt) and (told := _printed(prompt)):
            taken = told
        else:
            right = (_way(prompt) if seen else _step(prompt, rng)) if moving else _fills(prompt)
            right = right[:1] if prompt.endswith(STEP) else right
            taken = _spoilt(right, rng, moving) if self.habits.draws("careless", prompt) else right
        text = _script(taken, moving) if scripting else f"#### {json.dumps(list(taken))}"
        slips = len(asked) == 1 and self.habits.draws("slips", prompt)
        return text.replace("```", "``").replace("]", "") if slips else text


def _printed(prompt: str) -> list[object]:
    """What the colleague's script printed, if it leads to the goal."""
    found = _PRINTED.search(prompt)
    if found is None:
        return []
    if _PLACES.search(prompt) is None:
        try:
            fills = json.loads(found[1])
        except ValueError:
            return []
        return fills if sorted(map(str, fills)) == sorted(map(str, _fills(prompt))) else []
    moves = found[1].split()
    grid, start, goal = _grid(prompt)
    cell = start
    for move in moves:
        cell = _moved(cell, move) if move in _STEPS else (-1, -1)
        if not _free(grid, cell):
            return []
    return list(moves) if cell == goal else []


def _script(taken: Sequence[object], moving: bool) -> str:
    inside = json.dumps(" ".join(map(str, taken))) if moving else json.dumps(list(taken))
    return f"```python\nprint({inside})\n```"


def _grid(prompt: str) -> tuple[list[str], Cell, Cell]:
    found = _PLACES.search(prompt)
    assert found is not None
    row, column, goal_row, goal_column = (int(number) - 1 for number in found.groups())
    return _ROW.findall(prompt[: found.start()]), (row, column), (goal_row, goal_column)


def _moved(cell: Cell, move: str) -> Cell:
    return cell[0] + _STEPS[move][0], cell[1] + _STEPS[move][1]


def _free(grid: Sequence[str], cell: Cell) -> bool:
    return 0 <= cell[0] < len(grid) and 0 <= cell[1] < len(grid[0]) and grid[cell[0]][cell[1]] != "#"


def _way(prompt: str) -> list[object]:
    """A shortest way to the goal; of several, the first by the order of the moves."""
    grid, start, goal = _grid(prompt)
    came: dict[Cell, str] = {start: ""}
    waiting = deque([start])
    while waiting and goal not in came:
        cell = waiting.popleft()
        for move in _STEPS:
            near = _moved(cell, move)
            if near not in came and _free(grid, near):
                came[near] = came[cell] + move
                waiting.append(near)
    # Where there is no way, any move is as good.
    return list(came.get(goal, "R"))


def _step(prompt: str, rng: Random) -> list[object]:
    """A free move towards the goal, else any free one: all that can be known of the neighbours alone."""
    found = _AROUND.search(prompt)
    assert found is not None
    free = [side.split()[0] for side in found[1].split(", ") if side.endswith("free")]
    nearer = [move for word, move in _TOWARDS.items() if word in found[2] and move in free]
    return [rng.choice(nearer or free or ["R"])]


def _fills(prompt: str) -> list[object]:
    """Cells to fill, by trying."""
    rows = [line.split() for line in _CELLS.findall(prompt)]
    grid = [[0 if sign == "." else int(sign) for sign in row] for row in rows]
    grid = grid[: len(grid[0])] if grid else []
    empty = [(row, column) for row, line in enumerate(grid) for column, value in enumerate(line) if not value]
    _solve(grid, empty)
    return [[row + 1, column + 1, grid[row][column]] for row, column in empty]


def _solve(grid: list[list[int]], empty: Sequence[Cell]) -> bool:
    if not empty:
        return True
    (row, column), size, block = empty[0], len(grid), isqrt(len(grid))
    for value in range(1, size + 1):
        corner = row - row % block, column - column % block
        taken = {grid[row][other] for other in range(size)} | {grid[other][column] for other in range(size)}
        taken |= {grid[corner[0] + down][corner[1] + right] for down in range(block) for right in range(block)}
        if value not in taken:
            grid[row][column] = value
            if _solve(grid, empty[1:]):
                return True
            grid[row][column] = 0
    return False


def _spoilt(right: Sequence[object], rng: Random, moving: bool) -> list[object]:
    """The same with one thing wrong."""
    wrong = [list(each) if isinstance(each, list) else each for each in right]
    place = rng.randrange(len(wrong)) if wrong else 0
    if not wrong:
        return ["R"] if moving else [[1, 1, 1]]
    if moving:
        wrong[place] = rng.choice([move for move in _STEPS if move != wrong[place]])
    else:
        cell = wrong[place]
        assert isinstance(cell, list)
        # Another digit of a grid of four.
        cell[2] = cell[2] % 4 + 1
    return wrong
