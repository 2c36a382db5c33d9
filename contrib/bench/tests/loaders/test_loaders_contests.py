"""LiveCodeBench, CodeContests and APPS: rows in the published forms, and that no pickle runs anything."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError, Task
from concertino_bench.graders import InputOutput
from concertino_bench.loaders import DataWarning, skip_bad_rows
from concertino_bench.loaders.contests import apps, codecontests, livecodebench

Loader = Callable[..., Iterator[Task]]

PUBLIC = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]
HIDDEN = [{"input": "4 5\n", "output": "9\n", "testtype": "stdin"}]
LIVE: dict[str, Any] = {
    "question_id": "abc301_a",
    "question_title": "Sum",
    "question_content": "Print the sum.",
    "platform": "atcoder",
    "contest_date": "2024-05-13T00:00:00",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps(PUBLIC),
    "private_test_cases": json.dumps(HIDDEN),
    "metadata": "{}",
}
CONTEST: dict[str, Any] = {
    "name": "1_A. Sum",
    "description": "Print the sum.",
    "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
    "private_tests": {"input": ["4 5\n"], "output": ["9\n"]},
    "generated_tests": {"input": ["5 5\n"], "output": ["10\n"]},
    "time_limit": {"seconds": 1, "nanos": 500_000_000},
    "memory_limit_bytes": 256_000_000,
    "input_file": "",
    "output_file": "",
    "cf_rating": 800,
}
APPS: dict[str, Any] = {
    "problem_id": 7,
    "question": "Print the sum.",
    "input_output": json.dumps({"inputs": ["1 2\n", ["4 5"]], "outputs": ["3\n", ["9"]]}),
    "difficulty": "introductory",
    "starter_code": "",
}


def packed(value: Any) -> str:
    """Hidden tests as LiveCodeBench publishes them."""
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def loaded(loader: Loader, tmp_path: Path, *rows: dict[str, Any], **options: Any) -> list[Task]:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return list(loader(path=file, **options))


def pairs(task: Task) -> list[tuple[str, str]]:
    InputOutput().check(task)
    return [(test["input"], test["output"]) for test in task.metadata["tests"]]


@pytest.mark.parametrize("private", [json.dumps(HIDDEN), packed(json.dumps(HIDDEN)), packed(HIDDEN)])
def test_public_and_hidden_tests_of_livecodebench_are_read_plain_and_packed(private: str, tmp_path: Path) -> None:
    (task,) = loaded(livecodebench, tmp_path, {**LIVE, "private_test_cases": private})
    assert (task.id, task.kind) == ("abc301_a", "program")
    assert pairs(task) == [("1 2\n", "3\n"), ("4 5\n", "9\n")]
    assert task.metadata["compare"] == "lines"
    (task,) = loaded(livecodebench, tmp_path, {**LIVE, "private_test_cases": private}, hidden=False)
    assert pairs(task) == [("1 2\n", "3\n")]


class Touch:
    """A pickle of it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_names_a_function_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="which is not loaded"):
        loaded(livecodebench, tmp_path, {**LIVE, "private_test_cases": packed(Touch(tmp_path / "made"))})
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"private_test_cases": "no base64!"}, "private_test_cases"),
        ({"private_test_cases": packed("[")}, "private_test_cases"),
        ({"private_test_cases": packed(json.dumps(HIDDEN))[:40]}, "private_test_cases"),
        ({"private_test_cases": packed({"a": 1})}, "expected a list of tests"),
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "at least one test"),
        ({"public_test_cases": "[1]"}, "'input' and 'output'"),
        ({"metadata": '{"func_name": "add"}'}, "expected one that fits"),
        ({"public_test_cases": json.dumps([{**PUBLIC[0], "testtype": "functional"}])}, "expected one that fits"),
    ],
)
def test_a_row_of_livecodebench_that_is_wrong_says_what_was_expected(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=said):
        loaded(livecodebench, tmp_path, {**LIVE, **change})
    with skip_bad_rows(1) as skipped:
        assert len(loaded(livecodebench, tmp_path, {**LIVE, **change, "question_id": "bad"}, LIVE)) == 1
    assert len(skipped.errors) == 1


def test_problems_outside_of_the_window_are_left_out(tmp_path: Path) -> None:
    rows = [{**LIVE, "question_id": f"q{month}", "contest_date": f"2024-{month:02}-01T00:00:00"} for month in (1, 5, 9)]
    assert [task.id for task in loaded(livecodebench, tmp_path, *rows, since="2024-02-01")] == ["q5", "q9"]
    assert [task.id for task in loaded(livecodebench, tmp_path, *rows, since="2024-05-01", until="2024-05-01")] == [
        "q5"
    ]
    with pytest.raises(DataError, match="expected a day"):
        loaded(livecodebench, tmp_path, *rows, since="May")


