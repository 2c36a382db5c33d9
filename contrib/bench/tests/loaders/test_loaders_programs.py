"""HumanEval and MBPP: what the tests need to be run is there, in one shape, and the recorded solutions pass them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError, Task
from concertino_bench.loaders.programs import humaneval, mbpp

CHECK = "def check(candidate):\n    assert candidate(2) == 4\n"
HUMAN = {
    "task_id": "HumanEval/1",
    "prompt": 'def double(n):\n    """Twice."""\n',
    "entry_point": "double",
    "test": CHECK,
    "canonical_solution": "    return n * 2\n",
}
MBPP = {
    "task_id": 7,
    "text": "Write a function that doubles.",
    "code": "import math\r\ndef double(n):\r\n  return n * 2",
    "test_setup_code": "",
    "test_list": ["assert double(2) == 4", "assert abs(double(-1)) == 2"],
    "challenge_test_list": ["assert double(0) == 0"],
}


def one(loader: Callable[..., Any], tmp_path: Path, row: dict[str, Any]) -> Task:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (task,) = loader(path=file)
    assert isinstance(task, Task)
    return task


def passes(program: str) -> bool:
    """Whether a program of ours ends without an error."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60).returncode == 0


def test_the_tests_of_humaneval_call_their_check_with_the_function(tmp_path: Path) -> None:
    task = one(humaneval, tmp_path, HUMAN)
    assert (task.id, task.kind, task.answers) == ("HumanEval/1", "code", ())
    assert task.metadata["tests"] == f"{CHECK}\n\ncheck(double)\n".replace("\n\n\n", "\n\n")
    assert {name: task.metadata[name] for name in ("entry_point", "language", "prompt", "solution")} == {
        "entry_point": "double",
        "language": "python",
        "prompt": HUMAN["prompt"],
        "solution": HUMAN["canonical_solution"],
    }
    assert "```python\ndef double(n):" in task.question
    assert "return n * 2" not in task.question
    assert passes(task.metadata["prompt"] + task.metadata["solution"] + task.metadata["tests"])
    assert not passes(task.metadata["prompt"] + "    return n\n" + task.metadata["tests"])


def test_tests_that_call_their_check_themselves_stay_as_they_are(tmp_path: Path) -> None:
    test = f"{CHECK}\ndef test_check():\n    check(double)\n\ntest_check()\n"
    row = {"name": "mbpp_7_double", "entry_point": "double", "prompt": HUMAN["prompt"], "test": test, "solution": "x"}
    task = one(mbpp, tmp_path, row)
    assert (task.id, task.metadata["tests"]) == ("mbpp_7_double", test)


def test_asserts_of_mbpp_become_tests_and_their_function_is_found(tmp_path: Path) -> None:
    task = one(mbpp, tmp_path, {**MBPP, "test_setup_code": "import math\r\nx = 1"})
    assert (task.id, task.metadata["entry_point"]) == ("mbpp/7", "double")
    assert task.metadata["tests"] == "import math\nx = 1\nassert double(2) == 4\nassert abs(double(-1)) == 2\n"
    assert task.metadata["solution"] == "import math\ndef double(n):\n  return n * 2"
    assert task.metadata["prompt"] == ""
    assert task.question.startswith("Write a function that doubles.\n\nWrite a Python program.")
    assert "assert abs(double(-1)) == 2" in task.question
    assert "assert double(0)" not in task.question


def test_of_several_functions_that_the_asserts_call_the_last_is_the_tested_one(tmp_path: Path) -> None:
    code = "def helper(n):\n  return n\ndef double(n):\n  return 2 * helper(n)"
    task = one(mbpp, tmp_path, {**MBPP, "code": code, "test_list": ["assert double(helper(2)) == 4"]})
    assert task.metadata["entry_point"] == "double"


@pytest.mark.parametrize(
    ("loader", "row", "message"),
    [
        (humaneval, {**HUMAN, "entry_point": "a b"}, "the name of a function"),
        (humaneval, {**HUMAN, "test": None}, "column 'test' is null"),
        (humaneval, MBPP, "no column 'prompt'"),
        (mbpp, {"task_id": 1, "text": "Write."}, "no column 'test_list' or 'test'"),
        (mbpp, {**MBPP, "test_list": []}, "at least one assert"),
        (mbpp, {**MBPP, "code": "x = 1"}, r"calls abs, double; expected a function of 'code' \(there is none\)"),
    ],
)
def test_rows_of_another_shape_are_refused(loader: Any, row: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        one(loader, tmp_path, row)


@pytest.mark.parametrize(
    ("loader", "name", "count"),
    [(humaneval, "humaneval_82", 82), (mbpp, "mbpp_test", 91), (mbpp, "mbpp_gpt4_solutions", 99)],
)
def test_the_files_load_completely(loader: Any, name: str, count: int, shared_data: Path) -> None:
    tasks = list(loader(path=shared_data / "code_tasks" / f"{name}.jsonl"))
    assert len(tasks) == count
    assert all(task.metadata["entry_point"] in task.metadata["tests"] for task in tasks)


@pytest.mark.slow
def test_the_reference_solutions_pass_the_tests_as_they_are_loaded(shared_data: Path) -> None:
    """In processes of their own, many to one; the references are the benchmarks' own."""
    tasks = list(humaneval(path=shared_data / "code_tasks" / "humaneval_82.jsonl"))
    tasks += mbpp(path=shared_data / "code_tasks" / "mbpp_test.jsonl")
    programs = {
        task.id: task.metadata["prompt"] + task.metadata["solution"] + "\n" + task.metadata["tests"] for task in tasks
    }
    runner = (
        "import json, sys, warnings\nwarnings.simplefilter('ignore')\nbroken = []\n"
        "for name, code in json.load(sys.stdin).items():\n"
        "    try:\n        exec(compile(code, name, 'exec'), {'__name__': 'solution'})\n"
        "    except BaseException as error:\n        broken.append(f'{name}: {error!r}')\n"
        "print(json.dumps(broken))"
    )
    done = subprocess.run(
        [sys.executable, "-c", runner],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    broken = json.loads(done.stdout.splitlines()[-1])
    assert broken == []
