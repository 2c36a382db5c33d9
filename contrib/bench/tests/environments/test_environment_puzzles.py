"""Puzzles that others made, and the deadlock test against enumeration: no solvable position is ever called lost."""

import json
import os
import random
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from concertino_bench.environments import tasks
from concertino_bench.environments.sokoban import Sokoban
from concertino_bench.environments.sokoban_level import Level
from concertino_bench.environments.sokoban_solver import SearchLimit, solve_level
from concertino_bench.environments.sudoku import Sudoku, parse, unparse
from concertino_bench.environments.sudoku_solver import conflicts, is_solved, solutions, solve

sys.path.insert(0, str(Path(__file__).parent))
from exact_cover import count_solutions


def tell(text: str) -> None:
    sys.stdout.write(f"FIGURE {text}\n")


DATA = Path(os.environ.get("CONCERTINO_TEST_DATA", Path(__file__).parents[5] / "shared" / "data")) / "puzzles"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no puzzles at {DATA}; set CONCERTINO_TEST_DATA")
DIRECTIONS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


# -- Sudoku ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_data
def test_norvigs_puzzles_have_one_solution_each_by_both_solvers() -> None:
    slowest, agreed = 0.0, 0
    puzzles = rows_of("norvig_sudoku.jsonl")
    for row in puzzles:
        grid = parse(row["puzzle"])
        started = time.perf_counter()
        found = solutions(grid, 9, 2)
        slowest = max(slowest, time.perf_counter() - started)
        assert len(found) == count_solutions(grid, 9, 2) == 1
        assert is_solved(found[0], 9)
        assert all(given in (0, value) for given, value in zip(grid, found[0], strict=True))
        environment = Sudoku(row["puzzle"])
        assert environment.step([found[0][i : i + 9] for i in range(0, 81, 9)]).done
        agreed += 1
    tell(f"norvig: {agreed} of {len(puzzles)} solved and unique; slowest {slowest * 1000:.0f} ms")
    assert agreed == 60


@needs_data
def test_stored_solutions_of_others_are_found_and_accepted() -> None:
    agreed = 0
    for row in rows_of("codesteer_sudoku_20.jsonl"):
        puzzle, stored = row["data"]["puzzle"], row["data"]["solution"]
        flat = [value for line in puzzle for value in line]
        found = solutions(flat, 9, 2)
        assert len(found) == row["n_solutions_capped_2"]
        assert [value for line in stored for value in line] in found
        environment = Sudoku(unparse(flat))
        assert environment.step(stored).reward == 1.0
        agreed += environment.reached
    tell(f"codesteer: {agreed} of 20 stored solutions found and accepted")
    assert agreed == 20


def test_a_puzzle_without_a_solution_has_none_and_one_with_two_has_two() -> None:
    assert solve([1, 0, 0, 0, 0, 0, 0, 1, *[0] * 8], 4) is not None
    blocked = [1, 2, 3, 0, 0, 0, 0, 4, *[0] * 8]  # the last cell of the first row may hold neither
    assert (solve(blocked, 4), count_solutions(blocked, 4, 2)) == (None, 0)
    full = solve([0] * 16, 4)
    assert full is not None
    a, b = full[0], full[1]
    swapped = [0 if value in (a, b) else value for value in full]
    assert len(solutions(swapped, 4, 9)) == count_solutions(swapped, 4, 9) >= 2


def test_both_solvers_count_the_same_on_puzzles_with_many_solutions() -> None:
    rng = random.Random(4)
    counts = []
    for _ in range(150):
        full = solve([0] * 16, 4)
        assert full is not None
        grid = [value if rng.random() < 0.4 else 0 for value in full]
        if rng.random() < 0.3:
            grid[rng.randrange(16)] = rng.randint(1, 4)
        if not conflicts(grid, 4):
            counts.append(len(solutions(grid, 4, 400)))
            assert counts[-1] == count_solutions(grid, 4, 400)
    tell(f"sudoku: {len(counts)} grids counted alike, 0 to {max(counts)} solutions")
    assert min(counts) == 0
    assert max(counts) > 10


# -- Sokoban -----------------------------------------------------------------------------------------------------------


def positions(level: Level) -> dict[tuple[frozenset, tuple], list[tuple[frozenset, tuple]]]:  # type: ignore[type-arg]
    """Every position that single steps lead to, with those that it leads to; rules written out once more."""
    start = (level.boxes, level.player)
    found: dict[Any, list[Any]] = {}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        if here in found:
            continue
        boxes, (r, c) = here
        found[here] = []
        for down, right in DIRECTIONS.values():
            near, beyond = (r + down, c + right), (r + 2 * down, c + 2 * right)
            if near not in level.floor or (near in boxes and (beyond in boxes or beyond not in level.floor)):
                continue
            after = ((boxes - {near}) | {beyond} if near in boxes else boxes, near)
            found[here].append(after)
            waiting.append(after)
    return found


