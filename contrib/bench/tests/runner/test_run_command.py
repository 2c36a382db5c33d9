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
from concertino_bench.cli.run import EvaluationProgress, progress_line
from concertino_bench.runner import Progress

ROUNDS = "rounds=parallel-rounds,model=toy/leader"
TASKS = "masbench/depth,level=3,limit=4"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(bench, [str(each) for each in arguments])


def test_options_are_enough(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    done = run(
        "run", "--tasks", TASKS, "--system", ROUNDS, "--system", "graph=agent-graph,model=toy/leader", "--out", out
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
members = ["toy/*"]

[roles]
orchestrator = "toy/leader"
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


GSM8K = '{ level = 3 }\n\n[[tasks]]\nset = "gsm8k"\n'
WRONG = {
    "an unknown key": ("samples = 1", "smaples = 1", "(did you mean 'samples'?), got 'smaples'"),
    "an unknown set": ("masbench/depth", "masbench/dept", "no task set 'masbench/dept'; did you mean 'masbench/depth'"),
    "an unknown strategy": ('"agent-graph"', '"agent-grph"', "agent-graph"),
    "an unknown option": ("max_parallel", "max_paralel", "has no option 'max_paralel'; did you mean 'max_parallel'"),
    "a wrong budget": ("calls = 40", "calls = -1", "[budget]"),
    "two of one name": ('name = "graph"', 'name = "rounds"', "two systems are called 'rounds'"),
    "no TOML": ("[budget]", "[budget", "is not a TOML file"),
    "a wrong option of the set": ("{ level = 3 }", "{ levle = 3 }", "has no option 'levle'; did you mean 'level'?"),
    "a wrong value of the set": ("{ level = 3 }", "{ level = 99 }", "task set masbench/depth: "),
    "a text for a number": ("samples = 1", 'samples = "1"', "/samples: expected integer"),
    "a wrong limit": ("limit = 3", "limit = 0", "/tasks/0/limit"),
    "a wrong type of an option": ("max_parallel = 2", 'max_parallel = "many"', "expected a value like 4"),
    "a wrong sampling": ('strategy = "agent-graph"', "sampling = { temprature = 1 }", "did you mean 'temperature'?"),
    "a file that is not there": ("{ level = 3 }", GSM8K + 'options = { path = "no.jsonl" }', "no.jsonl"),
    "a set without its file": ("{ level = 3 }", GSM8K, "gsm8k needs the option path"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_refused_with_what_to_change(tmp_path: Path, case: str) -> None:
    old, new, said = WRONG[case]
    assert old in FILE
    file = written(tmp_path, FILE.replace(old, new, 1))
    done = subprocess.run(
        [sys.executable, "-m", "concertino", "bench", "run", str(file), "--out", str(tmp_path / "r.jsonl")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "r.jsonl").exists()


def test_nothing_named_is_a_question_of_usage() -> None:
    done = run("run")
    assert done.exit_code == 2
    assert "name what to run: a FILE, or --tasks and --system" in done.stderr
    assert "'level' is not a KEY=VALUE" in run("run", "--tasks", "masbench/depth,level", "--system", ROUNDS).stderr


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--system", "a=single-model,model=toy/steady,temperature=hot"), "temperature"),
        (("--system", "a=single-model,model=toy/steady,max_tokens=-5"), "max_tokens"),
        (("--system", "a=single-model,model=3"), "/model: expected"),
        (("--system", "a=single-model,eager=maybe"), "/eager: expected boolean"),
        (("--system", "a=parallel-rounds"), "name its model, model=PROVIDER/NAME, or bind the role in a pool file"),
        (("--system", ROUNDS, "--redo", "modle"), "did you mean 'model'?"),
        (("--system", ROUNDS, "--grader", "masbnch"), "did you mean 'masbench'"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_runs(tmp_path: Path, option: tuple[str, ...], said: str) -> None:
    out = tmp_path / "r.jsonl"
    done = run("run", "--tasks", TASKS, *option, "--out", out)
    assert done.exit_code != 0
    assert said in f"{done.stderr}{done.exception}"
    assert not out.exists()


def test_a_declaration_of_tasks_of_one_s_own_is_a_set(tmp_path: Path) -> None:
    (tmp_path / "quiz.jsonl").write_text('{"q": "What is 2 + 3?", "a": "5"}\n')
    (tmp_path / "quiz.toml").write_text('path = "quiz.jsonl"\nquestion = "q"\nanswer = "a"\nkind = "number"\n')
    done = run("run", "--tasks", tmp_path / "quiz.toml", "--system", ROUNDS, "--out", tmp_path / "r.jsonl", "--json")
    assert json.loads(done.stdout)["total"] == 1, done.output


def test_lists_and_texts_in_a_line_may_hold_commas(tmp_path: Path) -> None:
    system = 'a=majority-vote,members=["ask_swift", "ask_steady"],offer=["toy/swift","toy/steady"],model=toy/leader'
    done = run("run", "--tasks", TASKS, "--system", system, "--out", tmp_path / "r.jsonl")
    header = json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])
    assert header["systems"][0]["strategy"]["members"] == ["ask_swift", "ask_steady"], done.output


def test_a_system_whose_model_never_answers_is_said_and_fails(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text('members = ["replay/*"]\n\n[providers.replay]\nfiles = ["example"]\n')
    done = run(
        "run",
        "--tasks",
        TASKS,
        "--system",
        "a=single-model,model=replay/example-small",
        "--pool",
        tmp_path / "pool.toml",
        "--out",
        tmp_path / "r.jsonl",
    )
    assert done.exit_code == 1
    assert "a: 4 of 4 items have no answer, for something broke" in done.stderr


def test_a_report_never_takes_the_place_of_its_results(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    run("run", "--tasks", TASKS, "--system", ROUNDS, "--out", out)
    before = out.read_bytes()
    assert "one of the results files" in run("report", out, "--html", out).stderr
    assert out.read_bytes() == before


def test_reports_comparisons_and_frontiers_are_printed(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    run("run", "--tasks", TASKS, "--system", ROUNDS, "--system", "one=single-model,model=toy/swift", "--out", out)
    assert "# Evaluation" in run("report", out).stdout
    assert "one - rounds: " in run("compare", out).stdout
    assert len(json.loads(run("compare", out, "--json").stdout)) == 1
    assert "frontier" in run("pareto", out).stdout
    assert "did you mean 'usd'" in run("pareto", out, "--x", "usdd").stderr
    assert run("pareto", out, "--y", "pass@k").exit_code == 2
    page = tmp_path / "page.html"
    assert run("report", out, "--html", page).exit_code == 0
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_the_study_runs_and_reports_in_one_command(tmp_path: Path) -> None:
    done = run("study", "sas-mas", "--count", 1, "--level", 2, "--out", tmp_path, "--json")
    summary = json.loads(done.stdout)
    assert summary["items"] == 5 * 3
    assert set(summary["systems"]) == {"SAS", "MAS, same model", "MAS, whole pool"}
    assert {path.name for path in tmp_path.iterdir()} >= {"results.jsonl", "report.md", "report.html"}


@pytest.mark.slow
def test_an_interrupted_run_says_how_to_go_on_and_does(tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    command = [
        sys.executable,
        "-m",
        "concertino",
        "bench",
        "run",
        "--tasks",
        "masbench/depth,level=4,limit=3000",
        "--system",
        ROUNDS,
        "--out",
        str(out),
        "--concurrency",
        "4",
    ]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while time.monotonic() < until and not (out.exists() and out.read_bytes().count(b"\n") > 5):
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "the same command continues" in said
    first = out.read_bytes()
    assert first.endswith(b"\n")
    kept = first.count(b"\n") - 1
    assert 5 <= kept < 3000


def test_the_lists_say_what_there_is() -> None:
    assert "masbench/depth" in run("tasks").stdout
    rows = json.loads(run("tasks", "--json").stdout)
    assert {"name", "summary", "world", "options", "file", "source"} == set(rows[0])
    assert "masbench" in run("graders").stdout
    assert {"name", "kinds", "needs", "summary"} == set(json.loads(run("graders", "--json").stdout)[0])


def test_the_line_of_progress_tells_scores_money_and_time_left() -> None:
    line = progress_line(Progress(120, 400, 60, {"a": (55, 60), "b": (30, 60), "c": (0, 0)}, 0.01234, 62.0))
    assert line == "120/400  30%  a 92%  b 50%  0.0123 $  4:49 left"
    many = {f"s{number}": (1, 2) for number in range(6)}
    assert "and 2 more" in progress_line(Progress(12, 12, 12, many, 0.0, 1.0))
    assert "left" not in progress_line(Progress(12, 12, 12, many, 0.0, 1.0))


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    shown = EvaluationProgress(quiet=False)
    shown.terminal = False
    for done in range(50):
        shown(Progress(done, 50, done, {"a": (done, done)}, 0.0, 1.0))
    assert capsys.readouterr().err == ""  # it is soon over
    shown._last -= 60
    shown(Progress(49, 50, 49, {"a": (49, 49)}, 0.0, 1.0))
    assert capsys.readouterr().err == "49/50  98%  a 100%  0.0000 $  0:00 left\n"


def test_wrong_rows_are_told_and_left_out_as_far_as_allowed(tmp_path: Path) -> None:
    rows = [
        {"question": "2 + 2?", "answer": "#### 4"},
        {"question": "3 + 3?"},
        {"question": "4 + 4?", "answer": "#### 8"},
    ]
    file, out = tmp_path / "rows.jsonl", tmp_path / "r.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    given = ("run", "--tasks", f"gsm8k,path={file}", "--system", "a=single-model,model=toy/steady", "--out", out)
    refused = run(*given)
    assert refused.exit_code != 0
    assert "rows.jsonl:2: no column 'answer'" in refused.stderr
    assert "--skip-bad N leaves out up to N such rows" in refused.stderr
    assert not out.exists()
    done = run(*given, "--skip-bad", 1)
    assert done.exit_code == 0, done.output
    assert "warning: left out of gsm8k: " in done.stderr
    assert "rows.jsonl:2: no column 'answer'" in done.stderr
    assert "2 items in" in done.stdout
    evaluation = tmp_path / "e.toml"
    evaluation.write_text(
        f'[[tasks]]\nset = "gsm8k"\nskip_bad = 1\noptions = {{ path = "{file}" }}\n'
        '[[systems]]\nname = "a"\nstrategy = "single-model"\nmodel = "toy/steady"\n'
    )
    assert "2 items in" in run("run", evaluation, "--out", tmp_path / "e.jsonl").stdout


def test_a_vote_without_members_stops_before_there_is_a_result(tmp_path: Path) -> None:
    out, vote = tmp_path / "r.jsonl", "vote=majority-vote,model=toy/leader"
    done = run("run", "--tasks", TASKS, "--system", ROUNDS, "--system", vote, "--out", out)
    assert done.exit_code != 0
    assert "no model of the pool can be asked as an agent" in done.stderr
    assert not out.exists()


def test_the_list_of_task_sets_says_which_file_each_wants_and_where_it_is_published() -> None:
    shown = run("tasks").stdout
    assert "file: gpqa_diamond.csv, gpqa_main.csv or gpqa_extended.csv" in shown
    assert "published at: github.com/idavidrein/gpqa" in shown
    rows = {row["name"]: row for row in json.loads(run("tasks", "--json").stdout)}
    assert rows["hle"]["file"] == "test-00000-of-00001.parquet"
    assert rows["masbench/depth"]["file"] == rows["masbench/depth"]["source"] == ""
