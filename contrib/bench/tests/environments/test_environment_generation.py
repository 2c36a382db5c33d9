"""Generated tasks: solvable by an oracle of another make, equal in every process, in two splits that share none."""

import hashlib
import heapq
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from concertino_bench.environments import DOMAINS, environment_of, oracle_of, task_sets, tasks, world_of
from concertino_bench.environments.plan_path import Grid
from concertino_bench.environments.sokoban_solver import solve_level
from concertino_bench.environments.sudoku import parse

sys.path.insert(0, str(Path(__file__).parent))
from exact_cover import count_solutions


def tell(text: str) -> None:
    sys.stdout.write(f"FIGURE {text}\n")


SHARE = 1 if os.environ.get("CONCERTINO_FUZZ") else 4
"""A quarter of the thousand, unless CONCERTINO_FUZZ asks for all."""
LEVELS = [(name, level) for name, domain in DOMAINS.items() for level in domain.levels if level <= 12 or level == 16]
SMALL = [("plan-path", 10), ("sudoku", 4), ("sokoban", 2), ("code", 3), ("maths", 2)]


def dijkstra(rows: tuple[str, ...]) -> int | None:
    """The fewest moves from S to G, by another method than the oracle's search."""
    cells = {(r, c): sign for r, row in enumerate(rows) for c, sign in enumerate(row) if sign != "#"}
    start = next(cell for cell, sign in cells.items() if sign == "S")
    best = {start: 0}
    queue = [(0, start)]
    while queue:
        cost, (r, c) = heapq.heappop(queue)
        if cells[r, c] == "G":
            return cost
        for near in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            if near in cells and cost + 1 < best.get(near, 10**9):
                best[near] = cost + 1
                heapq.heappush(queue, (cost + 1, near))
    return None


