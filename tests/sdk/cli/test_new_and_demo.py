"""`concertino new plugin` writes a distribution that works; `concertino demo` shows a run that ends right."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tree import ROOT

needs_hatchling = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed; pip install hatchling"
)


def python(*arguments: str, path: Path, folder: Path) -> str:
    """What a Python with a plugin's site on its path prints; fails with its output if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(path), "CONCERTINO_PLUGINS": "my-words"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@needs_hatchling
def test_a_new_plugin_installs_passes_its_tests_and_conforms(cli: Any, tmp_path: Path) -> None:
    kinds = ("--tool", "--agent", "--model", "--strategy")
    written = json.loads(cli("new", "plugin", "my-words", *kinds, "--json").stdout)
    folder, site = Path(written["folder"]).absolute(), tmp_path / "target"
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    python(*pip, ".", path=site, folder=folder)
    tests = python("-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider", ".", path=site, folder=folder)
    assert "failed" not in tests
    report = json.loads(python("-m", "concertino", "check", "my-words", "--json", path=site, folder=folder))
    assert report["ok"]
    assert {row["subject"] for row in report["rows"]} >= {
        "my-words/count_letter",
        "my-words/summarise",
        "my-words/echo",
        "my-words/one-line",
    }
    assert [
        row for row in report["rows"] if row["subject"] == "my-words/one-line" and row["outcome"] == "missing"
    ] == []
    shown = python("-m", "concertino", "check", "my-words", "--only", "one-line", path=site, folder=folder)
    assert "What `write_turn` writes is read as the same calls" in shown
    assert "my-words/count_letter" not in shown
    call = ["call", "my-words/count_letter", '{"text": "banana", "letter": "a"}']
    assert python("-m", "concertino", *call, path=site, folder=folder) == "3\n"


def test_the_strategy_of_a_new_plugin_has_at_most_forty_lines_and_is_the_one_of_the_docs(cli: Any) -> None:
    cli("new", "plugin", "words", "--strategy")
    lines = Path("concertino-words/src/concertino_words/strategies.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 40
    documented = (ROOT / "docs/examples/one_line.py").read_text(encoding="utf-8").splitlines()
    assert lines[1:] == documented[1:]


@pytest.mark.parametrize("kinds", [(), ("--agent",), ("--model", "--tool"), ("--strategy",)])
def test_a_new_plugin_has_what_was_asked_for_and_a_tool_by_default(cli: Any, kinds: tuple[str, ...]) -> None:
    files = json.loads(cli("new", "plugin", "words", *kinds, "--json").stdout)["files"]
    modules = {f"{kind.removeprefix('--')}s.py".replace("ys.", "ies.") for kind in kinds} or {"tools.py"}
    assert {Path(file).name for file in files if file.startswith("src/")} == {"__init__.py", "py.typed", *modules}
    for file in Path("concertino-words").rglob("*.py"):
        compile(file.read_text(encoding="utf-8"), str(file), "exec")
        assert "$" not in file.read_text(encoding="utf-8")


def test_a_folder_that_is_there_already_is_left_alone(cli: Any) -> None:
    Path("concertino-words").mkdir()
    Path("concertino-words/mine.txt").write_text("mine")
    done = cli("new", "plugin", "words")
    assert done.exit_code == 2
    assert "concertino-words is there already; choose another NAME or --dir" in done.stderr
    assert list(Path("concertino-words").iterdir()) == [Path("concertino-words/mine.txt")]


@pytest.mark.parametrize("name", ["Words", "my words", "9lives", "../up", "-x", ""])
def test_a_name_that_cannot_be_a_package_is_refused(cli: Any, name: str) -> None:
    done = cli("new", "plugin", "--", name)
    assert done.exit_code == 2
    assert "expected small letters and digits" in done.stderr


def test_without_simulated_models_the_demo_says_what_to_install(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concertino.cli.demo._MODULE", "concertino_absent")
    done = cli("demo")
    assert done.exit_code == 2
    assert "pip install concertino-toy" in done.stderr


def test_the_demo_of_the_scripted_leader_shows_every_status_and_ends_right(cli: Any) -> None:
    pytest.importorskip("concertino_toy")
    done = cli("demo", "--leader", "scripted", "--json")
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    statuses = {seen["status"] for round_ in data["rounds"] for seen in round_["observations"]}
    assert statuses == {"OK", "PARSE_ERR", "EXEC_ERR", "TIMEOUT"}
    assert "toy/leader" in Path(data["trace"]).read_text(encoding="utf-8")


def test_the_demo_is_led_by_the_tiny_conductor_which_repairs_failures_and_ends_right(cli: Any) -> None:
    pytest.importorskip("concertino_toy")
    done = cli("demo", "--json")
    assert done.exit_code == 0, done.stderr
    data = json.loads(done.stdout)
    statuses = {seen["status"] for round_ in data["rounds"] for seen in round_["observations"]}
    assert statuses >= {"OK", "TIMEOUT"}
    assert "toy/conductor" in Path(data["trace"]).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_demo_ends_with_the_path_of_a_page_of_the_run(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("concertino_toy")
    pytest.importorskip("concertino_view")
    done = cli("demo", "--leader", "scripted", "--plain", "--trace", "runs")
    assert done.exit_code == 0, done.stderr
    page = Path(done.stdout.rstrip().rpartition(" ")[2])
    assert [page] == list(Path("runs").glob("*.html"))
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    # Without the distribution there is no page, and nothing is missed.
    monkeypatch.setattr("concertino.cli.demo._PAGES", "concertino_absent")
    done = cli("demo", "--leader", "scripted", "--plain", "--trace", "others")
    assert done.exit_code == 0, done.stderr
    assert list(Path("others").glob("*.html")) == []


def test_a_demo_that_cannot_be_recorded_names_the_options_and_may_leave_no_trace(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("concertino_toy")
    Path("taken").touch()
    monkeypatch.setenv("CONCERTINO_TRACES", "taken")
    done = cli("demo", "--leader", "scripted", "--plain")
    assert done.exit_code == 2
    assert done.stderr == (
        "Error: the run cannot be recorded in taken: File exists; record it elsewhere with --trace FOLDER, or not at "
        "all with --no-trace\n"
    )
    done = cli("demo", "--leader", "scripted", "--no-trace", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["trace"] is None


@pytest.mark.slow
def test_a_wrong_answer_fails_the_demo(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = pytest.importorskip("concertino_toy.demo")
    monkeypatch.setattr(demo, "demo_question", lambda seed, real=demo.demo_question: (real(seed)[0], (1, 2, 3, 4)))
    done = cli("demo")
    assert done.exit_code == 1
    assert "Error: the answers are 1, 2, 3, 4; the run gave " in done.stderr
