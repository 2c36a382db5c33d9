"""Acting: what is read, what is illegal, what a snapshot is, and that branches never disturb each other."""

import contextlib
import json
import random
import sys
import time
from fractions import Fraction
from typing import Any

import pytest
from concertino import UsageError
from concertino.strategies.role_workflow import Environment
from concertino_bench.environments import DOMAINS, Ran, Turn, UnreadableAction, environment_of, oracle_of, tasks
from concertino_bench.environments.acting import ActingEnvironment
from concertino_bench.environments.code import CodeTests
from concertino_bench.environments.maths import Maths
from concertino_bench.environments.plan_path import PlanPath
from concertino_bench.environments.reading import read_fills, read_moves, read_number
from concertino_bench.environments.sokoban import Sokoban
from concertino_bench.environments.sudoku import Sudoku
from concertino_bench.environments.sudoku_solver import solve
from hypothesis import given, settings
from hypothesis import strategies as st


def tell(text: str) -> None:
    sys.stdout.write(f"FIGURE {text}\n")


GRID = ("S.#", "..#", "#.G")
WAY = ["D", "R", "D", "R"]
PUZZLE = "1234341221434..1"  # 4 x 4 with two empty cells: 3 and 2, by row 4: 4 3 2 1
LEVEL = ("#####", "#@$.#", "#####")


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        ["U", "R"],
        ["up", "RIGHT"],
        "UR",
        "ur",
        "U, R",
        "up right",
        '["U", "R"]',
        "[U, R]",
        "['U', 'R']\n",
        ("U", "R"),
        '["up","r"]',
    ],
)
def test_moves_are_read_from_lists_and_texts_with_one_reading(action: Any) -> None:
    assert read_moves(action, 10) == "UR"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (["U", "X"], "element 2 of the action is 'X', which is not a move"),
        (["U", 3], "element 2 of the action is 3, which is not a move"),
        ([], "holds no move"),
        ("", "is not a JSON list"),
        ("go up", "element 1 of the action is 'go', which is not a move"),
        ({"move": "U"}, "expected a list of"),
        (None, "expected a list of"),
        (7, "expected a list of"),
        ("[" * 5000, "is not a JSON list"),
        ("U" * 11, "at most 10"),
        ('"U"', "expected a list of"),
        ("__import__('os')", "is not a JSON list"),
    ],
)
def test_what_is_no_list_of_moves_is_unreadable_and_says_which_element(action: Any, message: str) -> None:
    with pytest.raises(UnreadableAction, match=message.replace("(", r"\(")):
        read_moves(action, 10)


def test_fills_are_read_as_triples_objects_or_a_whole_grid() -> None:
    assert read_fills([[1, 2, 3]], 4) == ([(1, 2, 3)], False)
    assert read_fills([1, 2, 3], 4) == ([(1, 2, 3)], False)
    assert read_fills([{"row": 1, "column": 2, "value": 0}], 4) == ([(1, 2, 0)], False)
    assert read_fills("[[4, 4, 1]]\n", 4) == ([(4, 4, 1)], False)
    fills, whole = read_fills([[1, 2, 3, 4]] * 4, 4)
    assert (whole, len(fills), fills[5]) == (True, 16, (2, 2, 2))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([[0, 1, 1]], "outside of the grid"),
        ([[1, 1, 5]], "outside of the grid"),
        ([[1, 1, "2"]], "not whole numbers"),
        ([[1, 1, True]], "not whole numbers"),
        ([[1, 1]], "element 1 of the action"),
        ([[1, 2, 3, 0]] * 4, "outside of the grid"),
        ([], "is empty"),
        ([[1, 1, 1]] * 17, "17 fills"),
        ("1,1,1", "is not a JSON list"),
    ],
)
def test_what_is_no_fill_is_unreadable(action: Any, message: str) -> None:
    with pytest.raises(UnreadableAction, match=message):
        read_fills(action, 4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", "7"),
        (" $1,234.50 ", "1234.5"),
        ("3/7", "3/7"),
        ("-3/7", "-3/7"),
        ("\\frac{3}{7}", "3/7"),
        ("\\boxed{12}", "12"),
        ("$\\boxed{-\\dfrac{1}{2}}$", "-1/2"),
        ("0.5.", "1/2"),
        (7, "7"),
        ("1e3", "1000"),
    ],
)
def test_numbers_are_read_in_their_usual_forms(text: Any, value: str) -> None:
    number = read_number(text)
    assert number is not None
    assert number == Fraction(value)


