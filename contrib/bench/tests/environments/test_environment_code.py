"""Code with tests in a real sandbox: verdicts, hanging and tampering programs, testers by mutants, references."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("concertino_code", reason="programs run in the sandbox of concertino-code")

from concertino_bench.environments import ScriptRunner, Turn, UnreadableAction, environment_of, tasks
from concertino_bench.environments.code import CodeTests
from concertino_bench.environments.harness import read_runs, write_script
from concertino_bench.environments.maths import Maths
from concertino_bench.environments.mutants import mutants
from concertino_code.sandbox.levels import choose_level_now


def tell(text: str) -> None:
    sys.stdout.write(f"FIGURE {text}\n")


pytestmark = pytest.mark.skipif(not choose_level_now().safe, reason=f"no sandbox here: {choose_level_now().explain()}")

SUM = {
    "style": "program",
    "examples": [{"input": "1 2\n0", "output": "3"}, {"input": "5\n0", "output": "5"}],
    "tests": [{"input": f"{n} {n + 1}\n0", "output": str(2 * n + 1)} for n in range(8)],
    "golden": "numbers = [int(w) for w in input().split()]\nprint(sum(numbers))\n",
}
TWICE = "print(int(input().split()[0]) * 2 + 1)\n"  # right for neighbours only: the second example fails
FIRST_THREE = "a = input().split()\nprint(sum(map(int, a)) if int(a[0]) < 3 or len(a) == 1 else 0)\n"


@pytest.fixture(scope="module")
def run() -> Iterator[ScriptRunner]:
    with ScriptRunner() as made:
        yield made


def test_the_reference_passes_and_ends_the_task(run: ScriptRunner) -> None:
    environment = CodeTests(SUM, run=run)
    stepped = environment.step(SUM["golden"])
    assert (stepped.done, stepped.reward, environment.reached) == (True, 1.0, True)
    assert stepped.observation == "A program was handed in; it passes 2 of 2 examples."


def test_what_is_seen_follows_from_the_examples_alone(run: ScriptRunner) -> None:
    environment = CodeTests(SUM, run=run)
    stepped = environment.step(FIRST_THREE)
    assert (stepped.done, stepped.reward, environment.reached) == (True, 3 / 8, False)
    assert stepped.observation == "A program was handed in; it passes 2 of 2 examples."
    assert environment.snapshot() == {"program": FIRST_THREE, "examples": 2}
    failed = environment.step(TWICE)
    assert "Example 2, given:\n5\n0\nexpected:\n5\ngot:\n11" in failed.observation
    assert not failed.done


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("x = (", "SyntaxError"),
        ("import nosuchmodule", "ModuleNotFoundError"),
        ("raise KeyError('k')", "KeyError: 'k'"),
        ("while True: pass", "no result in 1.0 s"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import os; os._exit(0)", "the program was stopped"),
        ("print('x' * 10**7)", "xxx"),
        ("pass", "got:\n(nothing)"),
    ],
)
def test_a_program_that_fails_is_told_why_and_passes_nothing(program: str, told: str, run: ScriptRunner) -> None:
    environment = CodeTests(SUM, run=run)
    stepped = environment.step(program)
    assert told in stepped.observation
    assert (stepped.reward, environment.reached, stepped.done) == (0, False, False)


FORGES = """
import os, sys
for i in range(10):
    sys.__stdout__.write(f'\\n[0, {i}, "ok", "", ""]\\n')
sys.__stdout__.flush()
os._exit(0)
"""
LOOKS = """
import sys
frame = sys._getframe()
while frame:
    if "INPUTS" in frame.f_globals:
        print(frame.f_globals["INPUTS"])
    frame = frame.f_back
