"""Every example ends by itself, in a fresh process; README's example is one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tree import ROOT

from .documents import EXAMPLES, PAGES, agrees, blocks_of, commands_of
from .readers import run_file

README = EXAMPLES / "readme.py"


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


REST = sorted(
    file
    for file in EXAMPLES.rglob("*.py")
    if file.name not in _followed() and not file.name.startswith("test_") and file != README
)


@pytest.mark.parametrize("file", REST, ids=lambda file: file.relative_to(EXAMPLES).as_posix())
def test_an_example_that_no_page_runs_can_be_run(file: Path, tmp_path: Path) -> None:
    done = run_file(file, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_example_of_the_readme_is_a_file_that_prints_what_the_readme_shows(tmp_path: Path) -> None:
    blocks = list(blocks_of((ROOT / "README.md").read_text(encoding="utf-8")))
    at = next((i for i, block in enumerate(blocks) if block.language == "python"), None)
    assert at is not None, "README.md holds no python block"
    assert blocks[at].raw.strip() == README.read_text(encoding="utf-8").strip(), "README.md and readme.py differ"
    assert len(blocks[at].raw.strip().splitlines()) <= 20, "the example of the README is to be short"
    done = run_file(README, tmp_path)
    assert done.returncode == 0, done.stderr
    shown = next((block for block in blocks[at + 1 :] if block.language in ("text", "")), None)
    if shown is not None:
        assert agrees(shown.raw, done.stdout), f"README.md shows\n{shown.raw}\nbut it prints\n{done.stdout}"