@pytest.mark.parametrize("text", ["", "seven", "7 apples", "1/0", "2+2", "1,23", None, True, float("inf"), "9" * 500])
def test_what_is_no_number_is_none(text: Any) -> None:
    assert read_number(text) is None


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_reading_gives_moves_or_an_unreadable_action_for_any_value(value: Any) -> None:
    for read in (lambda: read_moves(value, 50), lambda: read_fills(value, 9)):
        with contextlib.suppress(UnreadableAction):
            assert read()


# -- illegal and unreadable --------------------------------------------------------------------------------------------


def test_a_right_plan_reaches_the_goal() -> None:
    environment = PlanPath(GRID)
    assert "A.#" in environment.reset("anything")
    stepped = environment.step([*WAY, "R", "R"])
    assert (stepped.done, stepped.reward, environment.moves) == (True, 1.0, "DRDR")
    assert environment.last == (6, 4, "")  # what stands behind the goal is not walked, and not illegal
    assert "over" in environment.step(["U"]).observation
    assert environment.moves == "DRDR"


def test_an_illegal_move_ends_the_walk_and_is_told() -> None:
    environment = PlanPath(GRID)
    stepped = environment.step(["R", "R", "D"])
    assert (environment.moves, stepped.done, environment.last.made) == ("R", False, 1)
    assert "move 2, R, from row 1, column 2: there is a wall" in stepped.observation
    assert "leaves the grid" in environment.step(["U"]).observation
    assert environment.moves == "R"


def test_an_unreadable_action_raises_and_changes_nothing() -> None:
    for environment, action in ((PlanPath(GRID), ["R", "Q"]), (Sokoban(LEVEL), "run"), (Sudoku(PUZZLE), [[9, 9, 9]])):
        before = environment.snapshot()
        with pytest.raises(UnreadableAction):
            environment.step(action)
        assert environment.snapshot() == before
        assert issubclass(UnreadableAction, ValueError)  # which the tool of an environment observes as EXEC_ERR


def test_a_grid_takes_fills_up_to_the_first_that_breaks_a_rule() -> None:
    environment = Sudoku(PUZZLE)
    stepped = environment.step([[4, 2, 3], [4, 3, 3]])
    assert (environment.snapshot(), stepped.reward) == ([[4, 2, 3]], 0.0)
    assert "3 at row 4, column 3: it stands at row 1, column 3 already" in stepped.observation
    assert "where 1 is given" in environment.step([[1, 1, 2]]).observation
    environment.step([[4, 2, 0]])
    assert environment.snapshot() == []
    assert environment.step([[1, 2, 3, 4], [3, 4, 1, 2], [2, 1, 4, 3], [4, 3, 2, 1]]).done


def test_a_whole_grid_replaces_what_was_filled_before() -> None:
    environment = Sudoku("1" + "." * 15)
    environment.step([[4, 4, 1]])
    environment.step([[1, 2, 3, 4], [3, 4, 1, 2], [2, 1, 4, 3], [4, 3, 2, 1]])
    assert environment.reached


def test_a_box_is_pushed_but_not_into_a_wall_or_another_box() -> None:
    environment = Sokoban(["#######", "#    .#", "#     #", "#@$$  #", "#     #", "#    .#", "#######"])
    assert "another one stands behind it" in environment.step(["R"]).observation
    stepped = environment.step(["D", "L"])
    assert "there is a wall" in stepped.observation
    assert environment.moves == "D"
    against = Sokoban(["######", "#.   #", "#$@  #", "#    #", "######"])
    assert "a wall stands behind it" in against.step(["L"]).observation
    solved = Sokoban(LEVEL)
    assert solved.step("R").done
    assert solved.reward == 1.0


def test_a_lost_position_ends_the_task_without_the_goal() -> None:
    environment = Sokoban(["######", "#    #", "# $. #", "#@   #", "######"])
    stepped = environment.step(["R", "U", "U", "L", "L", "D", "D", "R"])
    assert stepped.done
    assert not environment.reached
    assert "lost" in stepped.observation
    assert environment.last.made < environment.last.given


def test_an_environment_that_needs_scripts_says_so_without_a_runner() -> None:
    (task,) = tasks("code", 1)
    with pytest.raises(UsageError, match="run=ScriptRunner"):
        environment_of(task).step("print(1)")
    with pytest.raises(UsageError, match="run=ScriptRunner"):
        Maths("7").step({"code": "print(7)"})


# -- maths -------------------------------------------------------------------------------------------------------------