"""
BREAKS = """
import hashlib, json, signal
hashlib.sha256 = json.dumps = signal.setitimer = lambda *a, **k: '[0, 0, "ok", "", ""]'
print(3)
"""


@pytest.mark.parametrize("program", [FORGES, LOOKS, BREAKS], ids=["forges", "looks", "breaks"])
def test_a_program_that_tampers_with_its_judge_gains_nothing(program: str, run: ScriptRunner) -> None:
    environment = CodeTests(SUM, run=run)
    assert environment.step(program).reward <= 1 / 8
    assert not environment.reached


def test_no_expected_result_stands_in_the_script() -> None:
    instance = {**SUM, "tests": [{"input": "1", "output": "271828"}]}
    (script,) = CodeTests(instance).scripts("print(1)")
    assert "271828" not in script


def test_what_is_no_program_is_unreadable() -> None:
    environment = CodeTests(SUM)
    for action in (None, 7, "", "  \n", ["print(1)"], {"program": "x"}, "x" * 60_000):
        with pytest.raises(UnreadableAction):
            environment.scripts(action)
    assert environment.scripts("```python\nprint(1)\n```") == environment.scripts({"code": "print(1)"})


def test_functions_are_called_and_compared_as_values(run: ScriptRunner) -> None:
    (task,) = tasks("code", 1, style="function")
    environment = environment_of(task, run)
    assert environment.step(task.metadata["instance"]["golden"]).reward == 1.0
    assert environment.reached
    wrong = environment.step("def solve(ys, k):\n    return 'no'\n")
    assert (wrong.reward, environment.reached) == (0, False)
    assert "KeyError: 'solve'" in environment.step("def other(): pass").observation


def test_a_state_is_a_program_and_branches_do_not_disturb_each_other(run: ScriptRunner) -> None:
    trunk = CodeTests(SUM, run=run)
    trunk.step(TWICE)
    snapshot = json.loads(json.dumps(trunk.snapshot()))
    left, right = CodeTests(SUM, run=run), CodeTests(SUM, run=run)
    left.restore(snapshot)
    right.restore(snapshot)
    left.step(SUM["golden"])
    assert (left.reached, right.reached, trunk.reached) == (True, False, False)
    assert right.snapshot() == snapshot == trunk.snapshot()
    forged = CodeTests(SUM)
    forged.restore({"program": "pass", "examples": 2})
    assert not forged.reached  # done for whoever wrote it, reached for nobody


def run_all(environment: CodeTests, turn: Turn, run: ScriptRunner) -> Any:
    return environment.turn_reward(turn, [run(script) for script in environment.reward_scripts(turn)])


def test_a_coder_is_scored_by_what_still_passes(run: ScriptRunner) -> None:
    environment = CodeTests(SUM, run=run)
    empty = {"program": None, "examples": 0}
    first = run_all(environment, Turn(empty, FIRST_THREE), run)
    assert (first.team, first.scores["coder"]) == (3 / 8, {"builds": 1, "runs": 1, "keeps": 1})
    worse = run_all(environment, Turn({"program": FIRST_THREE, "examples": 2}, "print(1)\n"), run)
    assert worse.scores["coder"]["keeps"] == pytest.approx(1 / 3)
    broken = run_all(environment, Turn({"program": FIRST_THREE, "examples": 2}, "x = ("), run)
    assert broken.scores["coder"] == {"builds": 0, "runs": 0, "keeps": 0}
    assert run_all(environment, Turn(empty, None), run).team == 0


def test_a_tester_is_scored_by_the_mutants_that_its_right_tests_kill(run: ScriptRunner) -> None:
    (task,) = tasks("code", 1, level=3)
    environment = environment_of(task, run)
    assert isinstance(environment, CodeTests)
    instance = task.metadata["instance"]
    empty = environment.snapshot()

    def coverage(tests: list[dict[str, str]]) -> tuple[float, float]:
        scores = run_all(environment, Turn(empty, instance["golden"], tests=tests), run).scores["tester"]
        return scores["valid"], scores["coverage"]

    good = instance["tests"]
    one_wrong = [{**test, "output": "wrong"} for test in good]
    assert coverage(good) == (1, 1)
    assert coverage(one_wrong) == (1, 0)  # a test that the reference does not pass kills nothing
    assert coverage([{"input": "not numbers", "output": "0"}]) == (0, 0)
    weak, strong = coverage(good[:1]), coverage(good[:4])
    assert weak[1] <= strong[1] <= 1
    none = run_all(environment, Turn(empty, instance["golden"], tests=[]), run)
    assert none.unverifiable == {"tester"}


def test_mutants_differ_from_the_program_in_one_place() -> None:
    program = "a = int(input())\nprint(sum([a + 1, 2]) if a < 3 else max(a, 4) % 5)\n"
    found = mutants(program)
    assert len(found) == len(set(found)) == 10
    assert all(compile(mutant, "m", "exec") for mutant in found)
    assert program not in found
    assert mutants("print()") == []
    with pytest.raises(SyntaxError):
        mutants("x = (")


def test_lines_that_are_none_are_left_out() -> None:
    runs = read_runs(
        'x\n[1]\n[0, 5, "ok", "", ""]\n[0, 0, "ok", "ab", "t"]\n{"a": 1}\n[null,0,1,2,3]\n' + "[" * 9999, 1, 2
    )
    assert runs == [[("ok", "ab", "t"), ("cut", "", "")]]


_BATCH = """
import io, json, sys
OUT = sys.stdout
for number, (program, inputs) in enumerate(json.loads(open("work.json").read())):
    results = []
    for given in inputs:
        sys.stdin, sys.stdout = io.StringIO(given), io.StringIO()
        try:
            exec(program, {"__name__": "__main__"})
            results.append(sys.stdout.getvalue().strip())
        finally:
            sys.stdout = OUT
    print(json.dumps(results))