def test_a_function_of_livecodebench_gets_an_argument_from_each_line(tmp_path: Path) -> None:
    tests = [{"input": '[1, 2]\n"x"', "output": "[2, 1]", "testtype": "functional"}]
    start = "class Solution:\n    def turn(self, items, name):\n        "
    row = {
        **LIVE,
        "public_test_cases": json.dumps(tests),
        "private_test_cases": "[]",
        "metadata": '{"func_name": "turn"}',
        "starter_code": start,
    }
    (task,) = loaded(livecodebench, tmp_path, row)
    assert task.metadata["entry_point"] == "turn"
    assert [(json.loads(given), json.loads(output)) for given, output in pairs(task)] == [([[1, 2], "x"], [2, 1])]
    assert "def turn(self, items, name):" in task.question
    assert "`turn`" in task.question


def test_codecontests_has_all_tests_and_the_limits_of_its_row(tmp_path: Path) -> None:
    (task,) = loaded(codecontests, tmp_path, CONTEST)
    assert (task.id, task.kind) == ("1_A. Sum", "program")
    assert pairs(task) == [("1 2\n", "3\n"), ("4 5\n", "9\n"), ("5 5\n", "10\n")]
    assert task.metadata["seconds"] == 1.5
    assert 244 < task.metadata["memory_mb"] < 245
    assert task.metadata["ignore_case"] is True
    (task,) = loaded(codecontests, tmp_path, CONTEST, generated=False)
    assert len(pairs(task)) == 2


def test_codecontests_reads_lists_of_tests_and_parquet(tmp_path: Path) -> None:
    row = {**CONTEST, "public_tests": [{"input": "1\n", "output": "1\n"}], "private_tests": [], "generated_tests": []}
    assert pairs(loaded(codecontests, tmp_path, row)[0]) == [("1\n", "1\n")]
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "test.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([CONTEST]), file)
    assert len(pairs(next(codecontests(path=file)))) == 3


def test_problems_that_read_files_or_have_no_test_are_left_out_with_one_warning(tmp_path: Path) -> None:
    other = {**CONTEST, "name": "b"}
    rows = [{**CONTEST, "input_file": "in.txt"}, {**CONTEST, "output_file": "out.txt"}, other]
    with pytest.warns(DataWarning, match="reads or writes a file") as seen:
        found = loaded(codecontests, tmp_path, *rows)
    assert ([task.id for task in found], len(seen)) == (["b"], 1)
    with pytest.warns(DataWarning, match="without a test"):
        found = loaded(apps, tmp_path, {**APPS, "input_output": ""}, {**APPS, "problem_id": 8})
    assert [task.id for task in found] == ["apps/8"]


def test_apps_joins_lines_and_keeps_arguments(tmp_path: Path) -> None:
    (task,) = loaded(apps, tmp_path, APPS)
    assert (task.id, pairs(task)) == ("apps/7", [("1 2\n", "3\n"), ("4 5", "9")])
    data = {"fn_name": "add", "inputs": [[1, 2]], "outputs": [[3]]}
    (task,) = loaded(apps, tmp_path, {**APPS, "input_output": json.dumps(data)})
    assert (task.metadata["entry_point"], task.metadata["unwrap"]) == ("add", True)
    assert pairs(task) == [("[1, 2]", "[3]")]


@pytest.mark.parametrize(
    ("loader", "row", "said"),
    [
        (codecontests, {**CONTEST, "public_tests": {"input": ["1"], "output": []}}, "of one length"),
        (codecontests, {**CONTEST, "public_tests": "1"}, "of one length"),
        (codecontests, {"name": "a", "description": "b"}, "no column 'public_tests'"),
        (apps, {**APPS, "input_output": "{"}, "expected JSON"),
        (apps, {**APPS, "input_output": json.dumps({"inputs": ["1"], "outputs": []})}, "of one length"),
        (apps, {**APPS, "input_output": json.dumps({"inputs": [1], "outputs": ["1"]})}, "expected texts"),
        (
            apps,
            {**APPS, "input_output": json.dumps({"fn_name": "f", "inputs": ["1"], "outputs": [1]})},
            "list of its arguments",
        ),
    ],
)
def test_a_row_that_is_wrong_says_what_was_expected(
    loader: Loader, row: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=said):
        loaded(loader, tmp_path, row)