def test_an_answer_is_taken_without_a_word_about_its_being_right() -> None:
    right, wrong = Maths("3/7"), Maths("3/8")
    seen = [environment.step("3/7") for environment in (right, wrong)]
    assert (right.reached, wrong.reached) == (True, False)
    assert seen[0].observation == seen[1].observation == "Handed in: 3/7"
    assert [step.reward for step in seen] == [1.0, 0.0]
    assert (Maths.tells_reward, CodeTests.tells_reward) == (False, False)
    wrong.step({"answer": 0.375})
    assert wrong.reached


def test_a_script_is_run_by_the_runner_and_its_failure_is_told() -> None:
    def run(script: str) -> Ran:
        return Ran(False, "half\n", "NameError: x") if "x" in script else Ran(True, f"ran {script}\n")

    environment = Maths("7", run=run)
    assert "ran print(7)" in environment.step({"code": "print(7)"}).observation
    failed = environment.step({"code": "x"})
    assert "Not legal: NameError: x" in failed.observation
    assert "half" in failed.observation
    assert environment.snapshot() == {"answer": None, "printed": "half\n", "runs": 2}
    for action in ({"code": "1", "answer": "2"}, {"script": "1"}, [1], "", None, {"answer": True}):
        with pytest.raises(UnreadableAction):
            environment.step(action)


# -- snapshots ---------------------------------------------------------------------------------------------------------

PURE = ("plan-path", "sudoku", "sokoban")


def random_action(environment: ActingEnvironment, rng: random.Random) -> Any:
    if isinstance(environment, Sudoku):
        size = environment.size
        return [[rng.randint(1, size), rng.randint(1, size), rng.randint(0, size)] for _ in range(rng.randint(1, 4))]
    return [rng.choice("UDLR") for _ in range(rng.randint(1, 6))]


def play(environment: ActingEnvironment, seed: int, steps: int) -> list[tuple[str, bool, float]]:
    rng = random.Random(seed)
    return [tuple(environment.step(random_action(environment, rng))) for _ in range(steps)]


@pytest.mark.slow
@pytest.mark.parametrize("name", PURE)
@settings(max_examples=40, deadline=None)
@given(index=st.integers(0, 30), seed=st.integers(0, 999), before=st.integers(0, 6), after=st.integers(0, 6))
def test_branches_from_any_point_do_not_disturb_each_other(
    name: str, index: int, seed: int, before: int, after: int
) -> None:
    (task,) = tasks(name, 1, start=index, level=9 if name == "sudoku" else None)
    trunk = environment_of(task)
    trunk.reset()
    play(trunk, seed, before)
    frozen = json.dumps(trunk.snapshot())
    snapshot = json.loads(frozen)
    left, right, alone = (environment_of(task) for _ in range(3))
    for branch in (left, right, alone):
        branch.restore(snapshot)
        assert branch.observation == trunk.observation
        assert (branch.done, branch.reached) == (trunk.done, trunk.reached)
    expected = play(alone, seed + 1, after)
    mixed = []
    rngs = random.Random(seed + 1), random.Random(seed + 2)
    for _ in range(after):  # turn by turn, one branch after the other
        mixed.append(tuple(left.step(random_action(left, rngs[0]))))
        right.step(random_action(right, rngs[1]))
    assert mixed == expected
    assert left.snapshot() == alone.snapshot()
    assert json.dumps(trunk.snapshot()) == json.dumps(snapshot) == frozen
    # A snapshot is a value of its own: changing what was given changes nothing inside.
    given_away = left.snapshot()
    if isinstance(given_away, list):
        given_away.append("x")
    assert left.snapshot() == alone.snapshot()


@pytest.mark.slow
def test_snapshots_are_as_small_as_what_was_done_and_quick() -> None:
    for name, level in (("plan-path", 10), ("plan-path", 20), ("sokoban", 3), ("sudoku", 9), ("sudoku", 16)):
        sizes, seconds, count = [], 0.0, 0
        for task in tasks(name, 10, level=level):
            environment, oracle = environment_of(task), oracle_of(task)
            if name == "sudoku":
                solution = oracle["solution"]
                values = [".123456789ABCDEFG".index(sign) for sign in solution]
                environment.step([values[row * level : (row + 1) * level] for row in range(level)])
            else:
                environment.step(oracle["moves"])
            assert environment.reached
            snapshot = environment.snapshot()
            sizes.append(len(json.dumps(snapshot, separators=(",", ":"))))
            started = time.perf_counter()
            for _ in range(20):
                environment.restore(snapshot)
                environment.snapshot()
            seconds += time.perf_counter() - started
            count += 20
        micro = seconds / count * 1e6
        tell(f"{name} {level}: solved snapshots {min(sizes)}-{max(sizes)} bytes, restore + snapshot {micro:.0f} us")
        assert max(sizes) <= (2000 if name == "sudoku" else 200)
        assert micro < 50_000