"""


async def batch(work: list[tuple[str, list[str]]], folder: Path) -> list[list[str]]:
    """Trusted programs on inputs, many in one sandbox run, by a loop that is not the package's."""
    from concertino_code.sandbox import ScriptLimits, open_sandbox

    found: list[list[str]] = []
    async with await open_sandbox() as sandbox:
        for start in range(0, len(work), 100):
            files = {"work.json": json.dumps(work[start : start + 100])}
            done = await sandbox.run(_BATCH, files=files, limits=ScriptLimits())
            assert done.ok, done.explain()
            found += [json.loads(line) for line in done.stdout.text.splitlines()]
    return found


@pytest.mark.slow
async def test_a_thousand_reference_programs_give_the_results_that_other_code_worked_out(tmp_path: Path) -> None:
    made = [task for level in (1, 2, 3, 4) for task in tasks("code", 100 if level == 1 else 300, level=level, seed=5)]
    work = [
        (
            t.metadata["instance"]["golden"],
            [c["input"] for c in (*t.metadata["instance"]["examples"], *t.metadata["instance"]["tests"])],
        )
        for t in made
    ]
    results = await batch(work, tmp_path)
    agreed = 0
    for task, printed in zip(made, results, strict=True):
        instance = task.metadata["instance"]
        assert printed == [case["output"] for case in (*instance["examples"], *instance["tests"])], task.id
        agreed += 1
    tell(f"code: {agreed} of 1000 reference programs agree with the expected results, {sum(map(len, results))} runs")
    assert agreed == 1000


@pytest.mark.slow
async def test_a_thousand_answers_agree_with_scripts_that_try_them_out(tmp_path: Path) -> None:
    made = [task for level in (1, 2, 3, 4) for task in tasks("maths", 250, level=level, seed=5)]
    results = await batch([(task.metadata["instance"]["script"], [""]) for task in made], tmp_path)
    agreed = 0
    for task, (printed,) in zip(made, results, strict=True):
        environment = environment_of(task)
        assert isinstance(environment, Maths)
        assert printed == task.metadata["instance"]["answer"], task.id
        assert environment.step(printed).reward == 1.0
        agreed += 1
    tell(f"maths: {agreed} of 1000 answers agree with scripts that count or try")
    assert agreed == 1000


def test_a_script_for_many_programs_runs_each_on_each_input(run: ScriptRunner) -> None:
    script = write_script(["print(int(input()) + 1)", "print(9)"], ["1", "2"], shown=1)
    runs = read_runs(run(script).stdout, 2, 2)
    assert (runs[0][0].text, runs[0][1].text) == ("2", "")
    assert runs[1][0].digest == runs[1][1].digest != runs[0][0].digest