def test_grids_have_ways_and_the_oracles_are_the_shortest() -> None:
    lengths = []
    for side, count in ((6, 248), (10, 504), (20, 248)):
        for task in tasks("plan-path", count // SHARE, level=side, seed=5):
            environment, oracle = environment_of(task), oracle_of(task)
            assert oracle["length"] == dijkstra(Grid(tuple(task.metadata["instance"]["rows"])).rows)
            stepped = environment.step(oracle["moves"])
            assert (environment.reached, stepped.done, stepped.reward) == (True, True, 1.0)
            lengths.append(oracle["length"])
    told = f"{min(lengths)}-{max(lengths)} moves"
    tell(f"plan-path: {len(lengths)} of {1000 // SHARE} shortest ways agree with Dijkstra's; {told}")
    assert len(lengths) == 1000 // SHARE


@pytest.mark.soak
def test_sudokus_have_one_solution_by_exact_cover() -> None:
    unique = Counter[int]()
    for size, count in ((4, 600), (9, 360), (16, 40)):
        for task in tasks("sudoku", count // SHARE, level=size, seed=5):
            grid = parse(task.metadata["instance"]["puzzle"])
            assert count_solutions(grid, size, 2) == 1
            environment = environment_of(task)
            solution = parse(oracle_of(task)["solution"])
            rows = [solution[row * size : (row + 1) * size] for row in range(size)]
            assert environment.step(rows).reward == 1.0
            assert environment.reached
            unique[size] += 1
    tell(f"sudoku: {sum(unique.values())} of {1000 // SHARE} have exactly one solution, by size {dict(unique)}")
    assert sum(unique.values()) == 1000 // SHARE


@pytest.mark.slow
def test_sokoban_levels_are_solved_with_as_few_pushes_as_they_were_made_with_pulls() -> None:
    solved = Counter[int]()
    for boxes, count in ((1, 400), (2, 400), (3, 200)):
        for task in tasks("sokoban", count // SHARE, level=boxes, seed=5):
            solution = solve_level(task.metadata["instance"]["rows"])
            assert solution is not None
            assert solution.pushes == task.metadata["instance"]["pushes"]
            environment = environment_of(task)
            assert environment.step(solution.moves).reward == 1.0
            assert environment.reached
            assert environment.last.made == len(solution.moves)
            solved[boxes] += 1
    told = f"by boxes {dict(solved)}"
    tell(f"sokoban: {sum(solved.values())} of {1000 // SHARE} levels solved with the fewest pushes, {told}")
    assert sum(solved.values()) == 1000 // SHARE


@pytest.mark.parametrize(("name", "level"), SMALL)
def test_the_same_options_give_the_same_tasks_in_another_process(name: str, level: int) -> None:
    code = (
        "import json, sys; from concertino_bench.environments import tasks; "
        f"print(json.dumps([t.metadata['instance'] for t in tasks({name!r}, 20, level={level}, seed=3)]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [dict(t.metadata["instance"]) for t in tasks(name, 20, level=level, seed=3)]


def test_the_first_tasks_are_what_they_were() -> None:
    """A change of a generator changes every published figure: it has to be wanted."""
    digests = {}
    for name, level in SMALL:
        text = json.dumps([task.metadata["instance"] for task in tasks(name, 5, level=level)], sort_keys=True)
        digests[name] = hashlib.sha256(text.encode()).hexdigest()[:12]
    assert digests == DIGESTS


DIGESTS = {
    "code": "0612607513e1",
    "maths": "acbb83e00504",
    "plan-path": "af4f662c2f1d",
    "sokoban": "9900a0a3e32e",
    "sudoku": "9bd87a6c0dd5",
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), SMALL)
def test_two_splits_share_no_instance_nor_a_copy_of_one(name: str, level: int) -> None:
    canonical = DOMAINS[name].canonical
    train = {canonical(t.metadata["instance"]) for t in tasks(name, 300, level=level, split="train", seed=1)}
    test = {canonical(t.metadata["instance"]) for t in tasks(name, 300, level=level, split="test", seed=2)}
    tell(f"{name}: {len(train)} and {len(test)} instances, {len(train & test)} in both")
    assert (len(train), len(test), len(train & test)) == (300, 300, 0)


def test_a_turned_grid_is_in_the_split_of_the_grid() -> None:
    canonical = DOMAINS["plan-path"].canonical
    (task,) = tasks("plan-path", 1)
    rows = task.metadata["instance"]["rows"]
    turned = ["".join(column) for column in zip(*rows[::-1], strict=True)]
    mirrored = [row[::-1] for row in rows]
    assert canonical({"rows": turned}) == canonical({"rows": mirrored}) == canonical({"rows": rows})


def test_a_sudoku_with_other_names_of_values_is_in_the_split_of_the_first() -> None:
    canonical = DOMAINS["sudoku"].canonical
    (task,) = tasks("sudoku", 1, level=9)
    puzzle = task.metadata["instance"]["puzzle"]
    renamed = puzzle.translate(str.maketrans("123456789", "947215638"))
    assert canonical({"puzzle": renamed, "size": 9}) == canonical({"puzzle": puzzle, "size": 9})


def test_later_seeds_and_starts_give_other_tasks() -> None:
    first = [task.id for task in tasks("plan-path", 10)]
    assert [task.id for task in tasks("plan-path", 5, start=5)] == first[5:]
    assert not set(first) & {task.id for task in tasks("plan-path", 10, seed=1)}


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_every_level_gives_tasks_with_worlds(name: str, level: int) -> None:
    for task in tasks(name, 2, level=level):
        assert (task.kind, task.axis, task.level, task.split, task.answers) == ("environment", name, level, "test", ())
        assert json.loads(json.dumps(task.metadata)) == task.metadata
        state = world_of(task).state()
        assert (state["reached"], state["done"], state["steps"]) == (False, False, 0)
        assert environment_of(task).reset(task.question)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"environment": "chess"}, "expected one of plan-path, sudoku"),
        ({"environment": "sudoku", "level": 5}, "has the levels 4, 9, 16"),
        ({"environment": "sudoku", "split": "dev"}, "expected one of train, test"),
        ({"environment": "sudoku", "count": -1}, "expected 0 or more"),
        ({"environment": "sudoku", "blanks": 16}, "expected a number from 1 to 15"),
        ({"environment": "plan-path", "walls": 0.9}, "expected a share from 0 to 0.35"),
        ({"environment": "sokoban", "side": 3}, "expected 5 to 8"),
        ({"environment": "code", "style": "essay"}, "expected one of program, function"),
    ],
)
def test_an_option_out_of_range_is_refused_before_anything_is_made(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tasks(**options)  # type: ignore[arg-type]


def test_a_space_that_is_used_up_says_so() -> None:
    with pytest.raises(ValueError, match="Ask for fewer, or choose a larger level"):
        list(tasks("code", 5000, level=1))


def test_the_question_holds_nothing_that_only_the_oracle_knows() -> None:
    for task in tasks("code", 20, level=3):
        assert task.metadata["instance"]["golden"] not in task.question
        assert all(f"{test['input']}\n" not in task.question for test in task.metadata["instance"]["tests"][3:])
    for task in tasks("maths", 20, level=3):
        assert task.metadata["instance"]["script"] not in task.question
    for task in tasks("sudoku", 20):
        assert oracle_of(task)["solution"] not in task.question


def test_there_is_one_task_set_for_each_environment() -> None:
    sets = task_sets()
    assert [each.name for each in sets] == [f"environments/{name}" for name in DOMAINS]
    for each in sets:
        (task,) = each.load(count=1)
        assert each.world is not None
        assert each.world(task).members()