@pytest.mark.parametrize("name", PURE)
def test_the_first_snapshot_is_all_but_empty(name: str) -> None:
    (task,) = tasks(name, 1)
    assert environment_of(task).snapshot() in ("", [])


@pytest.mark.parametrize(
    ("environment", "snapshot"),
    [
        (PlanPath(GRID), "RR"),  # through a wall
        (PlanPath(GRID), "DRDRU"),  # beyond the goal
        (PlanPath(GRID), ["R"]),
        (PlanPath(GRID), None),
        (PlanPath(GRID), "R" * 5000),
        (Sudoku(PUZZLE), [[4, 2, 1]]),  # breaks a rule
        (Sudoku(PUZZLE), [[1, 1, 2]]),  # a given cell
        (Sudoku(PUZZLE), "[[4, 2, 3]]"),
        (Sokoban(LEVEL), "L"),
        (Sokoban(LEVEL), {"boxes": []}),
        (Maths("7"), {"answer": 7, "printed": None, "runs": 0}),
        (Maths("7"), {"reached": True}),
    ],
)
def test_a_state_that_no_actions_lead_to_is_refused(environment: ActingEnvironment, snapshot: Any) -> None:
    before = environment.snapshot()
    with pytest.raises(ValueError, match="is not a state of this task"):
        environment.restore(snapshot)
    assert environment.snapshot() == before


# -- rewards of turns --------------------------------------------------------------------------------------------------


def test_a_planner_is_scored_move_by_move_and_a_programmer_by_what_was_printed() -> None:
    environment = PlanPath(GRID)
    best = environment.turn_reward(Turn("", WAY, '["D", "R"]\n', ran=True))
    assert best.scores["planner"] == {"format": 1, "legal": 1, "shortest": 1}
    assert best.scores["programmer"] == {"format": 1, "runs": 1, "potential": 1}
    assert (best.team, best.of("planner"), best.of("planner", "lambda")) == (1, pytest.approx(2), pytest.approx(1))
    wall = environment.turn_reward(Turn("", ["R", "R", "D", "D"], "Traceback", ran=False))
    assert wall.scores["planner"] == {"format": 1, "legal": 0.25, "shortest": 0.25}
    assert wall.scores["programmer"] == {"format": 0, "runs": 0, "potential": 0}
    assert wall.team == 0.25
    nothing = environment.turn_reward(Turn("", None))
    assert (nothing.team, nothing.local("planner"), "programmer" in nothing.scores) == (0, 0, False)
    assert environment.snapshot() == ""  # scoring is not a step


def test_a_longer_way_earns_less_than_a_shortest_one() -> None:
    environment = PlanPath(("S..", "...", "..G"))
    short = environment.turn_reward(Turn("", "RRDD"))
    long = environment.turn_reward(Turn("", "RLRRDD"))
    assert short.team == long.team == 1
    assert short.of("planner") > long.of("planner")


def test_where_an_action_may_have_one_move_each_move_is_scored_by_itself() -> None:
    environment = PlanPath(("S..", "##.", "G.."), at_once=1)
    steps = {move: environment.turn_reward(Turn("R", move)).scores["planner"] for move in ("R", "L", "U", "RR")}
    assert steps["R"] == {"format": 1, "legal": 1, "shortest": 1}
    assert steps["L"] == {"format": 1, "legal": 1, "shortest": 0}
    assert steps["U"] == {"format": 1, "legal": 0, "shortest": 0}
    assert steps["RR"] == {"format": 0, "legal": 0, "shortest": 0}
    with pytest.raises(UnreadableAction, match="at most 1 are taken at once"):
        environment.step("RR")


def test_a_view_in_words_says_which_neighbours_are_free_and_where_the_goal_lies() -> None:
    (task,) = tasks("plan-path", 1, view="both")
    assert "Neighbours: U " in environment_of(task).observation
    environment = PlanPath(("S..", "##.", "G.."), view="words")
    assert environment.observation == (
        "You are at row 1, column 1, the goal is at row 3, column 1.\n"
        "Neighbours: U wall, D wall, L wall, R free. The goal: below, same column."
    )
    seen = [environment.step(move).observation for move in "RRDDL"]
    assert seen[-1].endswith("Neighbours: U wall, D wall, L free, R free. The goal: same row, left.")
    assert "#" not in seen[-1]
    assert "Neighbours" not in environment.step("L").observation
    assert "Neighbours" not in PlanPath(("S..", "##.", "G..")).observation
    with pytest.raises(ValueError, match="view='word': expected grid, words, both"):
        list(tasks("plan-path", 1, view="word"))


