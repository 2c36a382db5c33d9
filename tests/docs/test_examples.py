"""Every example ends by itself, in a fresh process; README's two are among them, the first against a model server."""

from __future__ import annotations

from pathlib import Path

import pytest
from stand_in import StandIn
from tree import ROOT

from .documents import EXAMPLES, PAGES, Block, agrees, blocks_of, commands_of
from .readers import run_file

FIRST = EXAMPLES / "readme.py"
SCRIPTED = EXAMPLES / "without_a_key.py"
STREAMED = EXAMPLES / "first_stream.py"
SERVED = [
    FIRST,
    STREAMED,
    EXAMPLES / "application" / "few_lines.py",
    EXAMPLES / "serve" / "ask.py",
    EXAMPLES / "serve" / "client_tool.py",
    *EXAMPLES.glob("migration/**/*.py"),
]
"""They ask a model server, so tests of their own run them."""
FOREIGN = sorted(EXAMPLES.glob("foreign/*_langchain.py")) + sorted(EXAMPLES.glob("foreign/*_openai_agents.py"))
"""They need another framework, so `tests/foreign` runs them in an environment of its own."""


def _followed() -> set[str]:
    """Names of files that a page has its reader run; they are run there, in the order of the page."""
    commands = [
        command.line
        for page in PAGES
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.language == "console"
        for command in commands_of(block.body)
    ]
    return {word for line in commands for word in line.split() if word.endswith(".py")}


FOLLOWED = _followed()
REST = sorted(
    file
    for file in EXAMPLES.rglob("*.py")
    if file.name not in FOLLOWED and not file.name.startswith("test_") and file not in (*SERVED, *FOREIGN)
)


@pytest.mark.parametrize("file", REST, ids=lambda file: file.relative_to(EXAMPLES).as_posix())
def test_an_example_that_no_page_runs_can_be_run(file: Path, tmp_path: Path) -> None:
    done = run_file(file, tmp_path)
    assert done.returncode == 0, done.stderr


def _of_the_readme() -> list[Block]:
    return list(blocks_of((ROOT / "README.md").read_text(encoding="utf-8")))


def test_the_readme_opens_with_ten_lines_that_ask_a_model_behind_openai_base_url(tmp_path: Path) -> None:
    lines = FIRST.read_text(encoding="utf-8").strip().splitlines()
    assert len(lines) <= 10
    call = '<tool_call>{"name": "weather", "arguments": {"city": "%s"}}</tool_call>'
    replies = [f"{call % 'Oslo'}\n{call % 'Rome'}", '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>']
    with StandIn(*replies, "<answer>It is warmer in Rome.</answer>") as server:
        done = run_file(FIRST, tmp_path, server.environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is warmer in Rome.\n", "")
    assert [request["model"] for request in server.requests] == ["gpt-5.4-mini"] * 3
    seen = str(server.requests[1]["messages"])
    assert "snow, -3 C" in seen
    assert "sun, 18 C" in seen


def test_without_a_key_the_ten_lines_say_which_variable_to_set(tmp_path: Path) -> None:
    done = run_file(FIRST, tmp_path, {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""})
    assert "set the environment variable OPENAI_API_KEY" in done.stdout


def test_the_first_stream_prints_the_answer_and_without_one_the_reason(tmp_path: Path) -> None:
    replies = ['<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>', "<answer>It is 42.</answer>"]
    with StandIn(*replies) as server:
        done = run_file(STREAMED, tmp_path, server.environment)
        again = run_file(STREAMED, tmp_path, server.environment)  # no reply is left
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is 42.\n", "")
    assert (again.returncode, "no reply is left" in again.stdout) == (0, True)
    assert all(request["stream"] for request in server.requests)


def test_the_readme_shows_its_two_examples_as_they_are_and_what_the_second_prints(tmp_path: Path) -> None:
    blocks = _of_the_readme()
    shown = [block.raw.strip() for block in blocks if block.language == "python"]
    assert shown == [file.read_text(encoding="utf-8").strip() for file in (FIRST, SCRIPTED)]
    (printed,) = (block.raw for block in blocks if block.language == "text")
    done = run_file(SCRIPTED, tmp_path)
    assert done.returncode == 0, done.stderr
    assert agrees(printed, done.stdout), f"README.md shows\n{printed}\nbut it prints\n{done.stdout}"
