"""The programs of the migration pages: ours run here; those of the other frameworks run in the soak test."""

from __future__ import annotations

from pathlib import Path

import migration
import pytest

from .documents import DOCS, Block, blocks_of, included_files
from .readers import run_file

PAGES = sorted((DOCS / "how-to").glob("migrate-from-*.md"))


SANDBOXED = "code_in_concertino"  # it starts a sandbox
NAMES = [pytest.param(name, marks=[pytest.mark.slow] if name == SANDBOXED else []) for name in migration.OURS]


@pytest.mark.parametrize("name", NAMES)
def test_our_program_prints_what_the_others_print(name: str, tmp_path: Path) -> None:
    with migration.server() as server:
        done = run_file(migration.MIGRATION / f"{name}.py", tmp_path, server.environment)
    assert (done.returncode, done.stdout) == (0, migration.expected(migration.OURS[name])), done.stderr


def test_every_program_is_run_by_one_of_the_two_tests() -> None:
    assert {file.stem for file in migration.MIGRATION.glob("*.py")} == {*migration.OURS, *migration.THEIRS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_each_part_of_theirs_and_then_of_ours(page: Path) -> None:
    programs = [_program(block) for block in blocks_of(page.read_text(encoding="utf-8")) if block.language == "python"]
    theirs = [place for place, name in enumerate(programs) if name in migration.THEIRS]
    assert len(theirs) >= 4
    assert [programs[place + 1] for place in theirs if programs[place + 1] not in migration.OURS] == []


def _program(block: Block) -> str:
    (file,) = included_files(block.raw)
    return file.stem