def test_the_moves_of_an_action_are_an_option_of_the_tasks() -> None:
    (task,) = tasks("plan-path", 1, at_once=2)
    assert "An action may have 2 moves." in task.question
    assert environment_of(task).most_at_once == 2
    with pytest.raises(ValueError, match="at_once=0: expected 1 or more"):
        list(tasks("plan-path", 1, at_once=0))


@pytest.mark.parametrize("name", ["plan-path", "sudoku", "sokoban"])
def test_writing_less_never_earns_more(name: str) -> None:
    for task in tasks(name, 8, seed=5):
        environment = environment_of(task)
        environment.reset()
        whole = fills_of(environment) if isinstance(environment, Sudoku) else list(oracle_of(task)["moves"])
        before = environment.snapshot()
        earned = [
            environment.turn_reward(Turn(before, whole[:end])).local("planner") for end in range(1, len(whole) + 1)
        ]
        assert earned == sorted(earned)
        assert earned[-1] == pytest.approx(1) or name == "sudoku"  # which pays progress for a full grid only


def fills_of(puzzle: Sudoku) -> list[list[int]]:
    """The cells that are missing, solved."""
    solved = solve(puzzle.given, puzzle.size)
    assert solved is not None
    return [
        [place // puzzle.size + 1, place % puzzle.size + 1, solved[place]]
        for place, value in enumerate(puzzle.given)
        if not value
    ]


def test_a_sudoku_turn_is_scored_by_what_is_filled_and_whether_it_is_sane() -> None:
    environment = Sudoku(PUZZLE)
    half = environment.turn_reward(Turn([], [[4, 2, 3]], "[[4, 2, 3], [4, 3, 3]]", ran=True))
    assert half.scores["planner"] == {"format": 1, "legal": 0.5, "progress": 1 / 16}
    assert half.scores["programmer"] == {"format": 1, "runs": 1, "sane": 0}
    solved = environment.turn_reward(Turn([[4, 2, 3]], [[4, 3, 2]]))
    assert (solved.team, solved.of("planner", "lambda")) == (1, pytest.approx(0.6 + 0.4 * (0.7 + 0.3 / 16)))
    unread = environment.turn_reward(Turn([], "no idea"))
    assert unread.unverifiable == {"planner"}


def test_a_sudoku_turn_pays_the_team_at_the_end_only() -> None:
    environment = Sudoku(PUZZLE)
    whole, early = (environment.turn_reward(Turn([[4, 2, 3]], [[4, 3, 2]], final=final)) for final in (True, False))
    assert (whole.team, early.team) == (1, 0)
    assert early.scores == whole.scores


def test_a_sokoban_turn_is_scored_by_legality_and_deadlocks() -> None:
    rows = ["######", "#    #", "# $. #", "#@   #", "######"]
    environment = Sokoban(rows)
    good = environment.turn_reward(Turn("", ["U", "R"], '["U", "R"]', ran=True))
    assert (good.team, good.scores["planner"]) == (1, {"format": 1, "legal": 1, "deadlock_free": 1})
    assert good.scores["programmer"] == {"format": 1, "runs": 1, "potential": 1}
    lost = environment.turn_reward(Turn("", ["R", "U"]))  # pushes the box to the upper wall
    assert lost.scores["planner"] == {"format": 1, "legal": 1, "deadlock_free": 0.5}
    assert lost.team == 0


def test_a_maths_turn_pays_the_team_at_the_end_only() -> None:
    environment = Maths("3/7")
    turn = Turn(None, "3/7", "3/7\n", ran=True)
    reward = environment.turn_reward(turn)
    assert (reward.team, reward.of("reasoner", "lambda"), reward.of("programmer", "lambda")) == (
        1,
        pytest.approx(1),
        pytest.approx(1),
    )
    early = environment.turn_reward(Turn(None, "3/7", final=False))
    assert (early.team, early.local("reasoner")) == (0, pytest.approx(1))
    crashed = environment.turn_reward(Turn(None, None, "3/7", ran=False))
    assert crashed.scores["programmer"]["step"] == 0
    assert crashed.local("reasoner") == 0


@pytest.mark.parametrize("name", list(DOMAINS))
def test_each_is_an_environment_of_the_sdk(name: str) -> None:
    (task,) = tasks(name, 1)
    assert isinstance(environment_of(task), Environment)
