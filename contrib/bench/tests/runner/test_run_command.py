"""`concertino bench run`: from options or a file to results, with errors that say what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from concertino_bench.cli import bench
from concertino_bench.cli._run import Shown, progress_line
from concertino_bench.runner import Progress

ROUNDS = "rounds=parallel-rounds,model=sim/conductor"
TASKS = "masbench/depth,level=3,limit=4"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(bench, [str(each) for each in arguments])


def test_options_are_enough(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = run(
        "run", "--tasks", TASKS, "--system", ROUNDS, "--system", "graph=agent-graph,model=sim/conductor", "--out", out
    )
    assert done.exit_code == 0, done.output
    assert "rounds  4/4  100.0 %" in done.stdout
    assert "graph   4/4  100.0 %" in done.stdout
    assert f"8 items in {out}" in done.stdout


def test_json_is_a_summary(tmp_path: Path) -> None:
    done = run("run", "--tasks", TASKS, "--system", ROUNDS, "--out", tmp_path / "r.jsonl", "--json", "--samples", 2)
    summary = json.loads(done.stdout)
    assert summary["items"] == summary["total"] == 8
    assert summary["systems"] == {"rounds": {"right": 8, "done": 8}}
    assert summary["missing"] == 0


FILE = """
title = "Two paradigms"
pool = "pool.toml"
samples = 1

[budget]
calls = 40

[[tasks]]
set = "masbench/depth"
limit = 3
options = { level = 3 }

[[systems]]
name = "rounds"
strategy = "parallel-rounds"
options = { max_parallel = 2 }

[[systems]]
name = "graph"
strategy = "agent-graph"
"""
POOL = """
members = ["sim/*"]

[roles]
orchestrator = "sim/conductor"
"""


def written(folder: Path, text: str = FILE) -> Path:
    (folder / "pool.toml").write_text(POOL)
    file = folder / "evaluation.toml"
    file.write_text(text)
    return file


def test_a_file_says_what_to_run_and_options_go_before_it(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = run("run", written(tmp_path), "--out", out, "--limit", 2)
    assert done.exit_code == 0, done.output
    header, *items = map(json.loads, out.read_text().splitlines())
    assert header["title"] == "Two paradigms"
    assert header["budget"] == {"calls": 40}
    assert header["systems"][0]["strategy"]["max_parallel"] == 2
    assert {tuple(item["key"][:1]) for item in items} == {("rounds",), ("graph",)}
    assert len(items) == 4


WRONG = {
    "an unknown key": ("samples = 1", "smaples = 1", "no key 'smaples'; did you mean 'samples'?"),
    "an unknown set": ("masbench/depth", "masbench/dept", "no task set 'masbench/dept'; did you mean masbench/depth"),
    "an unknown strategy": ('"agent-graph"', '"agent-grph"', "agent-graph"),
    "an unknown option": ("max_parallel", "max_paralel", "options of parallel-rounds: no key 'max_paralel'"),
    "a wrong budget": ("calls = 40", "calls = -1", "[budget]"),
    "two of one name": ('name = "graph"', 'name = "rounds"', "two systems are called 'rounds'"),
    "no TOML": ("[budget]", "[budget", "is no TOML file"),
    "a wrong option of the set": ("{ level = 3 }", "{ levle = 3 }", "levle"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_refused_with_what_to_change(tmp_path: Path, case: str) -> None:
    old, new, said = WRONG[case]
    assert old in FILE
    file = written(tmp_path, FILE.replace(old, new, 1))
    done = subprocess.run(
        [sys.executable, "-m", "concertino", "bench", "run", str(file), "--out", str(tmp_path / "r.jsonl")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "r.jsonl").exists()


def test_nothing_named_is_a_question_of_usage() -> None:
    done = run("run")
    assert done.exit_code == 2
    assert "name what to run: a FILE, or --tasks and --system" in done.stderr
    assert "'level' is no KEY=VALUE" in run("run", "--tasks", "masbench/depth,level", "--system", ROUNDS).stderr


def test_an_interrupted_run_says_how_to_go_on_and_does(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    command = [sys.executable, "-m", "concertino", "bench", "run", "--tasks", "masbench/depth,level=4,limit=3000",
               "--system", ROUNDS, "--out", str(out), "--concurrency", "4"]  # fmt: skip
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while time.monotonic() < until and not (out.exists() and out.read_bytes().count(b"\n") > 5):
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "the same command goes on" in said
    first = out.read_bytes()
    assert first.endswith(b"\n")
    kept = first.count(b"\n") - 1
    assert 5 <= kept < 3000


def test_the_lists_say_what_there_is() -> None:
    assert "masbench/depth" in run("tasks").stdout
    rows = json.loads(run("tasks", "--json").stdout)
    assert {"name", "summary", "world"} == set(rows[0])
    assert "masbench" in run("graders").stdout
    assert {"name", "kinds", "needs", "summary"} == set(json.loads(run("graders", "--json").stdout)[0])


def test_the_line_of_progress_tells_scores_money_and_time_left() -> None:
    line = progress_line(Progress(120, 400, 60, {"a": (55, 60), "b": (30, 60), "c": (0, 0)}, 0.01234, 62.0))
    assert line == "120/400  30%  a 92%  b 50%  0.0123 $  4:49 left"
    many = {f"s{number}": (1, 2) for number in range(6)}
    assert "and 2 more" in progress_line(Progress(12, 12, 12, many, 0.0, 1.0))
    assert "left" not in progress_line(Progress(12, 12, 12, many, 0.0, 1.0))


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Shown(quiet=False)
    shown.terminal = False
    for done in range(50):
        shown(Progress(done, 50, done, {"a": (done, done)}, 0.0, 1.0))
    assert len(capsys.readouterr().err.splitlines()) == 1
