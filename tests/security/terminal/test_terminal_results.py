"""Results of an evaluation that a stranger wrote, shown in a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from terminal_attacks import EVERYTHING, harm

if sys.platform == "win32":
    pytest.skip("terminals of POSIX", allow_module_level=True)
pytest.importorskip("concertino_bench")
pytest.importorskip("concertino_toy")

from pseudo_terminal import written_to_terminal

pytestmark = pytest.mark.slow
HOSTILE = EVERYTHING.replace("\ud800", "")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results file in which every name and text of the system is hostile."""
    file = tmp_path_factory.mktemp("results") / "results.jsonl"
    command = [sys.executable, "-m", "concertino", "bench", "run", "--tasks", "masbench/depth,level=3,limit=2"]
    systems = ["--system", "evil=parallel-rounds,model=toy/leader", "--system", "other=agent-graph,model=toy/leader"]
    subprocess.run([*command, *systems, "--out", str(file)], check=True, capture_output=True, cwd=file.parent)
    lines = [json.dumps(_hostile(json.loads(line))) for line in file.read_text(encoding="utf-8").splitlines()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _hostile(value: Any) -> Any:
    """The same value, where a stranger may write what he likes: names of systems, answers, errors."""
    if isinstance(value, dict):
        return {_hostile(key): _hostile(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_hostile(each) for each in value]
    return HOSTILE if value == "evil" else value


@pytest.mark.parametrize(
    "command",
    [["report"], ["report", "--json"], ["compare"], ["compare", "--json"], ["pareto"], ["pareto", "--json"]],
    ids=" ".join,
)
def test_results_of_a_stranger_are_shown_and_not_obeyed(results: Path, command: list[str]) -> None:
    words = ["bench", command[0], str(results), *command[1:]]
    code, written = written_to_terminal(words, {"HOME": os.fspath(results.parent)}, columns=100)
    text = written.decode("utf-8", "surrogateescape")
    assert "owned" in text
    assert harm(text) == [], code


def test_a_damaged_results_file_with_a_hostile_name_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    file = tmp_path / "\x1b]0;owned\x07\u202e.jsonl"
    file.write_text(json.dumps({"a": HOSTILE}) + "\n" + HOSTILE, encoding="utf-8")
    _, written = written_to_terminal(["bench", "report", str(file)], {"HOME": str(tmp_path)}, columns=100)
    text = written.decode("utf-8", "surrogateescape")
    assert "owned" in text
    assert harm(text) == []
