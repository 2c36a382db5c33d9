"""The commands of the command-line page that need a model of the reader's run as written, behind a stand-in server."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from stand_in import StandIn

from .documents import DOCS, EXAMPLES, blocks_of

PAGE = (DOCS / "how-to" / "use-the-command-line.md").read_text(encoding="utf-8")
END = '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
ANSWERS = {
    "How warm is it in Oslo?": '{"city": "Oslo", "celsius": 4.5}',
    "How warm is it in Bergen?": "Twelve degrees.",
    "And tomorrow?": "Ten degrees.",
    "What is this?": "A cat, and a report.",
}
"""What the model answers to each question of the page."""


def commands() -> list[str]:
    """The commands in plain blocks, which the other tests do not type."""
    lines = [line for block in blocks_of(PAGE) if block.language == "text" for line in block.body.splitlines()]
    return [line for line in lines if line.startswith("concertino ")]


@pytest.mark.slow
def test_the_commands_that_need_a_model_run_as_written(tmp_path: Path) -> None:
    (tmp_path / "weather.json").write_bytes((EXAMPLES / "command_line" / "weather.json").read_bytes())
    (tmp_path / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"x" * 20)
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.7\n")
    (tmp_path / "concertino.toml").write_text('pool = "pool.toml"\n', encoding="utf-8")
    pool = 'members = ["toy/calculate"]\n[roles]\norchestrator = "openai/gpt-5.4-mini"\n'
    (tmp_path / "pool.toml").write_text(pool, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CONCERTINO_")}
    asked: list[str] = []
    for line in commands():
        words = shlex.split(line)
        asked.append(words[2])
        with StandIn(END, f"<answer>{ANSWERS[words[2]]}</answer>") as server:
            done = subprocess.run(
                [sys.executable, "-m", *words],
                cwd=tmp_path,
                env={**kept, **server.environment},
                capture_output=True,
                text=True,
                timeout=110,
            )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        shown = json.dumps(json.loads(done.stdout)) if "--quiet" in words else done.stdout
        assert ANSWERS[words[2]] in shown
        sent = json.dumps(server.requests[0]["messages"])
        assert ("How warm is it in Bergen?" in sent) == (words[2] in ("How warm is it in Bergen?", "And tomorrow?"))
        assert ("data:image/png;base64" in sent) == (words[2] == "What is this?")
    assert asked == list(ANSWERS)


def test_the_page_is_found_by_the_words_that_people_look_for() -> None:
    for word in ("completion", "bash", "zsh", "fish", "session", "attach", "Ctrl-C", "--resume", "exit code"):
        assert word in PAGE


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/tutorial/index.md"])
def test_where_a_newcomer_begins_the_quickest_way_to_a_program_is_named(page: str) -> None:
    assert "`concertino init`" in (DOCS.parent / page).read_text(encoding="utf-8")
