"""The comparison page: its lines are those that are counted, and its versions are those of the migration pages."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import migration  # noqa: F401  puts the programs of the comparison on the path
from tree import ROOT

from .documents import DOCS

PAGE = DOCS / "explanation" / "comparison.md"
VERSION = re.compile(r"\b(pydantic-ai-slim|langgraph|langchain|openai-agents|smolagents)(?: with| \|)? (\d+\.\d+\.\d+)")


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("frameworks_run", ROOT / "benchmarks" / "frameworks" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_lines_on_the_page_are_those_of_the_programs() -> None:
    run, page = benchmark(), PAGE.read_text(encoding="utf-8")
    shown = {
        name: int(lines) for name, lines in re.findall(r"^\| \**([a-z-]+?)(?:-slim)?\** \d[^|]*\| (\d+) \|", page, re.M)
    }
    counted = {name: run.lines(run.program(name).read_text(encoding="utf-8")) for name in run.FRAMEWORKS}
    assert shown == counted
    assert counted["concertino"] <= 60


def test_what_each_cannot_do_is_said_of_all() -> None:
    assert set(benchmark().CANNOT) == set(benchmark().FRAMEWORKS)


def test_all_pages_name_the_same_versions() -> None:
    pages = [PAGE, *(DOCS / "how-to").glob("migrate-from-*.md")]
    named = {pair for page in pages for pair in VERSION.findall(page.read_text(encoding="utf-8"))}
    assert len(named) == len({name for name, _ in named}) == 5, named