def solvable(level: Level, graph: dict[Any, list[Any]]) -> set[Any]:
    """The positions from which a solved one can be reached."""
    back: dict[Any, list[Any]] = {}
    for here, after in graph.items():
        for there in after:
            back.setdefault(there, []).append(here)
    good = {here for here in graph if here[0] <= level.goals}
    waiting = list(good)
    while waiting:
        for before in back.get(waiting.pop(), ()):
            if before not in good:
                good.add(before)
                waiting.append(before)
    return good


def small_levels() -> Iterator[Level]:
    for boxes, count in ((1, 30), (2, 30), (3, 20)):
        for task in tasks("sokoban", count, level=boxes, seed=8):
            yield Level(tuple(task.metadata["instance"]["rows"]))


@pytest.mark.slow
def test_no_position_that_can_be_solved_is_called_lost_by_enumeration() -> None:
    levels = seen = lost = called = 0
    for level in small_levels():
        graph = positions(level)
        good = solvable(level, graph)
        for boxes in {here[0] for here in graph}:
            alive = any((boxes, cell) in good for cell in level.floor if (boxes, cell) in graph)
            verdict = level.is_deadlock(boxes)
            assert not (alive and verdict), (level.rows, sorted(boxes))
            seen, lost, called = seen + 1, lost + (not alive), called + verdict
        levels += 1
    tell(f"sokoban: {levels} levels, {seen} arrangements of boxes, {lost} lost, {called} called so, 0 wrongly")
    assert called > 0.5 * lost  # the test finds most of what is lost, or it would be worth nothing


@pytest.mark.slow
def test_the_solver_agrees_with_enumeration_on_levels_that_can_and_cannot_be_solved() -> None:
    verdicts = {True: 0, False: 0}
    for level in small_levels():
        graph = positions(level)
        good = solvable(level, graph)
        bad = next((here for here in graph if here not in good), None)
        here = (level.boxes, level.player)
        for place in filter(None, (here, bad)):
            rows = level.shown(*place)
            found = solve_level(rows, prune=False)
            assert (found is not None) == (place in good)
            assert (solve_level(rows) is not None) == (place in good)
            verdicts[found is not None] += 1
    tell(f"sokoban: solver and enumeration agree on {verdicts[True]} solvable and {verdicts[False]} lost positions")
    assert min(verdicts.values()) > 30


@pytest.mark.soak
@needs_data
def test_boxoban_levels_are_solved_and_no_position_on_the_way_is_called_lost() -> None:
    solved = checked = limit = 0
    started = time.perf_counter()
    for row in rows_of("boxoban.jsonl"):
        try:
            solution = solve_level(row["level"], 60_000)
        except SearchLimit:
            limit += 1
            continue
        assert solution is not None, row["id"]
        environment = Sokoban(row["level"])
        for move in solution.moves:
            assert not environment.lost, (row["id"], environment.moves)
            environment.step([move])
            assert not environment.last.illegal
            checked += 1
        assert environment.reached
        solved += 1
    seconds = time.perf_counter() - started
    tell(f"boxoban: {solved} of 60 solved ({limit} at the limit), {checked} positions not called lost, {seconds:.1f} s")
    assert solved >= 50


@pytest.mark.slow
@needs_data
def test_random_walks_in_boxoban_that_are_called_lost_are_lost_by_an_unpruned_search() -> None:
    rng = random.Random(2)
    confirmed = unknown = 0
    for row in rows_of("boxoban.jsonl")[:20]:
        environment = Sokoban(row["level"])
        for _ in range(400):
            environment.step([rng.choice("UDLR")])
            if environment.lost:
                break
        if not environment.lost:
            continue
        rows = environment.observation.splitlines()[:-1]
        try:
            assert solve_level(rows, 4000, prune=False) is None, row["id"]
            confirmed += 1
        except SearchLimit:
            unknown += 1
    tell(f"boxoban: {confirmed} positions called lost are lost, {unknown} too large to tell, 0 refuted")
    assert confirmed >= 3


@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        (["#####", "#$ @#", "#  .#", "#####"], True),  # in a corner
        (["#####", "#*@ #", "#   #", "#####"], False),  # in a corner, on its goal
        (["######", "#  @ #", "# $$ #", "# $$ #", "#....#", "######"], True),  # a block of four, none on a goal
        (["######", "# $  #", "#  @.#", "#    #", "######"], True),  # along a wall without a goal
        (["######", "# $ .#", "#  @ #", "######"], False),  # along a wall with one
        (["######", "#  @ #", "# $$##", "#  ..#", "######"], False),
        (["#######", "#  #  #", "# $$  #", "# @  .#", "# .   #", "#######"], False),
    ],
)
def test_known_positions_are_lost_or_not(rows: list[str], lost: bool) -> None:
    level = Level(tuple(rows))
    assert level.is_deadlock(level.boxes) is lost
    assert (solve_level(rows, prune=False) is None) or not lost
