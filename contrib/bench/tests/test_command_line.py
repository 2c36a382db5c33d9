"""`concertino bench`: a file whole or not at all, the same bytes for the same options, a check that can fail."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from concertino.plugins import PluginManager
from concertino_bench.cli import bench
from concertino_bench.cli import generate as generate_module
from concertino_bench.masbench import generate
from concertino_bench.masbench.rows import read_jsonl, write_jsonl


def run(*arguments: object) -> Result:
    return CliRunner().invoke(bench, list(map(str, arguments)))


def test_questions_go_to_a_file_with_a_summary(tmp_path: Path) -> None:
    file = tmp_path / "depth.jsonl"
    done = run("generate", "--axis", "depth", "--level", 3, "--count", 20, "--seed", 1, "--out", file, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    assert summary["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert summary["bytes"] == file.stat().st_size
    assert 1 < summary["templates"] <= 20
    assert list(read_jsonl(file)) == list(generate("depth", 3, 20, seed=1))
    assert [path.name for path in tmp_path.iterdir()] == ["depth.jsonl"]


def test_rows_go_to_stdout_by_default_and_nothing_else_does() -> None:
    done = run("generate", "--axis", "horizon", "--level", 2, "--count", 3, "--split", "train", "--bare")
    assert done.stdout == "".join(write_jsonl(generate("horizon", 2, 3, split="train", rules=False)))


def test_the_summary_and_the_rows_do_not_share_stdout() -> None:
    done = run("generate", "--axis", "depth", "--json")
    assert done.exit_code == 2
    assert "add --out FILE" in done.stderr


@pytest.mark.parametrize("wrong", [("--axis", "width"), ("--axis", "depth", "--level", 13), ("--level", 4)])
def test_wrong_options_are_usage_errors(wrong: tuple[Any, ...]) -> None:
    assert run("generate", *wrong).exit_code == 2


def test_a_folder_that_is_not_there_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    done = run("generate", "--axis", "depth", "--count", 1, "--out", tmp_path / "no" / "rows.jsonl")
    assert done.exit_code == 1
    assert "rows.jsonl cannot be written: No such file" in done.stderr


def test_what_breaks_off_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("old")

    def broken(*_: Any, **__: Any) -> Any:
        yield from generate("depth", 2, 3)
        raise KeyboardInterrupt

    monkeypatch.setattr(generate_module, "generate", broken)
    assert run("generate", "--axis", "depth", "--out", file).exit_code == 130
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("rows.jsonl", "old")]


def test_a_bar_is_shown_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def __init__(self) -> None:
            self.shown = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            self.shown += text
            return len(text)

        def flush(self) -> None: ...

    terminal = Terminal()
    monkeypatch.setattr(generate_module.sys, "stderr", terminal)
    with generate_module._progress(iter(generate("depth", 2, 5)), 5) as shown:
        assert len(list(shown)) == 5
    assert "questions" in terminal.shown
    assert "100%" in terminal.shown


def test_verify_says_which_answers_differ_and_ends_with_1(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    good = list(write_jsonl(generate("depth", 2, 5)))
    file.write_text("".join(good), encoding="utf-8")
    assert run("verify", file).exit_code == 0
    row = json.loads(good[0])
    record = json.loads(row["data"])
    wrong = str((int(record["answers"][0]) + 1) % 23)
    bad = {**row, "data": "{}", "reward_model_json": json.dumps({"ground_truth": wrong})}
    prompt = json.dumps([{"role": "user", "content": "There are 5 frogs. How many Frog does Pond have?"}])
    unread = {**bad, "prompt_json": prompt}
    file.write_text("".join([*good, json.dumps(bad), "\n", json.dumps(unread), "\n"]), encoding="utf-8")
    done = run("verify", file)
    assert done.exit_code == 1
    assert "depth           2  5 of 7" in done.stdout
    assert (
        f"published-depth-2-test-6: differs: the text gives {record['answers'][0]}; the row says {wrong}" in done.stdout
    )
    assert 'unread: problem 1, "There are 5 frogs.": it is outside the grammar' in done.stdout
    report = json.loads(run("verify", file, "--json").stdout)
    assert (report["rows"], report["agreed"]) == (7, 5)
    assert [each["kind"] for each in report["differences"]] == ["differs", "unread"]


def test_a_file_that_holds_no_rows_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("hello\n")
    done = run("verify", file)
    assert done.exit_code == 1
    assert "rows.jsonl, line 1" in done.stderr


def test_the_hooks_of_the_installed_plugin_are_found() -> None:
    manager = PluginManager()
    assert [each.name for each in manager.named("concertino_tasks") if each.name.startswith("masbench/")] == [
        "masbench/depth",
        "masbench/horizon",
        "masbench/breadth",
        "masbench/parallel",
        "masbench/robustness",
    ]
    assert "masbench" in [each.name for each in manager.named("concertino_graders")]
