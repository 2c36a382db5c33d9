"""Every page does what it says: its commands are typed, its files are saved, what it shows is what is printed."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
from pathlib import Path

import pytest
from notebook_drawing import cells_of

from .documents import EXAMPLES, PAGES, agrees, blocks_of, commands_of, included_files, is_included, page_id
from .readers import SECONDS, Reader

NOTEBOOKS = sorted(EXAMPLES.rglob("*.ipynb"))
SMALLER = Path(__file__).with_name("smaller")
WHOLE = "CONCERTINO_WHOLE_PAGES" in os.environ
"""`make soak` sets it: files of `smaller/` are left out, and a command has an hour."""
# What a server prints depends on how fast it starts, and beside other tests it starts slowly.
TIMED = {"how-to/use-an-mcp-server.md"}
# They take a minute each, also with the files of `smaller/`; `make soak` follows them, the trainings in their own size.
LONG = {"tutorial/train-an-orchestrator.md", "how-to/train-on-your-own.md"} if not WHOLE else set()
LONG |= {"how-to/search-a-corpus.md", "how-to/sandbox-levels.md"}


def _marks(page: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.alone] if page in TIMED else [pytest.mark.soak] if page in LONG else []


FOLLOWED = [
    pytest.param(page, marks=_marks(page_id(page)))
    for page in PAGES
    if "```console" in page.read_text(encoding="utf-8")
]


@pytest.mark.slow
@pytest.mark.timeout(3 * SECONDS)  # a page has several commands, each with that many seconds
@pytest.mark.parametrize("page", FOLLOWED, ids=page_id)
def test_a_reader_who_follows_the_page_sees_what_it_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "$ pip install" in text and not importlib.util.find_spec("hatchling"):
        pytest.skip("hatchling is not installed, and a page's `pip install` may not fetch it")
    reader = Reader(tmp_path, 3600 if WHOLE else SECONDS)
    for block in blocks_of(text):
        if block.title:
            _save(reader, block.title, block.body)
        elif block.language == "console":
            for command in commands_of(block.body):
                printed, status = reader.type(command)
                assert agrees(command.prints, printed), (
                    f"{page_id(page)} shows for `{command.line}`:\n{command.prints}\nbut it printed:\n{printed}"
                )
                assert status == 0 or "Error: " in command.prints, f"`{command.line}` ended with {status}:\n{printed}"


def _save(reader: Reader, title: str, body: str) -> None:
    """Save a file; one of its name in `smaller/`, which builds on it, takes its place, so that minutes are seconds."""
    smaller = SMALLER / title
    if smaller.exists() and not WHOLE:
        reader.save(f"{smaller.stem}-whole{smaller.suffix}", body)
        body = smaller.read_text(encoding="utf-8")
    reader.save(title, body)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_python_on_a_page_is_an_included_file_or_a_cell_of_a_notebook_that_it_names(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    cells = [cell for notebook in NOTEBOOKS if notebook.name in text for cell in cells_of(notebook)]
    written = [block.raw for block in blocks_of(text) if block.language == "python"]
    loose = [raw for raw in written if not is_included(raw) and raw not in cells]
    assert not loose, f"not included with --8<-- from docs/examples/, and no cell of a notebook:\n{loose[0]}"


def test_every_example_is_shown_on_a_page() -> None:
    shown = {file for page in PAGES for file in included_files(page.read_text(encoding="utf-8"))}
    shown |= {file for file in NOTEBOOKS if any(file.name in page.read_text(encoding="utf-8") for page in PAGES)}
    shown |= {EXAMPLES / "readme.py", EXAMPLES / "without_a_key.py"}  # shown by README.md
    files = {file for file in EXAMPLES.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    assert files - shown == set()


def test_no_page_names_a_member_of_the_package_that_is_not_there() -> None:
    """`concertino.Name` and `ct.Name` in the text are names that exist, loggers, or attributes of spans."""
    import concertino
    import concertino.core.logs

    pattern = re.compile(r"`(?:concertino|ct)\.([A-Za-z]\w*)")
    named = {(page_id(page), name) for page in PAGES for name in pattern.findall(page.read_text(encoding="utf-8"))}
    packages = {path.stem for path in Path(concertino.__file__).parent.iterdir() if not path.stem.startswith("_")}
    packages |= {name.removeprefix("concertino.") for name in logging.root.manager.loggerDict}
    spans = (EXAMPLES.parents[1] / "contrib" / "otel" / "src").rglob("*.py")
    packages |= {name for file in spans for name in re.findall(r'"concertino\.(\w+)', file.read_text(encoding="utf-8"))}
    missing = {(page, name) for page, name in named if not (name in packages or hasattr(concertino, name))}
    assert missing - {(page, "toml") for page, _ in missing} == set()


def test_every_page_opens_with_a_title() -> None:
    untitled = [page_id(page) for page in PAGES if not page.read_text(encoding="utf-8").startswith("# ")]
    assert untitled == []
